"""Tables with their training rows on the disk, and tables of many files, as commands read them."""

import gzip
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy

import adapter_bert_tf as abt
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.runners.classification import large_tables
from adapter_bert_tf.runners.classification.chosen_task import task_of
from tests import support
from tests.runners.own_data_test import NAMES, examples, write
from tests.runs import base_flags, command

STORED = "--in_memory_mb=0"
SMALL = ("--max_seq_length=16", "--train_batch_size=8", "--learning_rate=1e-2")


def run(base, out, *more):
    return command("--task_name=tsv", *base_flags(base), f"--output_dir={out}", *SMALL, *more)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A folder with a table, `train.tsv` and `dev.tsv`, and the same rows in `parts/` of it."""
    folder = write(tmp_path_factory.mktemp("large") / "data", splits=("train", "dev", "test"))
    header, *lines = (folder / "train.tsv").read_text().splitlines(keepends=True)
    (folder / "parts").mkdir()
    for number in range(3):
        text = header + "".join(lines[40 * number : 40 * number + 40])
        (folder / "parts" / f"part-{number}.tsv.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def weights(out):
    return safetensors.numpy.load_file(f"{out}/adapter/adapter.safetensors")


def record(out):
    with open(f"{out}/run.json") as file:
        return json.load(file)


NAMED = {
    "a pattern": "{}/parts/part-*.tsv.gz",
    "a folder": "{}/parts",
    "files": "{0}/parts/part-0.tsv.gz,{0}/parts/part-1.tsv.gz,{0}/parts/part-2.tsv.gz",
}


@pytest.mark.parametrize("case", support.seldom(NAMED, ("a pattern",)))
def test_files_that_are_named_are_one_table(case, parts, tiny_base_folder, tmp_path, capsys):
    named = (f"--train_file={NAMED[case].format(parts)}", f"--dev_file={parts}/dev.tsv")
    more = (*NAMES, *named, "--do_train", "--do_eval", "--dry_run")
    for stored in ((), (STORED,)):
        assert run(tiny_base_folder, tmp_path / "out", *more, *stored) is None
        printed = capsys.readouterr().out
        assert examples(printed) == {"train": 120, "dev": 24}
        assert ("120 training rows, read in" in printed) == bool(stored)


@pytest.mark.long
def test_named_files_train_to_the_bytes_of_the_folder(parts, tiny_base_folder, tmp_path):
    more = (*NAMES, "--do_train", "--do_eval", "--num_train_epochs=1")
    named = (f"--train_file={parts}/parts", f"--dev_file={parts}/dev.tsv")
    assert run(tiny_base_folder, tmp_path / "a", *more, f"--data_dir={parts}") is None
    assert run(tiny_base_folder, tmp_path / "b", *more, *named) is None
    first, second = (weights(tmp_path / name) for name in "ab")
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert record(tmp_path / "a")["data_sha256"] == record(tmp_path / "b")["data_sha256"]


REFUSED = {
    "folds": (["--folds=3"], "--folds needs all training rows in memory"),
    "a subset": (["--max_train_examples=10"], "--max_train_examples needs all training rows"),
    "frozen layers": (["--cache_frozen", "--frozen_layers=1"], "--cache_frozen needs all"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_needs_all_rows_is_refused(case, parts, tiny_base_folder, tmp_path):
    more, message = REFUSED[case]
    flags = (*NAMES, f"--data_dir={parts}", "--do_train", STORED, *more)
    assert message in (run(tiny_base_folder, tmp_path / "out", *flags) or "")
    assert not os.path.exists(tmp_path / "out" / "features")


def test_several_tasks_need_memory(parts, tiny_base_folder, tmp_path):
    (tmp_path / "tasks.yaml").write_text(
        f"one: {{data_dir: {parts}, text_a_column: first, label_column: answer}}\n"
        f"two: {{data_dir: {parts}, text_a_column: second, label_column: answer}}\n"
    )
    said = command(
        f"--task_name={tmp_path}/tasks.yaml",
        "--tuning=multitask_adapters",
        "--do_train",
        STORED,
        *SMALL,
        *base_flags(tiny_base_folder),
        f"--output_dir={tmp_path}/out",
    )
    assert "'one'" in said and "Training several tasks together needs all training rows" in said


WRONG = {
    "no such file": (["--train_file={}/none-*.csv"], "--train_file: No file matches"),
    "no table": (["--train_file={}/a.txt"], "--train_file: A table's name ends with .csv"),
    "another task": (["--train_file={}/train.tsv", "--task_name=mrpc"], "for --task_name=tsv"),
    "no test file": (["--train_file={}/train.tsv", "--do_predict"], "A file is missing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_files_that_are_missing_or_no_tables_are_refused(case, parts, tiny_base_folder, tmp_path):
    (parts / "a.txt").write_text("x")
    flags, message = WRONG[case]
    flags = [flag.format(parts) for flag in flags]
    said = run(tiny_base_folder, tmp_path / "out", *NAMES, "--do_train", *flags)
    assert message in (said or "")


@pytest.mark.long
def test_a_stored_table_is_trained_and_its_dev_set_is_found_again(
    parts, tiny_base_folder, tmp_path, capsys
):
    out = tmp_path / "out"
    flags = (*NAMES, f"--train_file={parts}/train.tsv", "--do_eval")
    more = ("--do_train", STORED, "--num_train_epochs=12", "--class_weights=balanced")
    assert run(tiny_base_folder, out, *flags, *more) is None
    printed, made = capsys.readouterr().out, record(out)
    count = made["examples"]
    assert count["train"] + count["dev"] == 120 and examples(printed) == count
    assert made["eval"]["eval_accuracy"] > 0.8
    config = json.loads((out / "adapter" / "adapter_config.json").read_text())
    assert config["dev_by_hash"] is True and config["name"] == "data"
    again = (*flags, f"--adapter_dir={out}/adapter")
    assert run(tiny_base_folder, tmp_path / "again", *again) is None
    assert record(tmp_path / "again")["eval"] == made["eval"]
    kept = (f"--features_dir={out}/features", "--dry_run")
    assert run(tiny_base_folder, tmp_path / "third", *flags, *more, *kept) is None
    assert "from an earlier run" in capsys.readouterr().out


@pytest.mark.long
def test_python_reads_files_too(parts, tiny_base_folder, tmp_path):
    trained = abt.train(
        parts / "train.tsv",
        "answer",
        dev=str(parts / "dev.tsv"),
        text_a_column="second",
        output_dir=tmp_path / "out",
        base_model=str(tiny_base_folder),
        max_seq_length=16,
        num_train_epochs=1,
        in_memory_mb=0,
    )
    assert record(tmp_path / "out")["examples"] == {"train": 120, "dev": 24}
    assert "eval_accuracy" in trained.results


@pytest.mark.long
def test_a_run_that_was_killed_ends_with_the_same_bytes(parts, tiny_base_folder, tmp_path):
    """Killed in the middle of an epoch: the rows are found again, and are trained in one order."""
    flags = [*NAMES, f"--train_file={parts}/train.tsv", "--do_train", "--do_eval", STORED]
    flags += ["--task_name=tsv", *SMALL, *base_flags(tiny_base_folder), "--num_train_epochs=4"]
    flags += ["--save_checkpoints_steps=4"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    printed = []
    for name, program in (("whole", RUN), ("cut", KILLED), ("cut", RUN)):
        words = [sys.executable, "-c", program, *flags, f"--output_dir={tmp_path}/{name}"]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        expected = -signal.SIGKILL if program == KILLED else 0
        assert done.returncode == expected, done.stderr[-2000:]
        printed.append(done.stdout)
    assert record(tmp_path / "cut")["resumed_from_step"] == 16
    assert "training rows, read in" in printed[0] and "from an earlier run" in printed[2]
    whole, cut = (weights(tmp_path / name) for name in ("whole", "cut"))
    assert all(np.array_equal(whole[name], cut[name]) for name in whole)
    assert record(tmp_path / "whole")["eval"] == record(tmp_path / "cut")["eval"]


RUN = "import run_classifier; run_classifier.app.run(run_classifier.main)"
KILLED = f"""
import os, signal
from adapter_bert_tf.training.progress import Progress
end = Progress.on_train_batch_end
def kill(progress, batch, logs=None):
    end(progress, batch, logs)
    if progress.step == 19:
        os.kill(os.getpid(), signal.SIGKILL)
