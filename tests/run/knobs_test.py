"""Flags that change how it is trained, each by its effect."""

import json

import numpy as np
import pytest
import safetensors.numpy

from adapter_bert_tf.task_types import table_type
from adapter_bert_tf.task_types.classification import parse_weights
from adapter_bert_tf.task_types.table_type import choose_metrics
from adapter_bert_tf.tasks import find_task
from tests.refusals import raises_code
from tests.runs import mrpc_row, train, try_to_train, write_mrpc

IDS = np.array([0] * 6 + [1] * 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, [1, 1, 1]),
        ("balanced", [8 / 18, 8 / 6, 1]),  # Nobody has the third.
        ("b=2.5", [1, 2.5, 1]),
        ("a=0.5, c=1=3", [0.5, 1, 3]),
    ],
)
def test_weights_are_read(text, expected):
    assert parse_weights(text, ["a", "b", "c=1"], IDS) == pytest.approx(expected)


def test_balanced_weights_of_counted_labels():
    """Three labels that 2, 6 and 4 rows have; the last two cells stand for one label."""
    weights = parse_weights("balanced", ["a", "b"], np.array([0, 1, 1]), np.array([2, 6, 4]))
    assert weights == [12 / (2 * 2), 12 / (2 * 10)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a,b=2", [2, 1, 1]), ("a=3,a,b=2,b=4", [2, 3, 4]), ("b=4,a,b=2", [2, 1, 4])],
)
def test_labels_with_commas_are_weighed(text, expected):
    assert parse_weights(text, ["a,b", "a", "b"], IDS) == expected


@pytest.mark.parametrize(
    "text", ["", "even", "x=1", "a=0", "a=-1", "a=nan", "a=x", "a=inf", "a=", "a=2, a=3"]
)
def test_wrong_weights_are_refused(text):
    with raises_code("invalid", "--class_weights"):
        parse_weights(text, ["a", "b", "c=1"], IDS)


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """A task that cannot be learned; seven of eight examples have the label 1."""
    folder = write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")
    for name in ("train", "dev"):
        header = (folder / f"{name}.tsv").read_text().splitlines()[0]
        rows = [mrpc_row(int(i % 8 > 0), "a cat", "a dog") for i in range(64)]
        (folder / f"{name}.tsv").write_text("\n".join([header, *rows]) + "\n")
    return folder


EFFECT = {  # The share of label 1 that is told of examples that are all alike.
    (): 7 / 8,
    ("--class_weights=balanced",): 1 / 2,
    ("--class_weights=0=3.5",): 2 / 3,
    ("--label_smoothing=0.5",): 0.5 * 7 / 8 + 0.25,
}


LONG = ((), ("--class_weights=0=3.5",))
CASES = [pytest.param(flags, marks=pytest.mark.long if flags in LONG else []) for flags in EFFECT]


@pytest.mark.parametrize("flags", CASES)
def test_what_is_told_of_what_cannot_be_known(flags, uneven, tiny_base_folder, tmp_path):
    more = (*flags, "--do_predict", "--tuning=head", "--learning_rate=0.05", "--train_pooler")
    more = (*more, "--dropout=0")
    train(uneven, tiny_base_folder, tmp_path / "out", "--num_train_epochs=25", *more)
    told = np.loadtxt(tmp_path / "out" / "test_results.tsv")[:, 1]
    assert told.mean() == pytest.approx(EFFECT[flags], abs=0.04)


def test_weight_decay_takes_from_the_weights(uneven, tiny_base_folder, tmp_path):
    """Adam's own updates are of one size, so what is larger without it was taken away."""
    norms = []
    for decay in (0.0, 5.0):
        out = tmp_path / str(decay)
        train(uneven, tiny_base_folder, out, "--num_train_epochs=5", f"--weight_decay={decay}",
              "--tuning=head", "--learning_rate=0.01", "--notrain_pooler")  # fmt: skip
        weights = safetensors.numpy.load_file(out / "adapter" / "adapter.safetensors")
        norms.append(np.linalg.norm(weights["head/kernel"]))
    assert norms[1] < 0.7 * norms[0]


