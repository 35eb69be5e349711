"""What is wrong with flags alone is said at once, before TensorFlow is loaded."""

import subprocess
import sys

import pytest

from tests.runs import ROOT

TRAIN = ["--do_train", "--output_dir=out"]
SQUAD = ["--predict_file=dev.json", "--output_dir=out"]
CASES = {  # (script, arguments): message.
    "nothing to do": ("classifier", ["--output_dir=out"], "Nothing to do: give at least one of"),
    "nowhere to write": ("classifier", ["--do_train"], "--output_dir is missing"),
    "a value after a space": (
        "classifier",
        [*TRAIN, "--task_name=mrpc", "--overwrite", "false", "--quoted"],
        "Not a flag: 'false'. A value is joined to its flag by =",
    ),
    "a word": ("squad", ["train.json", *SQUAD, "--do_predict"], "Not a flag: 'train.json'"),
    "no task": ("classifier", TRAIN, "--task_name is missing"),
    "unknown task": ("classifier", [*TRAIN, "--task_name=mrcp"], "Did you mean mrpc?"),
    "a rate below 0": (
        "classifier",
        [*TRAIN, "--task_name=mrpc", "--learning_rate=-1"],
        "--learning_rate must be a number above 0. Received: -1.0",
    ),
    "a rate that is no number": (
        "classifier",
        [*TRAIN, "--task_name=mrpc", "--learning_rate=nan"],
        "--learning_rate must be a number above 0. Received: nan",
    ),
    "endless": (
        "classifier",
        [*TRAIN, "--task_name=mrpc", "--num_train_epochs=inf"],
        "--num_train_epochs must be a number. Received: inf",
    ),
    "no questions": ("squad", TRAIN, "--do_train needs --train_file"),
    "a question alone": ("squad", [*SQUAD, "--do_eval", "--question=who?"], "belong together"),
    "no room": (
        "squad",
        [*SQUAD, "--do_eval", "--max_seq_length=64", "--max_query_length=61"],
        "room for a context",
    ),
}
WITHOUT_TENSORFLOW = """
import runpy, sys
sys.modules["tensorflow"] = None  # To import it is an error.
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("case", CASES)
def test_it_is_said_without_tensorflow(case, tmp_path):
    script, arguments, message = CASES[case]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TENSORFLOW, ROOT / f"run_{script}.py", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and done.stderr.startswith("error: "), done.stderr
    assert message in done.stderr and not list(tmp_path.iterdir())
