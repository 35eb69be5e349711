"""Commands that compute nothing, and errors, do not import TensorFlow, which takes seconds."""

import subprocess
import sys

import pytest

from tests.support import GOLDEN

WRITTEN = GOLDEN.parent / "written_before"
HUB = GOLDEN.parent / "adapterhub"
ADAPTER = WRITTEN / "out" / "finished" / "adapter"
SEEDS = [WRITTEN / "out" / "sweep" / f"seed={seed}" / "adapter" for seed in (0, 1)]
BASE = f"--base_model={HUB / 'base'}"
SCRIPT = """
import sys
sys.modules |= dict.fromkeys(("tensorflow", "tf_keras", "official", "tensorflow_text"))
from adapter_bert_tf.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
TRAIN = ("--do_train", "--output_dir=out")
COLUMNS = ("--text_a_column=b", "--label_column=a")
MRPC = ("classify", "--task_name=mrpc", "--data_dir=.")
# Words of the command, exit status, and a part of what is printed.
CASES = {
    "help": (("--help",), 0, "adapter-bert COMMAND"),
    "help of a command": (("classify", "--help"), 0, "--task_name"),
    "list": (("store", "list", WRITTEN), 0, " adapters"),
    "show": (("store", "show", ADAPTER), 0, "Trained parameters"),
    "verify": (("store", "verify", *SEEDS), 0, "ok "),
    "verify with a base": (("store", "verify", ADAPTER, BASE), 1, "refused"),
    "average": (("store", "average", *SEEDS, "--output=mean"), 0, "mean"),
    "import": (("store", "import", HUB / "houlsby", BASE, "--output=new"), 0, ": new"),
    "export": (("store", "export", "ADAPTER", BASE, "--output=hub"), 0, ": hub"),
    "report": (("analyze", "report", "--output_dir=."), 1, "nothing to report"),
    "store without an adapter": (("store", "show", "no"), 1, "No adapter in 'no'"),
    "export without an adapter": (("store", "export", "no", "--output=hub"), 1, "'no'"),
    "predict without an adapter": (("predict", "--adapter_dir=no", "--text_a=a"), 1, "'no'"),
    "predict without a table": (
        ("predict", f"--adapter_dir={ADAPTER}", "--predict_file=no.csv", "--output=a.csv"),
        1,
        "no.csv",
    ),
    "serve without an adapter": (("serve", "no", "--output=served"), 1, "'no'"),
    "evaluate without an adapter": ((*MRPC, "--do_eval", "--output_dir=no"), 1, "'no/adapter'"),
    "analyze without an adapter": (
        ("analyze", "ablation", *MRPC[1:], "--adapter_dir=no", "--output_dir=out"),
        1,
        "'no'",
    ),
    "train without data": (("classify", "--task_name=mrpc", "--data_dir=no", *TRAIN), 1, "'no'"),
    "train without its file": ((*MRPC, *TRAIN), 1, "'./train.tsv'"),
    "train without a column": (
        ("classify", "--task_name=tsv", "--data_dir=.", *COLUMNS, *TRAIN),
        1,
        "no column 'b'",
    ),
    "train two tasks, one without data": (
        ("classify", "--task_name=mrpc=.,cola=.", "--tuning=multitask_full", *TRAIN),
        1,
        "The task 'mrpc'",
    ),
    "train without questions": (("squad", "--train_file=no.json", *TRAIN), 1, "no.json"),
    "tag without files": (("tag", "--data_dir=.", *TRAIN), 1, "--train_file"),
    "tag a file of one column": (
        ("tag", "--train_file=one.conll", *TRAIN),
        1,
        "one.conll, line 1",
    ),
    "a checkpoint of a training": (
        (*MRPC, f"--init_checkpoint={WRITTEN}/out/finished/checkpoints/ckpt-32", *TRAIN),
        1,
        f"--adapter_dir={WRITTEN}/out/finished/adapter",
    ),
    "checkpoints in place of the adapter": (
        (
            *MRPC,
            "--do_eval",
            f"--adapter_dir={WRITTEN}/out/finished/checkpoints",
            "--output_dir=out",
        ),
        1,
        f"{WRITTEN}/out/finished/adapter'",
    ),
    "checkpoints in place of the adapter, and no task": (
        (
            "classify",
            "--do_eval",
            f"--adapter_dir={WRITTEN}/out/finished/checkpoints",
            "--output_dir=out",
        ),
        1,
        f"Is it '{WRITTEN}/out/finished/adapter' (--adapter_dir)?",
    ),
    "no checkpoint": ((*MRPC, "--init_checkpoint=no/model.ckpt", *TRAIN), 1, "no/model.ckpt"),
    "start from no adapter": ((*MRPC, "--init_from=no", *TRAIN), 1, "--init_from=no"),
    "fuse no adapter": (
        (*MRPC, "--tuning=fusion", f"--fuse=a={ADAPTER},no", *TRAIN),
        1,
        "'no'",
    ),
    "a base without a vocabulary": ((*MRPC, "--vocab_file=no.txt", *TRAIN), 1, "no.txt"),
}


@pytest.mark.parametrize("case", CASES)
def test_no_tensorflow(case, tmp_path):
    words, status, printed = CASES[case]
    if "ADAPTER" in words:  # Of a format that can be exported.
        assert _run(CASES["import"][0], tmp_path).returncode == 0
    if "--text_a_column=b" in words:
        (tmp_path / "train.csv").write_text("a,c\n1,2\n")
    (tmp_path / "one.conll").write_text("word\n")
    words = [tmp_path / "new" if word == "ADAPTER" else word for word in words]
    done = _run(words, tmp_path)
    assert done.returncode == status, done.stderr
    assert printed in done.stdout + done.stderr
    assert "Traceback" not in done.stderr and "not have happened" not in done.stderr


def _run(words, folder):
    command = [sys.executable, "-c", SCRIPT, *map(str, words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
