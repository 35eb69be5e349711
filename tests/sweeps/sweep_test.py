"""`--num_trials` and `--sweep`: the grid, the choice, restarts, and what is left behind."""

import csv
import json
import math
import re
import shutil
import sys

import pytest
import safetensors.numpy
import tensorflow as tf

from adapter_bert_tf.base import loading
from adapter_bert_tf.sweeps import best_run, grid, results, sweep
from tests import processes
from tests.runs import base_flags, command, train, try_to_train, write_mrpc


@pytest.fixture
def mrpc(tmp_path):
    return write_mrpc(tmp_path / "MRPC")


def _grid(folder, text):
    (folder / "grid.yaml").write_text(text)
    return f"--sweep={folder}/grid.yaml"


def _rows(out):
    with (out / "sweep.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_trials_report_median_and_range(mrpc, tiny_base_folder, tmp_path):
    out = train(
        mrpc,
        tiny_base_folder,
        tmp_path / "out",
        "--do_eval",
        "--num_train_epochs=3",
        "--learning_rate=1e-2",
        "--num_trials=3",
        "--seed=5",
    )
    rows = _rows(out)
    assert [row["seed"] for row in rows] == ["5", "6", "7"]
    accuracies = sorted(float(row["eval_accuracy"]) for row in rows)
    results = dict(re.findall(r"^(\w+) = (.*)$", (out / "eval_results.txt").read_text(), re.M))
    assert [float(results[f"eval_accuracy{end}"]) for end in ("_min", "", "_max")] == accuracies
    best = max(rows, key=lambda row: float(row["eval_accuracy"]))["seed"]
    assert (out / "adapter" / "adapter.safetensors").read_bytes() == (
        out / f"seed={best}" / "adapter" / "adapter.safetensors"
    ).read_bytes()


@pytest.mark.slow
def test_a_run_of_a_sweep_equals_the_run_by_itself(mrpc, tiny_base_folder, tmp_path):
    sweeping = _grid(tmp_path, "adapter_size: [2, 4]\n")
    out = train(
        mrpc,
        tiny_base_folder,
        tmp_path / "out",
        "--do_eval",
        "--num_train_epochs=1",
        sweeping,
        "--num_trials=2",
    )
    for size, seed in ((2, 0), (4, 1)):
        alone = train(
            mrpc,
            tiny_base_folder,
            tmp_path / f"{size}",
            "--do_eval",
            "--num_train_epochs=1",
            f"--adapter_size={size}",
            f"--seed={seed}",
        )
        files = [
            folder / "adapter" / "adapter.safetensors"
            for folder in (alone, out / f"adapter_size={size},seed={seed}")
        ]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_a_grid_of_any_flags(mrpc, tiny_base_folder, tmp_path, monkeypatch, capsys, caplog):
    reads = []
    monkeypatch.setattr(
        loading,
        "read_weights",
        lambda path, read=loading.read_weights: reads.append(path) or read(path),
    )
    sweeping = _grid(
        tmp_path, "learning_rate: [1e-5, 1e-2]\ntuning: [adapters, head]\nnum_train_epochs: 2\n"
    )
    out = train(mrpc, tiny_base_folder, tmp_path / "out", "--do_eval", "--do_predict", sweeping)
    assert len(reads) == 1  # The base is loaded once.
    rows = _rows(out)
    assert [(row["learning_rate"], row["tuning"]) for row in rows] == [
        ("1e-05", "adapters"),
        ("1e-05", "head"),
        ("0.01", "adapters"),
        ("0.01", "head"),
    ]
    assert {row["num_train_epochs"] for row in rows} == {"2.0"}
    assert all(row["status"] == "finished" for row in rows)
    best = max(float(row["eval_accuracy"]) for row in rows)
    config = json.loads((out / "adapter" / "adapter_config.json").read_text())
    assert config["metric"]["value"] == best
    assert (out / "MRPC.tsv").exists()
    assert "Not used" not in caplog.text
    said = capsys.readouterr().out
    assert "Best on dev (eval_accuracy" in said and "3 of 4 runs are done, ETA 0:" in said
    record = json.loads((out / "run.json").read_text())
    assert len(record["runs"]) == 4 and len(record["later_runs"]) == 1
    hyperparameters = {"_hparams_/session_start_info", "eval_accuracy"}
    assert all(hyperparameters <= tags_of(path.parent) for path in out.glob("*=*/run.json"))
    for fewer in ("tuning: [head]", "learning_rate: [1e-5]\ntuning: [adapters]"):
        error = try_to_train(mrpc, tiny_base_folder, out, "--do_eval", _grid(tmp_path, fewer))
        assert "holds another sweep" in error


@pytest.mark.long
def test_a_grid_with_more_values_adds_runs(mrpc, tiny_base_folder, tmp_path, capsys):
    out, options = tmp_path / "out", ("--do_eval", "--num_train_epochs=1")
    train(mrpc, tiny_base_folder, out, *options, _grid(tmp_path, "adapter_size: [2, 4]"))
    before = _rows(out)
    capsys.readouterr()
    more = _grid(tmp_path, "adapter_size: [8, 4, 2]")
    train(mrpc, tiny_base_folder, out, *options, more)
    said = capsys.readouterr().out
    assert said.count("What --tuning=adapters trains") == 1
    assert _rows(out)[1:] == before[::-1]
    # As if it had been interrupted: the record of the first sweep is still there.
    (out / "adapter_size=8,seed=0" / "run.json").unlink()
    train(mrpc, tiny_base_folder, out, *options, more)
    assert len(_rows(out)) == 3
    error = try_to_train(mrpc, tiny_base_folder, out, *options, more, "--learning_rate=1e-2")
    assert "holds another sweep" in error


@pytest.mark.slow
def test_finished_runs_are_skipped(mrpc, tiny_base_folder, tmp_path, capsys):
    arguments = ["--do_eval", "--num_train_epochs=1", "--num_trials=3"]
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *arguments)
    before = _rows(out)
    (out / "seed=1" / "run.json").unlink()  # As if the machine had stopped here.
    (out / "sweep.csv").unlink()
    capsys.readouterr()
    train(mrpc, tiny_base_folder, out, *arguments)
    assert capsys.readouterr().out.count("What --tuning=adapters trains") == 1
    timings = {"seconds", "examples_per_second"}
    assert [{k: v for k, v in row.items() if k not in timings} for row in _rows(out)] == [
        {k: v for k, v in row.items() if k not in timings} for row in before
    ]
    # What was taken up again knows only the time since.
    assert [row["seconds"] == "" for row in _rows(out)] == [False, True, False]


