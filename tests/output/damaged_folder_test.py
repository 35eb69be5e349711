"""Output folders with damaged files: healed, or refused in one message; nothing foreign goes."""

import json
import os
import shutil

import pytest
import tensorflow as tf

from adapter_bert_tf.config.sections.command import OutputConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.config.settings import EARLIER, settings_of
from adapter_bert_tf.output import lock
from adapter_bert_tf.output.output_dir import OutputDir
from adapter_bert_tf.output.records import Fingerprint, read_record
from adapter_bert_tf.run.fingerprint import decisive
from adapter_bert_tf.run.output_contents import contents_of, run_dir
from adapter_bert_tf.training.best import BestEvaluation
from adapter_bert_tf.training.checkpoints import Checkpoints
from adapter_bert_tf.training.progress import MetricsLog
from tests.refusals import raises_code
from tests.runs import command, train, try_to_train, write_mrpc

pytestmark = pytest.mark.long

ONE_EPOCH = ("--num_train_epochs=1", "--do_eval")
# What stands in a JSON file instead of an object.
DAMAGE = {
    "a list": b"[1]",
    "a number": b"3",
    "nothing": b"",
    "cut": b'{"flags": {',
    "not UTF-8": b'{"flags": "\xff"}',
    "deep": b"[" * 200_000,
    "a long number": b'{"flags": ' + b"9" * 5000 + b"}",
}


@pytest.fixture(scope="module")
def mrpc(tmp_path_factory):
    return write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")


@pytest.fixture(scope="module")
def finished(mrpc, tiny_base_folder, tmp_path_factory):
    """The folder of a run; tests must not write to it."""
    return train(mrpc, tiny_base_folder, tmp_path_factory.mktemp("out") / "out", *ONE_EPOCH)


@pytest.fixture
def out(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "out")


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_record_is_none(kind, tmp_path):
    path = tmp_path / "run.json"
    path.write_bytes(DAMAGE[kind])
    assert read_record(str(path)) is None
    path.unlink()
    path.mkdir()
    assert read_record(str(path)) is None


def _folder(out):
    """The `RunDir` of the run that `out` holds."""
    record = json.loads((out / "run.json").read_text())
    adapter = json.loads((out / "adapter" / "adapter_config.json").read_text())
    read = {"training data": record["data_sha256"]["train"]}
    read |= {name: record[name] for name in ("base", "adapter")}
    run = Fingerprint(
        run_id=adapter["run"],
        training=decisive(record["flags"]),
        results={},
        defaults=DEFAULTS,
        actions=("do_eval",),
        is_evaluated=True,
        content=record,
        compared=("data_sha256", "base", "adapter"),
        read=read,
        scored={},
    )
    places = OutputConfig(str(out))
    return run_dir(places, run)


DEFAULTS = {
    row.name: row.default_of(Command.CLASSIFIER) for row in settings_of(Command.CLASSIFIER)
} | EARLIER
# Changes of a record; after each the run is not finished.
UNFINISHED = {
    "flags of a list": {"flags": [1]},
    "no flags": {"flags": None},
    "results of a list": {"eval": [1]},
    "no results": {"eval": {}},
    "results of text": {"eval": {"eval_accuracy": "much"}},
    "counts of a list": {"parameters": [1]},
    "no counts": {"parameters": {}},
    "seconds of text": {"train_seconds": "long"},
    "no speed": {"examples_per_second": None},
    "a base of a list": {"base": []},
    "other data": {"data_sha256": "x"},
    "results of text, not a list of files": {"results": "all"},
    "a result that is not there": {"results": {"MRPC.tsv": "0" * 64}},
    "a result of another name": {"results": {"a\0b": 3}},
    "no SavedModel": {"results": {"saved_model": {"saved_model.pb": "0" * 64}}},
}


@pytest.mark.parametrize("case", UNFINISHED)
def test_a_record_that_does_not_say_all_is_not_finished(case, out):
    folder = _folder(out)
    assert folder.is_finished()
    record = json.loads((out / "run.json").read_text()) | UNFINISHED[case]
    (out / "run.json").write_text(json.dumps(record))
    assert not folder.is_finished()


@pytest.mark.parametrize("kind", DAMAGE)
def test_whose_the_checkpoints_are_must_be_known(kind, out):
    folder = _folder(out)
    (out / "checkpoints" / "flags.json").write_bytes(DAMAGE[kind])
    with raises_code("damaged", "flags.json", "--overwrite"):
        folder.require_same_run()
    assert not folder.can_resume() and not folder.is_interrupted()


