"""What a saved adapter says of its inputs holds, unless the user says otherwise."""

import json
import shutil

import pytest
from absl import flags

from adapter_bert_tf.command.definitions import define_flags
from adapter_bert_tf.command.row import Command
from adapter_bert_tf.command.run_flags import RunFlags
from adapter_bert_tf.run import saved_settings
from adapter_bert_tf.store import SavedAdapter
from tests.run.own_data_test import write
from tests.runs import base_flags, command


def results(folder):
    return json.loads((folder / "run.json").read_text())


@pytest.fixture(scope="module")
def trained(tiny_base_folder, tmp_path_factory):
    """(base flags, data folder, output folder) of a run on pairs, cut at 8 word pieces."""
    place = tmp_path_factory.mktemp("settings")
    data, base = write(place / "data"), base_flags(tiny_base_folder)
    shutil.copy(data / "dev.tsv", data / "kept.tsv")
    assert (
        command(
            "--task_name=tsv",
            f"--data_dir={data}",
            *base,
            f"--output_dir={place}/out",
            "--text_a_column=1",
            "--text_b_column=2",
            "--label_column=3",
            "--max_seq_length=8",
            "--train_batch_size=8",
            "--learning_rate=1e-2",
            "--num_train_epochs=2",
            "--do_train",
            "--do_eval",
        )
        is None
    )
    return base, data, place / "out"


def apply(trained, out, *more):
    base, data, trained_out = trained
    return command(
        "--task_name=tsv",
        f"--data_dir={data}",
        *base,
        "--do_eval",
        f"--adapter_dir={trained_out}/adapter",
        f"--output_dir={out}",
        *more,
    )


def test_the_adapter_knows_length_and_columns(trained, tmp_path, caplog):
    assert apply(trained, tmp_path / "out") is None
    assert results(tmp_path / "out")["eval"] == results(trained[2])["eval"]
    assert "Not as the adapter was trained" not in caplog.text


@pytest.mark.parametrize(
    ("flag", "named"),
    [
        ("--max_seq_length=16", "--max_seq_length=16, the adapter 8"),
        ("--text_b_column=second", "--text_b_column=second, the adapter 2"),
        ("--max_seq_length=8", None),
    ],
)
def test_another_flag_wins_and_is_named(flag, named, trained, tmp_path, caplog):
    assert apply(trained, tmp_path / "out", flag) is None
    name, value = flag.lstrip("-").split("=")
    assert str(results(tmp_path / "out")["flags"][name]) == value
    assert (f"Not as the adapter was trained: {named}." in caplog.text) == bool(named)


def test_pairs_are_not_answered_by_one_text(trained, tmp_path):
    config = json.loads((trained[2] / "adapter" / "adapter_config.json").read_text())
    assert config["inputs"]["texts"] == 2 and config["table"]["text_b_column"] == "2"
    message = apply(trained, tmp_path / "out", "--text_b_column=")
    assert "trained on pairs of texts. Received: single ones. Add --text_b_column" in message


def test_settings_of_questions(caplog):
    """Lengths, stride and decoding are those of the adapter, by the flags' names."""
    inputs = {
        "max_seq_length": 128,
        "doc_stride": 64,
        "max_query_length": 32,
        "n_best_size": 7,
        "max_answer_length": 9,
        "null_allowed": True,
        "null_score_diff_threshold": -0.5,
    }
    known = flags.FlagValues()
    define_flags(Command.SQUAD, known)
    names = {"version_2_with_negative", *inputs} - {"null_allowed"}
    definitions = {name: known[name] for name in names}
    values = {name: flag.default for name, flag in definitions.items()}
    given = RunFlags(definitions, values | {"doc_stride": 100}, ["doc_stride"])
    found = saved_settings.applied(given, SavedAdapter({"inputs": inputs}, {}))
    assert found.values == {
        "max_seq_length": 128,
        "doc_stride": 100,
        "max_query_length": 32,
        "n_best_size": 7,
        "max_answer_length": 9,
        "version_2_with_negative": True,
        "null_score_diff_threshold": -0.5,
    }
    assert "--doc_stride=100, the adapter 64" in caplog.text
