"""`run_classifier.py`: whole runs on a tiny base, and every bad input as one message."""

import json
import math
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import run_classifier
from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.base import load_base
from adapter_bert_tf.config import settings
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.tasks import find_task
from adapter_bert_tf.training import optimizer, tuning
from adapter_bert_tf.training.device import strategy
from tests import processes, support
from tests.runs import MRPC_HEADER, base_flags, command, mrpc_row, train, try_to_train, write_mrpc

ROOT = pathlib.Path(run_classifier.__file__).parent
# adapter-bert's README command, with its flags as they stand there.
README_FLAGS = [
    "--task_name=MRPC",
    "--do_train=true",
    "--do_eval=true",
    "--max_seq_length=16",
    "--train_batch_size=32",
    "--learning_rate=3e-4",
    "--num_train_epochs=5.0",
]


@pytest.fixture
def mrpc(tmp_path):
    return write_mrpc(tmp_path / "MRPC")


def test_adapter_berts_readme_command_runs_unchanged(mrpc, tiny_base_folder, tmp_path, capsys):
    error = command(
        *README_FLAGS,
        f"--data_dir={mrpc}",
        *base_flags(tiny_base_folder),
        f"--output_dir={tmp_path}/out",
    )
    assert error is None
    printed = capsys.readouterr().out
    for line in (
        "What --tuning=adapters trains:",
        "***** Total Parameters = ",
        "***** Total Trainable Parameters = ",
        "step 10/10  loss ",
        "***** Eval results *****",
    ):
        assert line in printed
    results = (tmp_path / "out" / "eval_results.txt").read_text()
    names = ["eval_accuracy", "eval_f1", "eval_loss", "global_step"]
    assert re.findall(r"^(\w+) = [\d.]+$", results, re.M) == names
    assert "global_step = 10\n" in results


def test_what_a_run_leaves(finished_run):
    out = finished_run.out
    names = {path.name.split(".out.")[0] for path in out.iterdir()}
    assert names == {
        "adapter",
        "checkpoints",
        "eval_classes.tsv",
        "eval_details.json",
        "eval_results.txt",
        "test_results.tsv",
        "MRPC.tsv",
        "metrics.jsonl",
        "run.json",
        "events",
    }
    rows = [
        list(map(float, line.split("\t")))
        for line in (out / "test_results.tsv").read_text().splitlines()
    ]
    np.testing.assert_allclose(np.sum(rows, axis=1), np.ones(8), atol=1e-5)
    submission = (out / "MRPC.tsv").read_text().splitlines()
    assert submission[0] == "index\tprediction"
    assert [line.split("\t") for line in submission[1:]] == [
        [str(i), str(int(np.argmax(row)))] for i, row in enumerate(rows)
    ]
    run = json.loads((out / "run.json").read_text())
    assert run["parameters"]["trained"] < run["parameters"]["total"]
    assert run["flags"]["seed"] == 0 and run["examples"] == {"train": 64, "dev": 16, "test": 8}
    assert run["global_step"] == 8 and run["peak_memory_mb"] > 100
    assert set(run["data_sha256"]) == {"train", "dev", "test"}


def test_the_adapter_holds_what_was_trained(finished_run):
    out = finished_run.out
    config = json.loads((out / "adapter" / "adapter_config.json").read_text())
    assert config["labels"] == ["0", "1"] and config["metric"]["name"] == "accuracy"
    weights = safetensors.numpy.load_file(out / "adapter" / "adapter.safetensors")
    groups = {name.split("/")[0] for name in weights}
    assert groups == {"adapters", "bert", "head"}
    assert all("LayerNorm" in name for name in weights if name.startswith("bert/"))


