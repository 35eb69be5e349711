"""A toy task type, one file and one row, from a table through the command to all that is made."""

import csv
import json

import numpy as np
import pytest
import tensorflow as tf

import adapter_bert_tf as abt
from adapter_bert_tf.serving.joined import join
from adapter_bert_tf.task_types import TASK_TYPES, chosen_type, type_named
from tests.refusals import raises_code
from tests.runs import base_flags, command, sentence
from tests.task_types.interval import Interval

COLUMNS = ("--text_a_column=text", "--label_column=share")
ACTIONS = ("--do_train", "--do_eval", "--do_predict", "--do_export", "--report")


@pytest.fixture(scope="module", autouse=True)
def registered():
    """The one row that makes the type known."""
    TASK_TYPES["interval"] = Interval()
    yield
    del TASK_TYPES["interval"]


def write(folder, wrong=None):
    """A table whose shares are those of the word `not` among four words."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for split, count in (("train", 96), ("dev", 24), ("test", 8)):
        rows = [["text", "share"]]
        for i in range(count):
            text = sentence(rng).replace("not", "red") + " not" * (i % 5) + " red" * (4 - i % 5)
            rows.append([text, wrong or f"{i % 5}/4"])
        with (folder / f"{split}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return folder


def run(data, base, out, *more):
    return command(
        *("--task_name=tsv", "--task_type=interval", f"--data_dir={data}", *COLUMNS),
        *(*base_flags(base), f"--output_dir={out}", "--max_seq_length=16"),
        *("--train_batch_size=8", "--learning_rate=1e-2", "--tuning=full", *more),
    )


@pytest.fixture(scope="module")
def out(tiny_base_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("interval")
    data = write(folder / "shares")
    failed = run(data, tiny_base_folder, folder / "out", *ACTIONS, "--num_train_epochs=6")
    assert failed is None, failed
    return folder / "out"


@pytest.fixture(scope="module")
def predictor(out, tiny_base_folder):
    return abt.Predictor(out / "adapter", base=str(tiny_base_folder))


def test_it_learns_and_its_metrics_are_in_the_results(out):
    results = dict(
        line.split(" = ") for line in (out / "eval_results.txt").open().read().split("\n")[:-1]
    )
    assert float(results["eval_close"]) > 0.6
    assert set(results) == {"eval_close", "eval_median_error", "eval_loss", "global_step"}
    tests = (out / "test_metrics.txt").read_text()
    assert "test_close" in tests


def test_the_adapter_file_names_the_type(out):
    config = json.loads((out / "adapter" / "adapter_config.json").read_text())
    assert (config["head"], config["labels"], config["regression"]) == ("interval", [], False)
    assert config["table"]["task_type"] == "interval"
    assert config["metric"]["name"] == "close"


def test_predictions_are_shares(out):
    shares = np.loadtxt(out / "test_results.tsv")
    assert shares.shape == (8,) and ((shares > 0) & (shares < 1)).all()
    lines = (out / "predictions.tsv").read_text().splitlines()
    assert lines[1:] == [f"{i}\t{share:.2f}" for i, share in enumerate(shares)]


def test_the_report_has_its_parts(out):
    page = (out / "report.html").read_text()
    assert "Predicted by true shares." in page and "Farthest off: " in page
    assert "cross-entropy of shares, nats" in page


def test_a_predictor_and_the_saved_model_answer_alike(out, predictor):
    texts = ["the cat", "not not not not"]
    answers = predictor(texts)
    served = tf.saved_model.load(str(out / "saved_model")).signatures["serving_default"]
    found = served(text_a=tf.constant(texts))
    np.testing.assert_allclose(found["share"], [a["share"] for a in answers], atol=1e-5)
    assert [level.decode() for level in found["level"].numpy()] == [a["level"] for a in answers]
    assert [answer["level"] for answer in answers] == ["low", "high"]
    assert predictor.labels() == []


def test_a_file_gets_its_columns(predictor, tmp_path):
    (tmp_path / "texts.csv").write_text("text\nthe cat\n")
    predictor.predict_file(tmp_path / "texts.csv", tmp_path / "answers.csv")
    assert (tmp_path / "answers.csv").read_text().splitlines()[0] == "text,share,level"


def test_a_joined_model_serves_it_under_its_name(out, tiny_base_folder, tmp_path):
    base = abt.load_base(str(tiny_base_folder))
    model = abt.AdapterModel(base)
    model.add_adapter("quiet", head="interval", max_seq_length=16)
    model.save_adapter("quiet", tmp_path / "quiet")
    assert join([str(tmp_path / "quiet")], base, str(tmp_path / "joined")) == ["quiet"]


def test_a_saved_adapter_applies_to_its_type_alone(out, tiny_base_folder, tmp_path):
    data = out.parent / "shares"
    words = (f"--adapter_dir={out / 'adapter'}", "--do_eval")
    assert run(data, tiny_base_folder, tmp_path / "again", *words) is None
    error = run(data, tiny_base_folder, tmp_path / "other", *words, "--task_type=classification")
    assert "predicts a share" in error


def test_a_cell_that_is_no_share_is_named(tiny_base_folder, tmp_path):
    data = write(tmp_path / "wrong", wrong="7/4")
    error = run(data, tiny_base_folder, tmp_path / "out", "--do_train")
    assert "line 2: a share is like 3/4. Received: '7/4'" in error


def test_one_setting_chooses_one_type():
    assert chosen_type({"task_type": "interval"}).name == "interval"
    assert chosen_type({"regression": True, "multi_label": False}).name == "regression"
    assert type_named("classification", []).name == "regression"
    with raises_code("conflict", "task_type=interval"):
        chosen_type({"regression": True, "task_type": "interval"})
