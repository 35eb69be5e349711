"""`--multi_label`: an example has any number of labels, or none."""

import csv
import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import f1_score

import adapter_bert_tf as abt
from adapter_bert_tf.data.examples import read_examples
from adapter_bert_tf.heads.losses import binary_cross_entropy
from adapter_bert_tf.task_types import table_type
from adapter_bert_tf.tasks import own_task
from tests.data.examples_test import _write
from tests.refusals import raises_code
from tests.runners.own_data_test import run
from tests.runs import sentence

pytestmark = pytest.mark.long

COLUMNS = ("--text_a_column=text", "--label_column=topics", "--multi_label")
TOPICS = {"red": "colour", "not": "denial"}


def write(folder, rows=160):
    """A table whose labels are those of the words that a text has, in no order; many have none."""
    rng = np.random.default_rng(1)
    folder.mkdir(parents=True)
    for split, count in (("train", rows), ("dev", 40), ("test", 24)):
        lines = [["text", "topics"]]
        for _ in range(count):
            words = [word for word in ("red", "not") if rng.random() < 0.5]
            text = " ".join(
                [sentence(rng).replace("red", "cat").replace("not", "cat"), *words, *words]
            )
            labels = [TOPICS[word] for word in words]
            lines.append([text, " | ".join(rng.permutation(labels))])
        with (folder / f"{split}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(lines)
    return folder


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write(tmp_path_factory.mktemp("data") / "topics")


@pytest.fixture(scope="module")
def trained(table, tiny_base_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("trained") / "out"
    more = ("--do_train", "--do_eval", "--do_predict", "--do_export", "--num_train_epochs=15")
    more = (*more, "--tuning=full", "--learning_rate=3e-3", "--seed=1")  # Some seeds stay at 0.86.
    assert run(table, tiny_base_folder, out, *COLUMNS, *more) is None
    return out


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def truth(table):
    cells = [row["topics"] for row in rows_of(table / "test.csv")]
    return np.array([["colour" in cell, "denial" in cell] for cell in cells])


def test_it_is_learned_and_scored_as_scikit_learn_does(trained, table):
    told = np.loadtxt(trained / "test_results.tsv")
    assert told.shape == (24, 2) and (told.sum(-1) > 1.5).any() and (told.sum(-1) < 0.5).any()
    lines = dict(
        line.split(" = ") for line in (trained / "test_metrics.txt").read_text().splitlines()
    )
    right, predicted = truth(table), told >= 0.5
    for average in ("micro", "macro"):
        ours = float(lines[f"test_{average}_f1"])
        assert ours == pytest.approx(f1_score(right, predicted, average=average, zero_division=0))
    assert float(lines["test_accuracy"]) == (right == predicted).all(-1).mean()
    assert float(lines["test_micro_f1"]) > 0.9
    assert (
        json.loads((trained / "adapter/adapter_config.json").read_text())["metric"]["name"]
        == "micro_f1"
    )
    classes = (trained / "eval_classes.tsv").read_text().splitlines()
    assert classes[0] == "label\tprecision\trecall\tf1\texamples" and len(classes) == 3


def test_the_labels_are_written(trained, table):
    written = (trained / "predictions.tsv").read_text().splitlines()[1:]
    names = [line.partition("\t")[2] for line in written]
    expected = ["|".join(n for n, has in zip(("colour", "denial"), row, strict=True) if has)
                for row in np.loadtxt(trained / "test_results.tsv") >= 0.5]  # fmt: skip
    assert names == expected and set(names) == {"", "colour", "denial", "colour|denial"}


def test_a_predictor_and_a_saved_model_say_the_same(trained, table, tiny_base_folder, tmp_path):
    texts = [row["text"] for row in rows_of(table / "test.csv")]
    told = np.loadtxt(trained / "test_results.tsv")
    predictor = abt.Predictor(trained / "adapter", base=tiny_base_folder)
    for answer, row in zip(predictor(texts), told, strict=True):
        assert list(answer["probabilities"].values()) == pytest.approx(row, abs=1e-6)
        assert answer["labels"] == [n for n, p in answer["probabilities"].items() if p >= 0.5]
    answers = tmp_path / "answers.csv"
    predictor.predict_file(table / "test.csv", answers)
    served = tf.saved_model.load(str(trained / "saved_model")).signatures["serving_default"]
    found = served(text_a=tf.constant(texts))
    np.testing.assert_allclose(found["probabilities"], told, atol=1e-6)
    labels = [label.decode() for label in found["label"].numpy()]
    assert [row["label"] for row in rows_of(answers)] == labels
    assert labels == [line.partition("\t")[2] for line in
                      (trained / "predictions.tsv").read_text().splitlines()[1:]]  # fmt: skip


def test_it_is_evaluated_again_by_what_the_adapter_says(trained, table, tiny_base_folder, tmp_path):
    adapter = f"--adapter_dir={trained / 'adapter'}"
    assert run(table, tiny_base_folder, tmp_path / "again", adapter, "--do_eval") is None
    again, first = (
        json.loads((out / "run.json").read_text())["eval"] for out in (tmp_path / "again", trained)
    )
    assert again == pytest.approx(first)
    error = run(table, tiny_base_folder, tmp_path / "no", adapter, "--do_eval", "--nomulti_label")
    assert "any number of labels" in error and "Add --multi_label" in error


def test_from_python(tiny_base_folder, tmp_path):
    texts = ["a red cat", "not a dog", "red and not", "a cat"] * 8  # Each of its own:
    texts = [f"{text} {i}" for i, text in enumerate(texts)]
    labels = [["colour"], ["denial"], ("colour", "denial"), []] * 8
    task = abt.train(texts, labels, multi_label=True, base_model=tiny_base_folder,
                     output_dir=tmp_path, max_seq_length=16, num_train_epochs=2,
                     train_batch_size=8)  # fmt: skip
    assert set(task("a red dog")) == {"labels", "probabilities"}
    assert "eval_micro_f1" in task.results


def test_labels_as_numbers(tmp_path):
    _write(tmp_path, "train.tsv", "text\tlabel\na\tx|y\nb\t\nc\ty| y |z\nd\t |\n")
    task = own_task("text", label="label", task_type="multi_label").with_labels(["x", "y", "z"])
    whole = dataclasses.replace(task, dev_share=None)
    kind = table_type("multi_label")
    examples = read_examples(whole, str(tmp_path), ["train"], cells=kind)["train"]
    np.testing.assert_array_equal(
        kind.encode(task, examples), [[1, 1, 0], [0, 0, 0], [0, 1, 1], [0, 0, 0]]
    )
    with raises_code("invalid", "line 2", "'x'"):
        kind.encode(task.with_labels(["y", "z"]), examples)


def test_the_loss_by_hand():
    logits, labels = tf.constant([[0.0, 2.0]]), tf.constant([[1.0, 0.0]])
    expected = (np.log(2) + np.log1p(np.exp(2.0))) / 2
    np.testing.assert_allclose(binary_cross_entropy(labels, logits), [expected], rtol=1e-6)
    scores = table_type("multi_label").evaluate(
        ("accuracy", "micro_f1"), labels.numpy(), tf.sigmoid(logits).numpy()
    )
    assert scores == {"accuracy": 0.0, "micro_f1": 2 / 3, "loss": pytest.approx(expected, rel=1e-6)}


def test_one_label_alone_is_refused_before_training(tiny_base_folder, tmp_path):
    folder = tmp_path / "one"
    folder.mkdir()
    rows = [f"a cat {i},{'x' * (i % 2)}" for i in range(40)]
    (folder / "train.csv").write_text("\n".join(["text,topics", *rows]) + "\n")
    error = run(folder, tiny_base_folder, tmp_path / "out", *COLUMNS, "--do_train", "--do_eval")
    assert "--multi_label needs two labels or more. Received: 'x' alone" in error
    assert not (tmp_path / "out").exists()


REFUSED = {
    "scores too": (
        ("--regression",),
        "has one type. Received: ",
    ),
    "weights of classes": (("--class_weights=balanced",), "need a single task of classes"),
    "a metric of classes": (("--metric=mcc",), "metric is one of"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_meaning_is_refused(case, table, tiny_base_folder, tmp_path):
    flags, message = REFUSED[case]
    error = run(table, tiny_base_folder, tmp_path / "out", *COLUMNS, "--do_train", *flags)
    assert error and any(part in error for part in message.split("|")), error