@pytest.mark.parametrize(
    "tuning",
    support.seldom(["adapters", "full", "top_k", "layer_norm", "head"], ("adapters", "top_k")),
)
@pytest.mark.long
def test_every_method_is_evaluated_alike_by_a_new_run(tuning, mrpc, tiny_base_folder, tmp_path):
    out = train(
        mrpc,
        tiny_base_folder,
        tmp_path / "out",
        "--do_eval",
        "--num_train_epochs=4",
        f"--tuning={tuning}",
        "--top_k=1",
        "--learning_rate=1e-2",
    )
    error = command(
        "--task_name=mrpc",
        "--do_eval",
        f"--data_dir={mrpc}",
        *base_flags(tiny_base_folder),
        "--max_seq_length=16",
        f"--adapter_dir={out}/adapter",
        f"--output_dir={tmp_path}/again",
    )
    assert error is None
    first, second = (
        (folder / "eval_results.txt").read_text() for folder in (out, tmp_path / "again")
    )
    assert first == second


def test_it_learns(mrpc, tiny_base_folder, tmp_path):
    out = train(
        mrpc,
        tiny_base_folder,
        tmp_path / "out",
        "--do_eval",
        "--num_train_epochs=30",
        "--learning_rate=1e-2",
    )
    accuracy = re.search("eval_accuracy = (.*)", (out / "eval_results.txt").read_text())[1]
    assert float(accuracy) >= 0.9


@pytest.mark.long
def test_a_fresh_process_evaluates_the_same(finished_run, tiny_base_folder, tmp_path):
    out, mrpc = finished_run.out, finished_run.data
    again = processes.run(
        [
            sys.executable,
            "run_classifier.py",
            "--task_name=mrpc",
            "--do_eval",
            f"--data_dir={mrpc}",
            f"--base_model={tiny_base_folder}",
            "--max_seq_length=16",
            f"--adapter_dir={out}/adapter",
            f"--output_dir={tmp_path}/again",
        ]
    )
    assert again.returncode == 0, again.stderr
    assert (out / "eval_results.txt").read_text() == (
        tmp_path / "again" / "eval_results.txt"
    ).read_text()


def test_the_same_seed_gives_the_same_adapter(finished_run, mrpc, tiny_base_folder, tmp_path):
    """Also in another folder, and with nothing evaluated."""
    outs = [finished_run.out, *(tmp_path / str(seed) for seed in range(2))]
    for seed, out in enumerate(outs[1:]):
        train(mrpc, tiny_base_folder, out, "--num_train_epochs=1", f"--seed={seed}")
    contents = [(out / "adapter" / "adapter.safetensors").read_bytes() for out in outs]
    assert contents[0] == contents[1] != contents[2]


def evaluate_golden(task, folder, out):
    """Evaluates adapter-bert's own trained checkpoint; returns the error message, or None."""
    golden = support.GOLDEN
    return command(
        f"--task_name={task}",
        "--do_eval",
        f"--data_dir={folder}",
        "--max_seq_length=16",
        f"--vocab_file={golden}/vocab.txt",
        f"--bert_config_file={golden}/bert_config.json",
        f"--init_checkpoint={golden}/adapter_model.ckpt",
        f"--output_dir={out}",
    )


def golden_words():
    """Words of its vocabulary."""
    return [w for w in (support.GOLDEN / "vocab.txt").read_text().split() if w[0] not in "[#"]


def test_a_trained_adapter_bert_checkpoint_is_evaluated_directly(tmp_path):
    """Its head has three classes, as MNLI has; the results are those of its logits."""
    words, labels = golden_words(), find_task("mnli").labels
    pairs = [(words[i], " ".join(words[i + 1 : i + 1 + i % 5])) for i in range(24)]
    lines = [f"{i}\t{a}\t{b}\t{labels[i % 3]}" for i, (a, b) in enumerate(pairs)]
    for name in ("dev_matched", "dev_mismatched"):
        text = "\n".join(["index\tsentence1\tsentence2\tgold_label", *lines]) + "\n"
        (tmp_path / f"{name}.tsv").write_text(text)
    assert evaluate_golden("mnli", tmp_path, tmp_path / "out") is None
    results = (tmp_path / "out" / "eval_results.txt").read_text()
    base = load_base(str(support.GOLDEN / "adapter_model.ckpt"))
    model = Classifier(base.build_encoder(PRESETS["houlsby"]), 3)
    assert base.assign(model.named_variables()) == []
    logits = model(TextEncoder(base.vocabulary, 16).inputs(*map(list, zip(*pairs, strict=True))))
    right = logits.numpy().argmax(-1) == np.arange(24) % 3
    probabilities = tf.nn.softmax(logits).numpy()[np.arange(24), np.arange(24) % 3]
    found = dict(re.findall(r"^(\w+) = (.*)$", results, re.M))
    assert float(found["eval_accuracy"]) == pytest.approx(right.mean(), abs=1e-6)
    assert float(found["eval_loss"]) == pytest.approx(-np.log(probabilities).mean(), abs=1e-5)