@pytest.mark.parametrize("content", [[], "x", None])
def test_what_they_are_made_of_must_be_known(content, out):
    folder = _folder(out)
    path = out / "checkpoints" / "flags.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"made of": content}))
    with raises_code("occupied", "--output_dir"):
        folder.require_same_content()


PLACES = (
    *(".lock", "eval_results.txt", "metrics.jsonl", "sweep.csv", "sweep.json", "run.json"),
    *("report.html", "checkpoints/flags.json", "checkpoints/best.json", "checkpoints/checkpoint"),
    *("MRPC.tsv", "test_results.tsv", "test_metrics.txt"),
)


@pytest.mark.parametrize("name", PLACES)
def test_a_folder_in_the_place_of_a_file(name, mrpc, tiny_base_folder, tmp_path):
    out = tmp_path / "out"
    (out / name).mkdir(parents=True)
    (out / name / "mine").write_text("x")
    with raises_code("occupied", "--output_dir"):
        OutputDir(str(out), contents_of(["MRPC.tsv", "test_*"])).require_clear_names()
    if name not in PLACES[::4]:  # A command takes its time.
        return
    for arguments in (ONE_EPOCH, (*ONE_EPOCH, "--overwrite"), (*ONE_EPOCH, "--num_trials=2")):
        error = try_to_train(mrpc, tiny_base_folder, out, *arguments)
        assert f"{out}/{name} is a folder" in error
    assert (out / name / "mine").read_text() == "x"


def test_a_file_in_the_place_of_the_checkpoints(mrpc, tiny_base_folder, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "checkpoints").write_text("mine")
    for more in ((), ("--overwrite",)):
        error = try_to_train(mrpc, tiny_base_folder, tmp_path / "out", *ONE_EPOCH, *more)
        assert "checkpoints is a file, and a run writes a folder there" in error
    assert (tmp_path / "out" / "checkpoints").read_text() == "mine"


def test_what_can_be_healed_is(finished, out, mrpc, tiny_base_folder, tmp_path):
    """Of an interrupted run: its record, log, lock and TensorFlow's own file."""
    checkpoints, elsewhere = out / "checkpoints", tmp_path / "elsewhere"
    shutil.copytree(checkpoints, elsewhere)
    before = {path.name: path.read_bytes() for path in elsewhere.iterdir()}
    (out / "run.json").write_text("[1]")
    (out / ".lock").write_text("[1]")
    (out / "metrics.jsonl").write_bytes(b'[1]\n{"step": "x"}\n\xff\n' + DAMAGE["deep"])
    names = [f'all_model_checkpoint_paths: "{elsewhere}/ckpt-{step}"' for step in (1, 2, 8)]
    text = "\n".join([f'model_checkpoint_path: "{elsewhere}/ckpt-8"', *names])
    (checkpoints / "checkpoint").write_text(text)
    train(mrpc, tiny_base_folder, out, *ONE_EPOCH)
    assert json.loads((out / "run.json").read_text())["resumed_from_step"] == 8
    for name in ("adapter/adapter.safetensors", "eval_results.txt"):
        assert (out / name).read_bytes() == (finished / name).read_bytes()
    assert {path.name: path.read_bytes() for path in elsewhere.iterdir()} == before
    assert str(elsewhere) not in (checkpoints / "checkpoint").read_text()


def test_what_is_damaged_is_replaced_with_overwrite(finished, out, mrpc, tiny_base_folder):
    (out / "checkpoints" / "flags.json").write_bytes(DAMAGE["not UTF-8"])
    (out / "run.json").write_bytes(DAMAGE["cut"])
    (out / "notes.txt").write_text("mine")
    error = try_to_train(mrpc, tiny_base_folder, out, *ONE_EPOCH)
    assert "flags.json is damaged" in error
    train(mrpc, tiny_base_folder, out, *ONE_EPOCH, "--overwrite")
    name = "adapter/adapter.safetensors"
    assert (out / name).read_bytes() == (finished / name).read_bytes()
    assert (out / "notes.txt").read_text() == "mine"