@pytest.mark.slow
def test_one_that_overwrites_goes_on_too(mrpc, tiny_base_folder, tmp_path, monkeypatch, capsys):
    """Who restarts a preempted command wants no other; a new one begins with its first run."""
    more = ("--do_eval", "--num_train_epochs=1", "--num_trials=3")
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *more)
    before = tree(out)
    run_plan, runs = sweep.run_plan, iter([sweep.run_plan])  # One, and no more.
    monkeypatch.setattr(sweep, "run_plan", lambda runner, plan: next(runs)(runner, plan))
    assert try_to_train(mrpc, tiny_base_folder, out, *more, "--overwrite")
    assert not (out / "run.json").exists() and not (out / "seed=2" / "run.json").exists()
    monkeypatch.setattr(sweep, "run_plan", run_plan)
    capsys.readouterr()
    train(mrpc, tiny_base_folder, out, *more, "--overwrite")
    assert re.findall(r"Run (\d) of 3", capsys.readouterr().out) == ["2", "3"]
    assert tree(out) == before
    train(mrpc, tiny_base_folder, out, *more, "--overwrite")
    assert re.findall(r"Run (\d) of 3", capsys.readouterr().out) == ["1", "2", "3"]


@pytest.mark.slow
def test_one_that_was_stopped_before_its_predictions_goes_on(
    mrpc, tiny_base_folder, tmp_path, monkeypatch, capsys
):
    more = ("--do_eval", "--do_predict", "--num_train_epochs=1", "--num_trials=2", "--overwrite")
    with monkeypatch.context() as changed:
        changed.setattr(best_run, "apply_best", lambda *_: next(iter(())))
        assert try_to_train(mrpc, tiny_base_folder, tmp_path / "out", *more)
    assert not (tmp_path / "out" / "MRPC.tsv").exists()
    assert "eval_accuracy_max" in (tmp_path / "out" / "eval_results.txt").read_text()
    capsys.readouterr()
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *more)
    assert not re.findall(r"Run (\d) of 2", capsys.readouterr().out)
    assert (out / "MRPC.tsv").exists()
    train(mrpc, tiny_base_folder, out, *more)
    assert re.findall(r"Run (\d) of 2", capsys.readouterr().out) == ["1", "2"]


def tree(folder):
    """Contents of the adapters below a folder, and of the results."""
    names = ("adapter.safetensors", "eval_results.txt")
    return {path: path.read_bytes() for path in folder.rglob("*") if path.name in names}