def test_an_adapter_bert_checkpoint_of_other_classes_is_refused(tmp_path):
    """Its head has three classes, MRPC two: there is nothing trained for MRPC in it."""
    words = golden_words()
    lines = [mrpc_row(i % 2, words[i], words[i + 1]) for i in range(8)]
    (tmp_path / "dev.tsv").write_text("\n".join([MRPC_HEADER, *lines]) + "\n")
    error = evaluate_golden("mrpc", tmp_path, tmp_path / "out")
    assert "does not hold 'head/kernel'" in error


def test_dry_run_checks_reports_and_writes_nothing(mrpc, tiny_base_folder, tmp_path, capsys):
    train(mrpc, tiny_base_folder, tmp_path / "out", "--dry_run")
    assert "Total Trainable Parameters" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


DIVERGED = {  # Flags, what the message says in addition, and what a lower rate then needs.
    "at once": ((), "Nothing was saved.", ()),
    "after a checkpoint": (
        ("--save_checkpoints_steps=1",),
        "Add --overwrite, which replaces the checkpoint of step 1.",
        ("--overwrite",),
    ),
}


@pytest.mark.parametrize("case", DIVERGED)
def test_after_a_diverged_run_a_lower_rate_is_tried(case, mrpc, tiny_base_folder, tmp_path):
    flags, said, needed = DIVERGED[case]
    out = tmp_path / "out"
    run = (mrpc, tiny_base_folder, out, "--num_train_epochs=0.5", *flags)
    error = try_to_train(*run, "--learning_rate=1e30")
    assert "Training diverged" in error and error.endswith(said), error
    assert not (out / "adapter").exists()
    assert bool(list((out / "checkpoints").glob("ckpt*"))) is bool(needed)
    error = try_to_train(*run, "--learning_rate=1e-3")
    assert ("the checkpoints of another run" in (error or "")) is bool(needed)
    if needed:
        train(*run, "--learning_rate=1e-3", *needed)
    rows = [json.loads(line) for line in (out / "metrics.jsonl").open()]
    assert all(math.isfinite(row["loss"]) for row in rows)


def test_evaluation_keeps_the_record_of_the_training(mrpc, tiny_base_folder, tmp_path):
    out = train(
        mrpc, tiny_base_folder, tmp_path / "out", "--num_train_epochs=0.5", "--train_pooler"
    )
    before = json.loads((out / "run.json").read_text())
    assert (
        command(
            "--task_name=mrpc",
            "--do_eval",
            f"--data_dir={mrpc}",
            "--max_seq_length=16",
            *base_flags(tiny_base_folder),
            f"--output_dir={out}/",
        )
        is None
    )
    after = json.loads((out / "run.json").read_text())
    (later,) = after.pop("later_runs")
    assert after == before
    assert later["parameters"] == before["parameters"]


@pytest.mark.long
def test_overwriting_never_goes_on_from_another_run(finished_copy, mrpc, tiny_base_folder, capsys):
    out = finished_copy
    (out / "checkpoints" / "flags.json").unlink()
    (out / "checkpoints" / "mine.txt").write_text("")
    capsys.readouterr()
    train(mrpc, tiny_base_folder, out, "--num_train_epochs=1", "--seed=3", "--overwrite")
    assert "Resuming" not in capsys.readouterr().out
    assert (out / "checkpoints" / "mine.txt").exists()  # A user's file stays.


