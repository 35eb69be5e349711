"""What a saved adapter says of its inputs holds, unless the user says otherwise."""

import dataclasses
import json
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.run import saved_settings
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.training.progress import RowProgress
from tests.runners.own_data_test import write
from tests.runs import base_flags, command

pytestmark = pytest.mark.long


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
        ("--text_b_column=second", "--text_b_column='second', the adapter '2'"),
        ("--max_seq_length=8", None),
    ],
)
def test_another_flag_wins_and_is_named(flag, named, trained, tmp_path, caplog):
    assert apply(trained, tmp_path / "out", flag) is None
    name, value = flag.lstrip("-").split("=")
    assert str(results(tmp_path / "out")["flags"][name]) == value
    assert (f"Not as the adapter was trained: {named}." in caplog.text) == bool(named)


def test_a_saved_model_reads_as_the_predictions_of_its_run(trained, tmp_path):
    """With the length that this run was given, and not the adapter's."""
    longer = (*"--do_predict --do_export".split(), "--max_seq_length=16")
    assert apply(trained, tmp_path / "out", *longer) is None
    rows = [line.split("\t") for line in (trained[1] / "test.tsv").read_text().splitlines()[1:]]
    served = tf.saved_model.load(str(tmp_path / "out" / "saved_model"))
    texts = {
        name: tf.constant([row[i] for row in rows]) for name, i in (("text_a", 1), ("text_b", 2))
    }
    found = served.signatures["serving_default"](**texts)["probabilities"]
    np.testing.assert_allclose(found, np.loadtxt(tmp_path / "out" / "test_results.tsv"), atol=1e-5)
    assert apply(trained, tmp_path / "short", "--do_predict") is None
    assert np.abs(found - np.loadtxt(tmp_path / "short" / "test_results.tsv")).max() > 1e-4


@dataclasses.dataclass
class Read:
    """What `config_as_read` needs of the data of a task."""

    name: str
    inputs: dict

    def adapter_config(self):
        return {"inputs": self.inputs}


def test_what_is_exported_of_several_is_read_as_in_the_run():
    """Tasks that it has not keep what they have."""
    tasks = [
        {"task": name, "inputs": {"texts": 1, "max_seq_length": 8}} for name in ("cola", "rte")
    ]
    config = {"head": "several", "inputs": {}, "tasks": tasks}
    found = saved_settings.config_as_read(config, [Read("rte", {"texts": 1, "max_seq_length": 16})])
    assert [task["inputs"]["max_seq_length"] for task in found["tasks"]] == [8, 16]
    assert [task["inputs"]["max_seq_length"] for task in config["tasks"]] == [8, 8]


def test_no_more_rows_are_computed_than_there_are(trained, tmp_path, monkeypatch, capsys):
    """However large a batch may be; and people see how far it is."""
    computed, add = [], RowProgress.add
    monkeypatch.setattr(
        RowProgress, "add", lambda progress, rows: computed.append(rows) or add(progress, rows)
    )
    monkeypatch.setattr(
        RowProgress.__init__, "__defaults__", (None, 0.0)
    )  # Seconds between two lines.
    large = ("--do_predict", "--eval_batch_size=400000", "--predict_batch_size=400000")
    assert apply(trained, tmp_path / "out", *large) is None
    assert computed == [24, 24]
    assert re.search(r"^.*test: 24 of 24  \d+ rows/s  ETA 0:00$", capsys.readouterr().out, re.M)
    found, expected = results(tmp_path / "out")["eval"], results(trained[2])["eval"]
    assert found == pytest.approx(expected, rel=1e-5)


def test_pairs_are_not_answered_by_one_text(trained, tmp_path):
    config = json.loads((trained[2] / "adapter" / "adapter_config.json").read_text())
    assert config["inputs"]["texts"] == 2 and config["table"]["text_b_column"] == "2"
    message = apply(trained, tmp_path / "out", "--text_b_column=")
    assert "trained on pairs of texts. Received: single texts. Add --text_b_column" in message


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
    given = RunConfig.from_values(Command.SQUAD, {"doc_stride": 100}, ["doc_stride"])
    found = saved_settings.with_saved_settings(given, SavedAdapter({"inputs": inputs}, {}))
    names = {"version_2_with_negative", *inputs} - {"null_allowed"}
    assert found.values_of(names) == {
        "max_seq_length": 128,
        "doc_stride": 100,
        "max_query_length": 32,
        "n_best_size": 7,
        "max_answer_length": 9,
        "version_2_with_negative": True,
        "null_score_diff_threshold": -0.5,
    }
    assert "--doc_stride=100, the adapter 64" in caplog.text