@pytest.mark.parametrize("action", ["--do_predict", "--do_export"])
def test_random_weights_are_refused_before_the_first_run(action, mrpc, tiny_base_folder, tmp_path):
    vocabulary, config, _ = base_flags(tiny_base_folder)
    words = ("--task_name=mrpc", f"--data_dir={mrpc}", vocabulary, config, "--max_seq_length=16")
    more = ("--do_train", "--do_eval", "--num_trials=2", action, f"--output_dir={tmp_path}/out")
    said = command(*words, *more)
    assert f"{action} of a sweep need a base whose weights can be loaded again" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_runs_on_other_data_are_done_again(mrpc, tiny_base_folder, tmp_path, capsys):
    arguments = ["--do_eval", "--num_train_epochs=1", "--num_trials=2"]
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *arguments)
    write_mrpc(mrpc, rows=48)
    train(mrpc, tiny_base_folder, out, *arguments)
    assert capsys.readouterr().out.count("What --tuning=adapters trains") == 4
    for seed in range(2):
        record = json.loads((out / f"seed={seed}" / "run.json").read_text())
        assert record["examples"]["train"] == 48


def tags_of(folder):
    """The names in TensorBoard's files."""
    return {
        value.tag
        for path in folder.glob("events.out.tfevents.*")
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
    }


@pytest.mark.long
@pytest.mark.parametrize(
    ("rate", "flags"),
    [
        ("1e30", ()),
        # An evaluation exceeds float16 while the scale of the loss still falls.
        ("30.0", ("--precision=float16", "--eval_every_steps=1")),
    ],
)
def test_a_diverged_run_is_noted_and_not_chosen(rate, flags, mrpc, tiny_base_folder, tmp_path):
    sweeping = _grid(tmp_path, f"learning_rate: [{rate}, 1e-3]\n")
    options = ("--do_eval", "--num_train_epochs=1", sweeping, *flags)
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *options)
    assert [row["status"] for row in _rows(out)] == ["diverged", "finished"]
    assert safetensors.numpy.load_file(out / "adapter" / "adapter.safetensors")


def test_the_papers_grid():
    assert grid.PAPER == {"learning_rate": [3e-5, 3e-4, 3e-3], "num_train_epochs": [3, 20]}


def test_the_setting_is_chosen_by_its_median_and_then_the_seed():
    settings = [{"a": 1}] * 3 + [{"a": 2}] * 3
    scores, failed = [0.1, 0.2, 0.9, 0.5, 0.4, 0.6], -math.inf
    assert results.choose(settings, scores) == 5
    # A setting whose seeds mostly failed does not win by the one that did not.
    assert results.choose(settings, [failed, failed, 0.9, *scores[3:]]) == 5
    assert results.choose(settings[:2], [failed, failed]) is None
    assert results.summarize([{"eval_m": m} for m in (3, 1, 2)]) == {
        "eval_m": 2,
        "eval_m_min": 1,
        "eval_m_max": 3,
    }


