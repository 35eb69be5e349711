"""`--folds`: every training example is in the development set once, and nothing leaks."""

import csv
import itertools
import json
import shutil
import statistics

import numpy as np
import pytest

from adapter_bert_tf.cli.store import main as store
from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.data.folds import Fold
from adapter_bert_tf.run.checks import split_history
from adapter_bert_tf.store.combining.combine import MIXED_SPLITS
from tests.refusals import raises_code
from tests.runs import base_flags, command, train, try_to_train, write_mrpc

pytestmark = pytest.mark.long


def examples(texts, labels):
    n = len(texts)
    return Examples(texts, None, labels, [str(i) for i in range(n)], [("f", i) for i in range(n)])


TEXTS = [f"text {i // 2}" for i in range(80)]  # Every text comes twice.
LABELS = ["a" if i // 2 % 4 else "b" for i in range(80)]


@pytest.mark.parametrize("stratified", [True, False])
def test_the_folds_are_the_whole(stratified):
    whole = examples(TEXTS, LABELS)
    parts = [Fold(i, 5, seed=3).split(whole, stratified) for i in range(5)]
    names = [part["dev"].indices for part in parts]
    assert sorted(itertools.chain(*names)) == sorted(whole.indices)
    for part in parts:
        assert not set(part["train"].text_a) & set(part["dev"].text_a)
        assert len(part["train"]) + len(part["dev"]) == 80
        assert 12 <= len(part["dev"]) <= 20
        if stratified:
            assert part["dev"].labels.count("b") == 4  # A quarter of 16.
    again = Fold(2, 5, seed=3).split(whole, stratified)
    assert (
        again["dev"].indices
        == names[2]
        != Fold(2, 5, seed=4).split(whole, stratified)["dev"].indices
    )


@pytest.mark.parametrize(("number", "count"), [(0, 1), (2, 2), (-1, 3)])
def test_there_are_no_such_folds(number, count):
    with raises_code("invalid", "Received: fold"):
        Fold(number, count)


def test_labels_too_rare_to_be_everywhere():
    labels = [str(i // 2) for i in range(80)]
    parts = [Fold(i, 5).split(examples(TEXTS, labels), True)["dev"] for i in range(5)]
    assert sorted(map(len, parts)) == [16] * 5


def test_too_few_texts():
    with raises_code("invalid", "4 examples, 2 of them different, are too few"):
        Fold(0, 3).split(examples(TEXTS[:4], LABELS[:4]), True)


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")


FLAGS = ("--do_eval", "--num_train_epochs=2", "--learning_rate=1e-2", "--folds=3")


@pytest.fixture(scope="module")
def crossed(mrpc, tiny_base_folder, tmp_path_factory):
    return train(mrpc, tiny_base_folder, tmp_path_factory.mktemp("folds") / "out", *FLAGS)


def test_mean_and_deviation_over_the_folds(crossed, capsys):
    with (crossed / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["fold"] for row in rows] == ["0", "1", "2"]
    found = [float(row["eval_accuracy"]) for row in rows]
    lines = dict(
        line.split(" = ") for line in (crossed / "eval_results.txt").read_text().splitlines()
    )
    assert float(lines["eval_accuracy"]) == pytest.approx(statistics.fmean(found))
    assert float(lines["eval_accuracy_std"]) == pytest.approx(statistics.stdev(found))
    assert not (crossed / "adapter").exists()
    asked = [json.loads((crossed / f"fold={i},seed=0" / "run.json").read_text()) for i in range(3)]
    assert sum(one["examples"]["dev"] for one in asked) == 64  # The whole of train.tsv.
    assert all(one["examples"]["train"] + one["examples"]["dev"] == 64 for one in asked)


def test_a_single_run_does_not_write_into_the_folder_of_the_folds(
    crossed, mrpc, tiny_base_folder, tmp_path
):
    before = {path: path.read_bytes() for path in crossed.rglob("*") if path.is_file()}
    error = try_to_train(mrpc, tiny_base_folder, crossed, "--num_train_epochs=2")
    assert f"{crossed} holds a sweep" in error and "another --output_dir" in error
    assert before == {path: path.read_bytes() for path in crossed.rglob("*") if path.is_file()}
    again = shutil.copytree(crossed, tmp_path / "again")
    train(mrpc, tiny_base_folder, again, "--num_train_epochs=2", "--overwrite")
    assert not (again / "sweep.json").exists() and not (again / "eval_results.txt").exists()


def test_one_fold_by_itself_is_that_run(crossed, mrpc, tiny_base_folder, tmp_path):
    out = train(mrpc, tiny_base_folder, tmp_path / "one", *FLAGS, "--fold=1")
    theirs = crossed / "fold=1,seed=0" / "adapter" / "adapter.safetensors"
    assert (out / "adapter" / "adapter.safetensors").read_bytes() == theirs.read_bytes()


@pytest.mark.slow
def test_an_adapter_of_a_fold_is_evaluated_on_its_own_part_only(
    crossed, mrpc, tiny_base_folder, tmp_path
):
    adapter = crossed / "fold=1,seed=0" / "adapter"
    applied = ("--task_name=mrpc", f"--data_dir={mrpc}", *base_flags(tiny_base_folder), "--do_eval",
               f"--adapter_dir={adapter}")  # fmt: skip
    assert command(*applied, "--folds=3", "--fold=1", f"--output_dir={tmp_path / 'same'}") is None
    again = json.loads((tmp_path / "same" / "run.json").read_text())["eval"]
    assert again == pytest.approx(json.loads((adapter.parent / "run.json").read_text())["eval"])
    error = command(*applied, "--folds=3", "--fold=2", f"--output_dir={tmp_path / 'other'}")
    assert "was trained with --folds=3 --fold=1" in error


def test_the_mean_of_two_folds_has_seen_all_of_the_data(crossed, mrpc, tiny_base_folder, tmp_path):
    adapters = [str(crossed / f"fold={i},seed=0" / "adapter") for i in range(2)]
    mean = f"{tmp_path}/mean"
    assert store(["average", *adapters, f"--output={mean}"]) == 0
    applied = ("--task_name=mrpc", f"--data_dir={mrpc}", *base_flags(tiny_base_folder),
               f"--adapter_dir={mean}", f"--output_dir={tmp_path}/out")  # fmt: skip
    error = command(*applied, "--do_eval", "--folds=3", "--fold=0")
    assert "comes from several splits of the training data" in error
    assert command(*applied, "--do_eval", "--max_seq_length=16") is None  # On a file of its own.


def test_what_began_from_another_fold_says_so(crossed, mrpc, tiny_base_folder, tmp_path):
    start = f"--init_from={crossed}/fold=0,seed=0/adapter"
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *FLAGS, "--fold=1", start)
    config = json.loads((out / "adapter" / "adapter_config.json").read_text())
    assert config["fold"] == MIXED_SPLITS
    assert config["metric"]["split"] == split_history.PARTLY_SEEN
    assert f"({split_history.PARTLY_SEEN})" in (out / "adapter" / "README.md").read_text()
    error = command("--task_name=mrpc", f"--data_dir={mrpc}", *base_flags(tiny_base_folder),
                    "--do_eval", "--folds=3", "--fold=1", f"--adapter_dir={out}/adapter",
                    f"--output_dir={tmp_path}/again")  # fmt: skip
    assert "comes from several splits of the training data" in error


REFUSED = {
    "no adapter to predict with": ("--do_predict", "none for --do_predict"),
    "no adapter to place": ("--adapter_dir=x", "none for --adapter_dir"),
    "a fold that is not": ("--fold=3", "fold 3 of 3"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_meaning_is_refused(case, mrpc, tiny_base_folder, tmp_path):
    flag, message = REFUSED[case]
    error = command("--task_name=mrpc", "--do_train", f"--data_dir={mrpc}", *FLAGS, flag,
                    *base_flags(tiny_base_folder), "--max_seq_length=16",
                    f"--output_dir={tmp_path}")  # fmt: skip
    assert message in (error or ""), error


@pytest.mark.slow
def test_settings_are_ranked_by_the_mean_of_their_folds(mrpc, tiny_base_folder, tmp_path, capsys):
    (tmp_path / "grid.yaml").write_text("learning_rate: [1.0e-9, 1.0e-2]\n")
    out = train(mrpc, tiny_base_folder, tmp_path / "out", "--do_eval", "--num_train_epochs=12",
                "--folds=2", f"--sweep={tmp_path}/grid.yaml")  # fmt: skip
    with (out / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    means = [np.mean([float(r["eval_accuracy"]) for r in rows if r["learning_rate"] == rate])
             for rate in ("0.01", "1e-09")]  # fmt: skip
    printed = capsys.readouterr().out
    ranked = printed[printed.index("Settings by eval_accuracy") :].splitlines()
    assert ranked[1].split() == ["learning_rate", "middle", "lowest", "highest", "runs"]
    assert [line.split()[:3] for line in ranked[2:4]] == [
        ["1", "0.01", f"{means[0]:.4f}"], ["2", "1e-09", f"{means[1]:.4f}"]
    ]  # fmt: skip
    assert means[0] > means[1]