def test_a_damaged_record_does_not_keep_from_evaluating(out, mrpc, tiny_base_folder):
    for path in (out / "run.json", out / "checkpoints" / "flags.json"):
        path.write_bytes(DAMAGE["not UTF-8"])
    arguments = [f"--data_dir={mrpc}", f"--base_model={tiny_base_folder}", f"--output_dir={out}"]
    assert command("--task_name=mrpc", "--do_eval", "--max_seq_length=16", *arguments) is None
    assert json.loads((out / "run.json").read_text())["eval"]


def test_which_sweep_it_was_must_be_known(mrpc, tiny_base_folder, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sweep.json").write_bytes(DAMAGE["cut"])
    error = try_to_train(mrpc, tiny_base_folder, tmp_path / "out", *ONE_EPOCH, "--num_trials=2")
    assert "sweep.json is damaged" in error and "--overwrite" in error


# TensorFlow's file `checkpoint`, beside ckpt-4 and ckpt-8.
STATES = {
    "empty": b"",
    "of another kind": b"[1]",
    "not UTF-8": b"\xff\xfe",
    "elsewhere": b'model_checkpoint_path: "/elsewhere/ckpt-4"',
    "above": b'model_checkpoint_path: "../ckpt-4"',
    "what is not there": b'model_checkpoint_path: "ckpt-9"',
    "one elsewhere": b'model_checkpoint_path: "ckpt-8"\nall_model_checkpoint_paths: "/x/ckpt-1"',
}


@pytest.mark.parametrize("case", STATES)
def test_the_checkpoints_that_are_there_count(case, tmp_path):
    variable, optimizer = tf.Variable(3.0), _Counting()
    first = Checkpoints(str(tmp_path), {"v": variable}, optimizer)
    for step in (4, 8):
        optimizer.iterations.assign(step)
        first.save(step)
    (tmp_path / "checkpoint").write_bytes(STATES[case])
    again = Checkpoints(str(tmp_path), {"v": variable}, optimizer)
    assert again.restore() == 8
    again.save(9)
    assert {path.name for path in tmp_path.glob("*.index")} == {"ckpt-8.index", "ckpt-9.index"}


class _Counting(tf.Module):
    """What `Checkpoints` asks of an optimizer."""

    def __init__(self):
        super().__init__()
        self.iterations = tf.Variable(0)


# Content of best.json.
BEST = {
    **DAMAGE,
    "a step of text": b'{"step": "x", "score": 1, "results": {}}',
    "a negative step": b'{"step": -1, "score": 1, "results": {}}',
    "a step of 290 digits": b'{"step": ' + b"9" * 290 + b', "score": 1, "results": {}}',
    "a score of a list": b'{"step": 1, "score": [1], "results": {}}',
    "results of a list": b'{"step": 1, "score": 1, "results": [1]}',
    "results of text": b'{"step": 1, "score": 1, "results": {"a": "x"}}',
    "no weights": b'{"step": 1, "score": 1, "results": {}}',
}


@pytest.mark.parametrize("case", BEST)
def test_the_best_must_be_known(case, tmp_path):
    (tmp_path / "best.json").write_bytes(BEST[case])
    with raises_code("damaged", "best.json") as raised:
        BestEvaluation.read(str(tmp_path), 5, {"v": tf.Variable(1.0)})
    assert len(str(raised.value)) < 1000


def test_rows_of_a_log_that_are_none(tmp_path):
    rows = [b'{"step": 1}', b"[1]", b'{"step": [1]}', b'{"step": null}', *DAMAGE.values()]
    (tmp_path / "metrics.jsonl").write_bytes(b"\n".join(rows))
    MetricsLog(str(tmp_path), start=5).close()
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 1}\n'


# Changes of a lock that is then damaged, and taken over.
LOCKS = {
    "a beat that never ends": {"beat": 1e300},
    "a beat of no number": {"beat": float("nan")},
    "a start of no number": {"since": float("nan")},
    "a number of a list": {"pid": [1]},
}


@pytest.mark.parametrize("case", LOCKS)
def test_a_lock_that_cannot_be(case, tmp_path):
    mark = {"host": "h", "machine": "m", "pid": 1, "process": "p", "id": "i"}
    mark |= {"since": 1.0, "beat": 1.0} | LOCKS[case]
    (tmp_path / ".lock").write_text(json.dumps(mark))
    with lock.locked(str(tmp_path)):
        assert json.loads((tmp_path / ".lock").read_text())["pid"] == os.getpid()