BAD = {
    "unknown flag": ("learning_rat: [1]", r"unknown flags \['learning_rat'\]"),
    "wrong value": ("adapter_size: [2, many]", "--adapter_size=many"),
    "out of range": ("adapter_size: [0]", "--adapter_size=0"),
    "what is common": ("task_name: [rte, mrpc]", "cannot vary task_name"),
    "no grid": ("- 1", "must hold"),
    "empty": ("", "It is empty"),
    "no values": ("adapter_size: []", "There are no values of"),
    "twice": ("learning_rate: [1e-3, 0.001]", "the same setting comes twice"),
    "too deep": ("adapter_layers: [0, 0-5]", "must be below 2"),
    "no such layer": ("tuning: top_k\ntop_k: [1, 3]", "--top_k must be 1 to 2"),
    "too long": ("max_seq_length: [8, 99]", "position table"),
    "no step": ("num_train_epochs: [1, 0.001]", "No step to train"),
    "negative rate": ("learning_rate: [-1]", "must be a number above 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_grid_stops_before_the_first_run(case, mrpc, tiny_base_folder, tmp_path):
    text, message = BAD[case]
    error = command(
        "--task_name=mrpc",
        "--do_train",
        "--do_eval",
        f"--data_dir={mrpc}",
        *base_flags(tiny_base_folder),
        f"--output_dir={tmp_path}/out",
        "--max_seq_length=16",
        _grid(tmp_path, text),
    )
    assert error and error.startswith("error: ") and re.search(message, error, re.S), error
    assert not (tmp_path / "out").exists()


def test_trials_need_a_development_set(mrpc, tiny_base_folder, tmp_path):
    error = command(
        "--task_name=mrpc",
        "--do_train",
        "--num_trials=2",
        f"--data_dir={mrpc}",
        f"--output_dir={tmp_path}/out",
        *base_flags(tiny_base_folder),
    )
    assert "Add --do_train and --do_eval" in error


def test_what_to_predict_must_be_there_before_training(mrpc, tiny_base_folder, tmp_path):
    (mrpc / "test.tsv").unlink()
    error = command(
        "--task_name=mrpc",
        "--do_train",
        "--do_eval",
        "--do_predict",
        f"--data_dir={mrpc}",
        *base_flags(tiny_base_folder),
        "--num_trials=2",
        f"--output_dir={tmp_path}/out",
        "--max_seq_length=16",
    )
    assert "test.tsv" in error and not (tmp_path / "out").exists()


@pytest.mark.long
def test_predictions_are_made_as_the_best_run_was(mrpc, tiny_base_folder, tmp_path):
    sweeping = _grid(tmp_path, "max_seq_length: [8]\nadapter_layers: [null]\n")
    out = train(
        mrpc,
        tiny_base_folder,
        tmp_path / "out",
        "--do_eval",
        "--do_predict",
        "--num_train_epochs=0.5",
        sweeping,
    )
    (later,) = json.loads((out / "run.json").read_text())["later_runs"]
    assert later["flags"]["max_seq_length"] == 8
    assert (out / "max_seq_length=8,adapter_layers=default,seed=0").is_dir()


@pytest.mark.long
def test_runs_with_other_flags_or_damaged_are_done_again(mrpc, tiny_base_folder, tmp_path, capsys):
    arguments = ["--do_eval", "--num_train_epochs=0.5", "--num_trials=3"]
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *arguments)
    record = json.loads((out / "seed=0" / "run.json").read_text())
    record["flags"]["train_batch_size"] = 99
    (out / "seed=0" / "run.json").write_text(json.dumps(record))
    (out / "seed=1" / "run.json").write_text("{")
    shutil.rmtree(out / "seed=2" / "adapter")
    capsys.readouterr()
    train(mrpc, tiny_base_folder, out, *arguments)
    assert capsys.readouterr().out.count("What --tuning=adapters trains") == 3


WITHOUT_EFFECT = {  # Flags, and what the settings that have no effect lack.
    "parallel_trials": ((), "without --num_trials, --folds or --sweep"),
    "workers": ((), "without --num_trials, --folds or --sweep"),
    "sweep_minutes": ((), "without --num_trials, --folds or --sweep"),
    "gpus_per_trial": ((), "without --num_trials, --folds or --sweep"),
    "cpus_per_trial": (("--do_eval", "--num_trials=2"), "without a Ray cluster"),
}


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_settings_of_many_runs_without_effect_are_named(
    name, mrpc, tiny_base_folder, tmp_path, caplog
):
    flags, lacking = WITHOUT_EFFECT[name]
    train(mrpc, tiny_base_folder, tmp_path / "out", f"--{name}=2", *flags, "--dry_run")
    assert f"--{name} has no effect {lacking}" in caplog.text


def test_dry_run_of_a_sweep_writes_nothing(mrpc, tiny_base_folder, tmp_path):
    train(mrpc, tiny_base_folder, tmp_path / "out", "--do_eval", "--num_trials=2", "--dry_run")
    assert not (tmp_path / "out").exists()


def start_on_two_devices(text, mrpc, base, out):
    """A sweep in a process of two logical devices; returns the finished process."""
    grid_file = out.parent / f"{out.name}.yaml"
    grid_file.write_text(text)
    arguments = [
        sys.executable, "tests/launch.py", "2", "run_classifier.py", "--task_name=mrpc",
        f"--data_dir={mrpc}", *base_flags(base), "--do_train", "--do_eval",
        "--num_train_epochs=1", "--max_seq_length=16", f"--sweep={grid_file}",
        f"--output_dir={out}",
    ]  # fmt: skip
    return processes.run(arguments)


@pytest.mark.slow
def test_a_sweep_over_devices_uses_them(mrpc, tiny_base_folder, tmp_path):
    text = "distribution: [one_device, mirrored]\ntrain_batch_size: [8]"
    done = start_on_two_devices(text, mrpc, tiny_base_folder, tmp_path / "out")
    assert done.returncode == 0, done.stderr[-2000:]
    found = {
        record["flags"]["distribution"]: record["replicas"]
        for path in (tmp_path / "out").glob("*/run.json")
        for record in [json.loads(path.read_text())]
    }
    assert found == {"one_device": 1, "mirrored": 2}


@pytest.mark.long
def test_a_batch_that_the_replicas_cannot_divide_stops_a_sweep_before_its_first_run(
    mrpc, tiny_base_folder, tmp_path
):
    text = "distribution: [mirrored]\ntrain_batch_size: [8, 9]"
    done = start_on_two_devices(text, mrpc, tiny_base_folder, tmp_path / "out")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "--train_batch_size=9 must be a multiple of the 2 replicas" in done.stderr
    assert "Run 1" not in done.stdout and not (tmp_path / "out").exists()
