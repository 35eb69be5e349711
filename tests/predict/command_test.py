"""`adapter-bert predict` gives the probabilities that the training command gave."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from adapter_bert_tf.cli import main as cli
from adapter_bert_tf.cli.predict import main
from tests import processes

BEFORE = pathlib.Path(__file__).parent.parent / "golden" / "written_before"
FINISHED = BEFORE / "out" / "finished"
BASE = f"--base_model={BEFORE / 'base'}"
ASKED = [f"--adapter_dir={FINISHED / 'adapter'}", BASE]
TABLE = f"--predict_file={BEFORE / 'mrpc' / 'test.tsv'}"


def test_a_file_gets_what_the_training_command_wrote(tmp_path, capsys):
    assert main([*ASKED, TABLE, f"--output={tmp_path / 'out.tsv'}"]) == 0
    assert "8 rows:" in capsys.readouterr().out
    header, *lines = (tmp_path / "out.tsv").read_text().splitlines()
    asked = (BEFORE / "mrpc" / "test.tsv").read_text().removeprefix("\ufeff").splitlines()
    assert [line.rsplit("\t", 3)[0] for line in (header, *lines)] == asked
    assert header.split("\t")[-3:] == ["label", "probability_0", "probability_1"]
    found = np.array([line.split("\t")[-2:] for line in lines], np.float64)
    np.testing.assert_allclose(found, np.loadtxt(FINISHED / "test_results.tsv"), atol=1e-6)


@pytest.mark.parametrize("folder", [FINISHED / "adapter", FINISHED])
def test_one_text(folder, capsys):
    """By the adapter of a folder, or of the run in it."""
    asked = [f"--adapter_dir={folder}", BASE]
    assert main([*asked, "--text_a=a house", "--text_b=the house"]) == 0
    assert json.loads(capsys.readouterr().out)["label"] in ("0", "1")


WRONG = {
    "a missing file": (["--predict_file=no.csv", "--output=b.csv"], "There is no file 'no.csv'"),
    "no columns": (
        ["--predict_file=a.csv", "--output=b.csv"],
        "set --text_a_column and --text_b_column",
    ),
    "a text less": (["--text_a=a house"], "two texts, a pair"),
    "itself": (["--predict_file=a.csv", "--output=a.csv"], "another file"),
    "there already": (["--predict_file=a.csv", "--output=c.csv"], "--overwrite"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_one_line(case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "c.csv"):
        pathlib.Path(name).write_text("x,y\n1,2\n")
    arguments, message = WRONG[case]
    assert main([*ASKED, *arguments]) == 1
    said = capsys.readouterr().err
    assert message in said and said.startswith("error: ") and said.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [[], ["--predict_file=a.csv"], ["--predict_file=a", "--text_a=b"]]
)
def test_what_is_missing_is_said_at_once(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["--adapter_dir=x", *arguments])
    assert "error" in capsys.readouterr().err


OF_NO_EFFECT = {
    "a file for one text": (
        "--text_a=x --output=one.json --overwrite",
        "--output, --overwrite has",
    ),
    "a file for an empty text": ("--text_a= --output=one.json", "with --text_a"),
    "columns of one text": ("--text_a=x --text_a_column=foo", "--text_a_column has no effect"),
    "one text beside a file": (
        "--predict_file=a.csv --output=b.csv --text_b=x",
        "--text_b has no effect with --predict_file",
    ),
}


@pytest.mark.parametrize("case", OF_NO_EFFECT)
def test_what_has_no_effect_is_refused(case, capsys):
    words, said = OF_NO_EFFECT[case]
    with pytest.raises(SystemExit, match="2"):
        main(["--adapter_dir=x", *words.split()])
    assert said in capsys.readouterr().err


def test_all_commands_have_one_name(capsys):
    assert cli.main(["--help"]) == 0
    help = capsys.readouterr().out
    assert all(f"\n{name} " in help for name in (*cli.JOBS, *cli.MODULES))
    assert cli.main([]) == cli.main(["train"]) == 2
    assert "give one of the commands classify, squad" in capsys.readouterr().err
    assert cli.main(["store", "list", str(FINISHED)]) == 0
    assert "1 adapters" in capsys.readouterr().out


HELP = {
    "--help": "doctor",
    "classify --help": "--task_name",
    "squad --help": "--train_file",
    "tag --help": "--tag_column",
}
HELP |= {"predict --help": "--predict_file", "store --help": "average"}
HELP |= {"serve --help": "--output", "analyze --help": "embeddings"}
HELP |= {"analyze compare --help": "--adapters", "analyze size -h": "--tops"}
HELP |= {"analyze variants --predict_file=x --helpshort": "--doc_stride"}
HELP |= {"classify --helpfull": "--verbosity"}


@pytest.mark.parametrize("words", HELP)
def test_help_needs_no_tensorflow(words):
    script = "import sys; from adapter_bert_tf.cli.main import main\n"
    script += "try: status = main()\nexcept SystemExit as end: status = end.code\n"
    script += "assert not status\nassert 'tensorflow' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", script, *words.split()], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert HELP[words] in done.stdout


@pytest.mark.long
def test_training_by_its_command(tmp_path):
    words = ["classify", "--task_name=demo_factuality", "--do_train", "--dry_run"]
    words += [f"--base_model={BEFORE / 'base'}", f"--output_dir={tmp_path}", "--max_seq_length=24"]
    done = processes.run([sys.executable, "-m", "adapter_bert_tf", *words])
    assert done.returncode == 0, done.stderr
    assert "***** Total Trainable Parameters = " in done.stdout