def test_another_loss_is_another_run(uneven, tiny_base_folder, tmp_path):
    out = tmp_path / "out"
    train(uneven, tiny_base_folder, out, "--num_train_epochs=1", "--tuning=head")
    error = try_to_train(
        uneven, tiny_base_folder, out, "--num_train_epochs=1", "--tuning=head",
        "--class_weights=balanced",
    )  # fmt: skip
    assert "--class_weights: None there, 'balanced' here" in error
    assert json.loads((out / "run.json").read_text())["flags"]["class_weights"] is None


REFUSED = {
    "an unknown label": (["--class_weights=2=1"], "of the labels ['0', '1']"),
    "several tasks": (
        ["--task_name=mrpc={mrpc}", "--tuning=multitask_full", "--label_smoothing=0.1"],
        "one task of classes",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_meaning_is_refused_before_training(case, uneven, tiny_base_folder, tmp_path):
    flags, message = REFUSED[case]
    flags = [flag.format(mrpc=uneven) for flag in flags]
    error = try_to_train(uneven.parent, tiny_base_folder, tmp_path, *flags, f"--data_dir={uneven}")
    assert message in (error or ""), error
    assert not (tmp_path / "checkpoints").exists()


def weights_of(out):
    return safetensors.numpy.load_file(out / "adapter" / "adapter.safetensors")


@pytest.mark.slow
def test_accumulated_batches_are_one_batch_and_dropout_can_be_none(
    uneven, tiny_base_folder, tmp_path
):
    sizes = {"whole": (32, 1), "parts": (8, 4)}
    for rate in (0.0, 0.5):
        for name, (rows, parts) in sizes.items():
            out = tmp_path / f"{name}{rate}"
            train(uneven, tiny_base_folder, out, "--num_train_epochs=4", "--learning_rate=1e-2",
                  f"--train_batch_size={rows}", f"--gradient_accumulation_steps={parts}",
                  f"--dropout={rate}")  # fmt: skip
            assert json.loads((out / "run.json").read_text())["global_step"] == 8
    differences = [
        max(np.abs(a[n] - b[n]).max() for n in a)
        for rate in (0.0, 0.5)
        for a, b in [(weights_of(tmp_path / f"whole{rate}"), weights_of(tmp_path / f"parts{rate}"))]
    ]
    assert differences[0] < 1e-5 < 1e-3 < differences[1]  # Masks are of a part.


def chosen(metric, task):
    return choose_metrics(metric, task, table_type(task.task_type))


def test_the_metric_chooses(tmp_path):
    """Of two evaluations the one that is better by the metric asked for is kept."""
    mrpc, scores = find_task("mrpc"), find_task("sts-b")
    assert chosen("f1", mrpc) == ("f1", "accuracy")
    assert chosen("mcc", mrpc) == ("mcc", "accuracy", "f1")
    mnli = find_task("mnli")
    for wrong, task in (("f1", mnli), ("pearson", mrpc), ("mcc", scores), ("x", mrpc)):
        with raises_code("invalid", "metric"):
            chosen(wrong, task)


def test_the_metric_is_reported_and_on_the_card(uneven, tiny_base_folder, tmp_path):
    out = train(uneven, tiny_base_folder, tmp_path / "out", "--num_train_epochs=1", "--do_eval",
                "--metric=macro_f1", "--keep=best")  # fmt: skip
    record = json.loads((out / "run.json").read_text())
    assert {"eval_macro_f1", "eval_accuracy", "eval_f1"} < record["eval"].keys()
    best = json.loads((out / "checkpoints" / "best.json").read_text())
    assert best["score"] == record["eval"]["eval_macro_f1"] != record["eval"]["eval_accuracy"]
    assert (
        json.loads((out / "adapter" / "adapter_config.json").read_text())["metric"]["name"]
        == "macro_f1"
    )
