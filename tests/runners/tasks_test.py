"""Whole runs of tasks that are not like MRPC, and the repetition of a run from its `run.json`."""

import json
import re

import numpy as np
import pytest

from tests.runs import base_flags, command, sentence, train, write_mrpc
from tests.tfds_data import write_tfds

pytestmark = pytest.mark.long

MNLI_HEADER = "index\tsentence1\tsentence2\tgold_label"
LABELS = ("contradiction", "entailment", "neutral")


def run(task, folder, base, out, *more):
    return command(
        f"--task_name={task}",
        f"--data_dir={folder}",
        *base_flags(base),
        f"--output_dir={out}",
        "--max_seq_length=16",
        "--train_batch_size=8",
        *more,
    )


@pytest.fixture
def mnli(tmp_path):
    folder = tmp_path / "MNLI"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in (
        "train",
        "dev_matched",
        "dev_mismatched",
        "test_matched",
        "test_mismatched",
        "diagnostic",
    ):
        lines = [f"{i}\t{sentence(rng)}\t{sentence(rng)}\t{LABELS[i % 3]}" for i in range(12)]
        (folder / f"{name}.tsv").write_text("\n".join([MNLI_HEADER, *lines]) + "\n")
    return folder


def test_mnli_and_the_diagnostic_set(mnli, tiny_base_folder, tmp_path):
    out = tmp_path / "out"
    assert (
        run(
            "MNLI",
            mnli,
            tiny_base_folder,
            out,
            "--do_train",
            "--do_eval",
            "--do_predict",
            "--num_train_epochs=2",
        )
        is None
    )
    names = [line.split(" = ")[0] for line in (out / "eval_results.txt").read_text().splitlines()]
    assert names == [
        "eval_accuracy",
        "eval_loss",
        "eval_mismatched_accuracy",
        "eval_mismatched_loss",
        "global_step",
    ]
    assert {path.name for path in out.glob("*.tsv")} == {
        "MNLI-m.tsv",
        "MNLI-mm.tsv",
        "eval_classes.tsv",
        "eval_classes_mismatched.tsv",
        "test_results.tsv",
        "test_results_mismatched.tsv",
    }
    assert (
        run(
            "AX",
            mnli,
            tiny_base_folder,
            tmp_path / "ax",
            "--do_predict",
            f"--adapter_dir={out}/adapter",
        )
        is None
    )
    lines = (tmp_path / "ax" / "AX.tsv").read_text().splitlines()
    assert len(lines) == 13 and lines[1].split("\t")[1] in LABELS


def test_the_diagnostic_set_takes_adapters_of_mnli_only(mnli, tiny_base_folder, tmp_path):
    error = run("AX", mnli, tiny_base_folder, tmp_path / "ax", "--do_train")
    assert "'ax' has no train data. Predict it with an adapter for 'mnli'" in error
    train(
        write_mrpc(tmp_path / "MRPC"), tiny_base_folder, tmp_path / "mrpc", "--num_train_epochs=0.5"
    )
    error = run(
        "AX",
        mnli,
        tiny_base_folder,
        tmp_path / "ax",
        "--do_predict",
        f"--adapter_dir={tmp_path}/mrpc/adapter",
    )
    assert "trained for the task 'mrpc'" in error and "Received: 'mnli'" in error


@pytest.fixture
def spam(tmp_path):
    folder = tmp_path / "sms"
    folder.mkdir()
    rng = np.random.default_rng(0)
    lines = [f"{('ham', 'spam')[i % 2]}\t{sentence(rng)} {i}" for i in range(200)]
    (folder / "SMSSpamCollection").write_text("\n".join(lines) + "\n")
    return folder