Progress.on_train_batch_end = kill
{RUN}
"""


MEMORY = """
import resource, sys
import numpy as np
from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.data.on_disk.batches import train_batches
from adapter_bert_tf.data.tokenization import TextEncoder
from tests.data.on_disk import tables

def resident():
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * resource.getpagesize() / 2**20

base, folder = sys.argv[1:]
encoder = TextEncoder(read_vocabulary(f"{base}/vocab.txt"), 32)
rng = np.random.default_rng(0)
most = []
for rows in (24_000, 12_000, 48_000):
    with open(f"{folder}/train.tsv", "w") as file:
        file.write("a\\tlabel\\n")
        for i, line in enumerate(rng.choice(["the", "cat", "sat", "red"], (rows, 20)).tolist()):
            file.write(" ".join(line) + f"\\t{i % 3}\\n")
    task = tables.own_task("a", label="label")
    table = tables.stored(folder, task, encoder, f"{folder}/cache", key=rows)
    training = tables.TrainingRows(table, lambda numbers: numbers)
    for _ in train_batches(training, 32, 100, 0, 32):
        pass
    assert len(table) == rows
    most.append(resident())
print(*most)
"""


@pytest.mark.long
def test_memory_does_not_grow_with_the_rows(tiny_base_folder, tmp_path):
    """The first table warms everything up: it has enough rows for the tokenizer to be traced."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = [sys.executable, "-c", MEMORY, tiny_base_folder, str(tmp_path)]
    printed = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert printed.returncode == 0, printed.stderr[-2000:]
    _, small, large = map(float, printed.stdout.split())
    assert large - small < 10, f"48,000 rows take {large - small:.0f} MB more than 12,000"


LARGE = {
    "too large": ({}, True),
    "a limit above it": ({"in_memory_mb": 900}, False),
    "folds": ({"folds": 3}, False),
    "a subset": ({"max_train_examples": 10}, False),
    "an evaluation": ({"do_train": False, "do_eval": True}, False),
}


@pytest.mark.parametrize("case", LARGE)
def test_large_tables_are_stored_unless_all_rows_are_needed(case, tmp_path, monkeypatch):
    values, expected = LARGE[case]
    (tmp_path / "train.tsv").write_text("text\tlabel\nfine\tgood\n")
    monkeypatch.setattr(large_tables, "unpacked_size", lambda *source: 300_000_000)
    values = {"task_name": "tsv", "data_dir": str(tmp_path), "do_train": True, **values}
    values = {"text_a_column": "text", "label_column": "label", **values}
    config = RunConfig.from_values(Command.CLASSIFIER, values, values)
    assert large_tables.is_stored(config, task_of(config)) == expected