@pytest.mark.parametrize("more", support.seldom([[], ["--overwrite"]], ([],)))
@pytest.mark.long
def test_an_interrupted_run_goes_on(more, mrpc, tiny_base_folder, tmp_path, capsys):
    flags_of_both = ["--num_train_epochs=1", "--save_checkpoints_steps=4"]
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *flags_of_both)
    shutil.rmtree(out / "adapter")
    (out / "run.json").unlink()
    (out / "checkpoints" / "ckpt-8.index").unlink()  # It comes last, so this one is half there.
    (out / "checkpoints" / "checkpoint").write_text("")  # As after a power cut.
    train(mrpc, tiny_base_folder, out, *flags_of_both, *more)
    printed = capsys.readouterr().out
    assert "Resuming from step 4" in printed and printed.count("step 8/8  loss") == 2
    assert (out / "adapter" / "adapter.safetensors").exists()


def test_an_interrupted_run_does_not_go_on_with_other_data(finished_copy, mrpc, tiny_base_folder):
    out = finished_copy
    shutil.rmtree(out / "adapter")
    write_mrpc(mrpc, rows=48)
    error = try_to_train(mrpc, tiny_base_folder, out, "--num_train_epochs=1")
    assert "whose training data had another content" in error


MODES = [
    ["--precision=bfloat16"],
    pytest.param(["--precision=float16"], marks=pytest.mark.long),
    pytest.param(["--precision=bfloat16_base"], marks=pytest.mark.slow),
    pytest.param(["--jit_compile"], marks=pytest.mark.long),
    ["--distribution=mirrored"],
    pytest.param(["--adapter=pfeiffer"], marks=pytest.mark.slow),
    pytest.param(["--adapter=adapter_bert", "--optimizer=adapter_bert"], marks=pytest.mark.slow),
    pytest.param(
        ["--adapter_layers=1", "--adapter_size=3", "--adapter_init_scale=1e-2"],
        marks=pytest.mark.slow,
    ),
    pytest.param(["--tuning=head", "--train_pooler"], marks=pytest.mark.slow),
    pytest.param(["--eval_batch_size=5", "--predict_batch_size=3"], marks=pytest.mark.slow),
]


@pytest.mark.parametrize("more", MODES, ids=" ".join)
@pytest.mark.long
def test_modes(more, mrpc, tiny_base_folder, tmp_path):
    """Trains, evaluates and predicts; a new run of the same mode evaluates the same."""
    out = train(
        mrpc,
        tiny_base_folder,
        tmp_path / "out",
        "--do_eval",
        "--do_predict",
        "--num_train_epochs=1",
        *more,
    )
    assert len((out / "MRPC.tsv").read_text().splitlines()) == 9
    again = [flag for flag in more if not flag.startswith(("--adapter", "--tuning"))]
    error = command(
        "--task_name=mrpc",
        "--do_eval",
        f"--data_dir={mrpc}",
        *base_flags(tiny_base_folder),
        "--max_seq_length=16",
        *again,
        f"--adapter_dir={out}/adapter",
        f"--output_dir={tmp_path}/again",
    )
    assert error is None
    assert (out / "eval_results.txt").read_text() == (
        tmp_path / "again" / "eval_results.txt"
    ).read_text()


def test_an_adapter_from_a_json_file(mrpc, tiny_base_folder, tmp_path):
    path = tmp_path / "adapter.json"
    values = {"bottleneck_size": 5, "placement": "parallel", "sublayers": ["attention"]}
    path.write_text(json.dumps(values | {"layer_sizes": {"0": 3}}))
    out = train(
        mrpc,
        tiny_base_folder,
        tmp_path / "out",
        f"--adapter={path}",
        "--adapter_size=6",
        "--num_train_epochs=0.5",
    )
    adapter = json.loads((out / "adapter" / "adapter_config.json").read_text())["adapter"]
    assert (adapter["bottleneck_size"], adapter["placement"]) == (6, "parallel")
    assert "layer_sizes" not in adapter  # --adapter_size is that of all layers.


