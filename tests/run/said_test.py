"""What a run says of flags and adapters that do not fit, in a warning or in its one message."""

import pytest

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.runners.questions.runner import QuestionRunner
from adapter_bert_tf.store import load_adapter
from tests import support
from tests.refusals import raises_code
from tests.runs import base_flags, command, train, try_to_train, write_mrpc

SHORT = ("--num_train_epochs=1",)


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC", rows=16)


@pytest.fixture(scope="module")
def trained(finished_run):
    """The adapter of a run."""
    return finished_run.out / "adapter"


def applied(mrpc, base, adapter, out, *more):
    asked = ("--task_name=mrpc", f"--data_dir={mrpc}", "--do_predict", f"--output_dir={out}")
    return command(*asked, *base_flags(base), f"--adapter_dir={adapter}", *more)


def test_adapters_that_are_left_out(mrpc, tiny_base_folder, trained, tmp_path, caplog):
    assert applied(mrpc, tiny_base_folder, trained, tmp_path, "--adapter_drop=1") is None
    assert "--adapter_drop=1 leaves out the adapters of its lowest layers" in caplog.text


def test_a_division_of_what_is_divided(mrpc, tiny_base_folder, tmp_path, caplog):
    train(mrpc, tiny_base_folder, tmp_path / "out", *SHORT, "--split_seed=3")
    assert "--split_seed=3 has no effect" in caplog.text


@pytest.mark.long
def test_few_examples_may_be_of_one_class(mrpc, tiny_base_folder, tmp_path, caplog):
    lines = (mrpc / "dev.tsv").read_text().splitlines()
    few = tmp_path / "MRPC"
    few.mkdir()
    (few / "train.tsv").write_text((mrpc / "train.tsv").read_text())
    for rows, said in ((2, False), (12, True)):
        (few / "dev.tsv").write_text("\n".join(lines[: rows + 1]) + "\n")
        caplog.clear()
        out = tmp_path / str(rows)
        train(few, tiny_base_folder, out, *SHORT, "--do_eval", "--learning_rate=1e-9")
        assert ("the same prediction" in caplog.text) is said


def test_each_command_names_the_other(mrpc, trained, tmp_path):
    written = support.GOLDEN.parent / "written_before"
    error = applied(mrpc, written / "base", written / "adapters" / "squad", tmp_path / "out")
    assert "run_squad.py applies it" in error
    with raises_code("mismatch", "run_classifier.py"):
        # As from a short adapter, whose windows have no room for questions.
        values = {"data_source": "tfds", "max_seq_length": 32, "max_query_length": 64}
        config = RunConfig.from_values(Command.SQUAD, values)
        QuestionRunner().check(config, load_adapter(str(trained)))


def test_a_file_above_a_folder(mrpc, tiny_base_folder, tmp_path):
    (tmp_path / "file").write_text("x")
    error = try_to_train(
        mrpc, tiny_base_folder, tmp_path / "out", f"--adapter_dir={tmp_path}/file/x"
    )
    assert f"--adapter_dir={tmp_path}/file/x cannot be written" in error
    assert not (tmp_path / "out").exists()


def test_an_encoding_that_is_none(tiny_base_folder, tmp_path):
    (tmp_path / "train.tsv").write_text("text\tlabel\na\t0\nb\t1\n")
    flags = ("--task_name=tsv", f"--data_dir={tmp_path}", "--do_train", "--encoding=utf-88")
    columns = (
        "--max_seq_length=16",
        "--text_a_column=text",
        "--label_column=label",
        f"--output_dir={tmp_path}/out",
    )
    error = command(*flags, *columns, *base_flags(tiny_base_folder))
    assert "nknown --encoding 'utf-88'" in error