def test_an_undivided_task_is_divided_alike_every_time(spam, tiny_base_folder, tmp_path):
    out = tmp_path / "out"
    assert (
        run(
            "sms_spam_collection",
            spam,
            tiny_base_folder,
            out,
            "--do_train",
            "--do_eval",
            "--do_predict",
            "--num_train_epochs=1",
            "--seed=3",
        )
        is None
    )
    first = json.loads((out / "run.json").read_text())
    assert first["examples"] == {"train": 160, "dev": 20, "test": 20}
    assert set(first["test"]) == {"test_accuracy", "test_macro_f1", "test_loss"}
    assert (out / "test_metrics.txt").read_text().startswith("test_accuracy = ")
    assert (
        run(
            "sms_spam_collection",
            spam,
            tiny_base_folder,
            tmp_path / "again",
            "--do_eval",
            f"--adapter_dir={out}/adapter",
        )
        is None
    )
    again = json.loads((tmp_path / "again" / "run.json").read_text())
    assert again["eval"] == first["eval"]
    assert again["data_sha256"]["dev"] == first["data_sha256"]["dev"]
    error = run(
        "sms_spam_collection",
        spam,
        tiny_base_folder,
        tmp_path / "other",
        "--do_eval",
        f"--adapter_dir={out}/adapter",
        "--split_seed=1",
    )
    assert "trained with --split_seed=0" in error


def test_tensorflow_datasets_as_source(tiny_base_folder, tmp_path):
    write_tfds(tmp_path / "data", "rte")
    assert (
        run(
            "RTE",
            tmp_path / "data",
            tiny_base_folder,
            tmp_path / "out",
            "--do_train",
            "--do_eval",
            "--do_predict",
            "--data_source=tfds",
            "--train_batch_size=2",
        )
        is None
    )
    assert (tmp_path / "out" / "RTE.tsv").exists()
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["examples"] == {"train": 2, "dev": 2, "test": 2}


@pytest.mark.long
def test_run_json_repeats_the_run(tiny_base_folder, tmp_path, caplog, capsys):
    mrpc = write_mrpc(tmp_path / "MRPC")
    out = train(
        mrpc,
        tiny_base_folder,
        tmp_path / "out",
        "--do_eval",
        "--num_train_epochs=2",
        "--seed=7",
        "--adapter_size=3",
        "--learning_rate=2e-3",
        "--max_train_examples=40",
    )
    assert command(f"--config={out}/run.json", f"--output_dir={tmp_path}/again") is None
    # All steps in one call would leave no call to measure after the first.
    assert not re.search(r"step 10/10 .* 0 examples/s", capsys.readouterr().out)
    for name in ("adapter/adapter.safetensors", "eval_results.txt"):
        assert (out / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    first, again = (
        json.loads((folder / "run.json").read_text()) for folder in (out, tmp_path / "again")
    )
    # An evaluation repeats with the adapter that it read.
    assert (
        command(
            "--task_name=mrpc",
            "--do_eval",
            f"--data_dir={mrpc}",
            "--max_seq_length=16",
            *base_flags(tiny_base_folder),
            f"--adapter_dir={out}/adapter",
            f"--output_dir={tmp_path}/scored",
        )
        is None
    )
    assert command(f"--config={tmp_path}/scored/run.json", f"--output_dir={tmp_path}/twice") is None
    for folder in ("scored", "twice"):
        assert (tmp_path / folder / "eval_results.txt").read_bytes() == (
            out / "eval_results.txt"
        ).read_bytes()
    for name in ("adapter", "base", "data_sha256", "eval", "labels", "learning_rate", "parameters"):
        assert first[name] == again[name], name
    assert "does not repeat" not in caplog.text
    write_mrpc(mrpc, rows=48)
    assert command(f"--config={out}/run.json", f"--output_dir={tmp_path}/other") is None
    assert "that run used other train examples" in caplog.text


def test_one_prediction_for_all_is_flagged(tiny_base_folder, tmp_path, caplog):
    train(
        write_mrpc(tmp_path / "MRPC"),
        tiny_base_folder,
        tmp_path / "out",
        "--do_eval",
        "--num_train_epochs=0.5",
        "--learning_rate=1e-9",
    )
    assert "All examples of dev have the same prediction" in caplog.text