def test_config_file(mrpc, tiny_base_folder, tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text("adapter_size: 4\nnum_train_epochs: 1\nseed: 7\ndo_eval: true\n")
    out = train(mrpc, tiny_base_folder, tmp_path / "out", f"--config={config}", "--seed=9")
    run = json.loads((out / "run.json").read_text())
    assert (run["flags"]["adapter_size"], run["flags"]["seed"]) == (4, 9)
    assert (out / "eval_results.txt").exists()


def test_old_results_go_with_overwrite_and_nothing_else(finished_copy, mrpc, tiny_base_folder):
    out = finished_copy
    (out / "notes.tsv").touch()
    train(mrpc, tiny_base_folder, out, "--overwrite", "--num_train_epochs=0.5")
    names = {path.name.split(".out.")[0] for path in out.iterdir()}
    assert names == {"adapter", "checkpoints", "metrics.jsonl", "run.json", "events", "notes.tsv"}
    assert len(list(out.glob("events*"))) == 1
    assert json.loads((out / "adapter" / "adapter_config.json").read_text())["global_step"] == 4


def _append(path, line):
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def _cased(run, tmp_path):
    support.write_google(tmp_path / "cased")
    (tmp_path / "cased" / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    return [*base_flags(tmp_path / "cased"), "--do_lower_case=true"]


def _other_vocabulary(run, tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*support.VOCABULARY, "more"]) + "\n")
    return [f"--vocab_file={path}"]


def _other_shape(run, tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text(json.dumps(support.CONFIG | {"intermediate_size": 64}))
    return [f"--bert_config_file={path}"]


def _finished(run, tmp_path):
    shutil.copytree(run.out, tmp_path / "out")
    return ["--num_train_epochs=0.5"]


def _adapter_alone(run, tmp_path):
    _finished(run, tmp_path)
    shutil.rmtree(tmp_path / "out" / "checkpoints")
    return []


def _ownerless_checkpoints(run, tmp_path):
    _finished(run, tmp_path)
    shutil.rmtree(tmp_path / "out" / "adapter")
    (tmp_path / "out" / "checkpoints" / "flags.json").unlink()
    return []


def _interrupted_run(run, tmp_path):
    """A run whose checkpoints are there, but not its adapter."""
    _finished(run, tmp_path)
    shutil.rmtree(tmp_path / "out" / "adapter")
    return ["--num_train_epochs=1", "--seed=5"]


def _file_instead_of_folder(run, tmp_path):
    (tmp_path / "afile").write_text("")
    return [f"--output_dir={tmp_path}/afile"]


def _precious_folder(run, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("")
    return [f"--adapter_dir={tmp_path}/precious"]


def _other_task(run, tmp_path):
    adapter = f"--adapter_dir={run.out}/adapter"
    return ["--task_name=demo_paraphrase", "--data_dir=", "--nodo_train", adapter]


BAD_INPUT = {
    "output folder is a file": (_file_instead_of_folder, "cannot be written"),
    "adapter folder of another kind": (_precious_folder, "will not be replaced"),
    "adapter of another task": (_other_task, "trained for the task 'mrpc'"),
    "negative learning rate": (lambda run, t: ["--learning_rate=-1"], "must be a number above 0"),
    "no number of epochs": (lambda run, t: ["--num_train_epochs=nan"], "must be a number"),
    "adapter is a folder": (lambda run, t: [f"--adapter={t}"], "--adapter must be one of"),
    "data file is a folder": (
        lambda run, t: (t / "MRPC" / "dev.tsv").unlink() or (t / "MRPC" / "dev.tsv").mkdir(),
        "Cannot read",
    ),
    "list in config": (
        lambda run, t: (t / "c.yaml").write_text("seed: [1, 2]") and [f"--config={t}/c.yaml"],
        "must be one value",
    ),
    "another interrupted run": (_interrupted_run, "checkpoints of another run.*--seed: 0 there"),
    "missing data file": (lambda run, t: (t / "MRPC" / "train.tsv").unlink(), "No data file"),
    "empty data file": (lambda run, t: (t / "MRPC" / "train.tsv").write_text(""), "train.tsv"),
    "too few columns": (
        lambda run, t: _append(t / "MRPC" / "train.tsv", "1\t2"),
        r"train.tsv, line 66: expected at least 5",
    ),
    "unknown label": (
        lambda run, t: _append(t / "MRPC" / "dev.tsv", mrpc_row(7, "a", "b")),
        r"dev.tsv, line 18: unknown label '7'",
    ),
    "unknown task": (lambda run, t: ["--task_name=mprc"], "Did you mean mrpc"),
    "no task": (lambda run, t: ["--task_name="], "--task_name is missing"),
    "other vocabulary": (_other_vocabulary, "Vocabulary and model do not match"),
    "cased": (_cased, "--do_lower_case.*vocab.txt"),
    "other shape": (_other_shape, "another shape"),
    "no checkpoint": (lambda run, t: [f"--init_checkpoint={t}/none.ckpt"], "No checkpoint at"),
    "another run": (_finished, "another run: .*--num_train_epochs: 1.0 there, 0.5 here"),
    "checkpoints of nobody": (_ownerless_checkpoints, "no flags.json names their run.*--overwrite"),
    "placeholders": (lambda run, t: ["--tpu_name=YOUR_TPU"], "your own bucket and TPU"),
    "an adapter alone": (_adapter_alone, "already holds an adapter.*--overwrite"),
    "too long": (lambda run, t: ["--max_seq_length=25"], "position table, which has 24 rows"),
    "no data folder": (lambda run, t: ["--data_dir="], "needs --data_dir"),
    "nothing to do": (lambda run, t: ["--nodo_train", "--nodo_eval"], "Nothing to do"),
    "no adapter": (lambda run, t: ["--nodo_train"], "There is no adapter in"),
    "unknown preset": (lambda run, t: ["--adapter=hulsby"], "--adapter must be one of"),
    "layers": (lambda run, t: ["--adapter_layers=1-2"], "must be below 2"),
    "top_k": (lambda run, t: ["--tuning=top_k", "--top_k=3"], "--top_k must be 1 to 2"),
    "no step": (lambda run, t: ["--num_train_epochs=0.01"], "No step to train"),
    "no TPU": (lambda run, t: ["--use_tpu", "--tpu_name=local"], "No TPU could be reached"),
    "unknown flag in file": (
        lambda run, t: (t / "c.yaml").write_text("sead: 1") and [f"--config={t}/c.yaml"],
        r"unknown flags \['sead'\]",
    ),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_one_message_and_leaves_nothing(
    case, finished_run, mrpc, tiny_base_folder, tmp_path
):
    prepare, message = BAD_INPUT[case]
    more = prepare(finished_run, tmp_path)
    before = _tree(tmp_path / "out")
    error = command(
        "--task_name=mrpc",
        "--do_train",
        "--do_eval",
        f"--data_dir={mrpc}",
        *base_flags(tiny_base_folder),
        "--max_seq_length=16",
        f"--output_dir={tmp_path}/out",
        *(more if isinstance(more, list) else []),
    )
    assert error and re.search(message, error, re.S), error
    assert error.startswith("error: ")
    assert _tree(tmp_path / "out") == before


def _tree(folder):
    return sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*"))


def test_flags_offer_what_the_modules_have():
    """The table of flags must not import TensorFlow, so it repeats these names."""
    assert set(settings.BY_NAME["tuning"].choices) == set(tuning.METHODS)
    assert set(settings.BY_NAME["optimizer"].choices) == set(optimizer.OPTIMIZERS)
    assert set(settings.BY_NAME["distribution"].choices) == set(strategy.DISTRIBUTIONS)


def test_exit_status_of_the_command(tmp_path):
    result = subprocess.run(
        [
            sys.executable,
            "run_classifier.py",
            "--task_name=mprc",
            "--do_train",
            f"--output_dir={tmp_path}/out",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1, result.stderr
    assert "Traceback" not in result.stderr
    (message,) = re.findall("^error: .*", result.stderr, re.M)
    assert "Unknown task 'mprc'" in message
    assert not (tmp_path / "out").exists()


def test_help_is_quick():
    """Because it takes no TensorFlow to know the flags."""
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "run_classifier.py", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    for name in ("--task_name", "--init_checkpoint", "--adapter_size", "--tpu_name", "--config"):
        assert name in result.stdout
    imported = set(re.findall(r"^import time:.*\| +(\w+)$", result.stderr, re.M))
    assert "absl" in imported
    assert not imported & {"tensorflow", "tf_keras", "numpy", "sklearn", "scipy"}
