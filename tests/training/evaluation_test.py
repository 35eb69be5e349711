"""Evaluation while training: what is kept, when it ends, and that it disturbs nothing."""

import dataclasses
import io
import json
import math
import os
import re
import socket
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Diverged
from adapter_bert_tf.training import progress as progress_module
from adapter_bert_tf.training.best import BestEvaluation
from adapter_bert_tf.training.checkpoints import Checkpoints
from adapter_bert_tf.training.evaluation import Evaluation
from adapter_bert_tf.training.loop import TrainingSettings, train
from adapter_bert_tf.training.progress import Progress
from tests.fake_gcs import FakeGcs, Faults
from tests.refusals import raises_code
from tests.runs import ROOT
from tests.training import tiny

STEPS = 8
NAN = math.nan
SETTINGS = {"learning_rate": 1e-1, "save_every": 3}


@dataclasses.dataclass
class Run:
    """One training of the toy.

    Args:
      out: its output folder, or None.
      steps: asked for.
      settings: other `TrainingSettings`.
    """

    out: object = None
    steps: int = STEPS
    settings: dict = dataclasses.field(default_factory=dict)

    def train(self, scores=None, **options):
        """Trains; the `Progress`. `seen` has each evaluation's step and the weights of then."""
        self.model, self.trained = tiny.setup_toy()
        self.seen = {}
        settings = TrainingSettings(
            self.steps, tiny.ROWS, output_dir=self.out and str(self.out), **SETTINGS | self.settings
        )
        evaluation = scores and self._noting(tiny.scripted(self.model, scores, **options))
        return train(self.model, self.trained, tiny.toy_batches(self.steps), settings, evaluation)

    def _noting(self, evaluation):
        def evaluate():
            step = int(self.model.optimizer.iterations.numpy())
            self.seen[step] = tiny.values(self.trained)
            return evaluation.evaluate()

        return dataclasses.replace(evaluation, evaluate=evaluate)

    def values(self):
        """The weights in the end."""
        return tiny.values(self.trained)

    def files(self):
        """Dict from the name of each file that says what is the best to its content."""
        return {
            path.name: path.read_bytes()
            for path in (self.out / "checkpoints").iterdir()
            if path.name.startswith("best")
        }

    def rows(self):
        """The rows of metrics.jsonl."""
        return [json.loads(line) for line in (self.out / "metrics.jsonl").read_text().splitlines()]


def same(values, others):
    """Whether two dicts of arrays have the same bytes."""
    return all(value.tobytes() == others[name].tobytes() for name, value in values.items())


KEPT = {
    "the best": ([0.1, 0.5, 0.3, 0.2], 4),
    "the first of equal ones": ([0.5, 0.5, 0.1, 0.5], 2),
    "the last": ([0.1, 0.2, 0.3, 0.4], 8),
    "the first": ([-0.1, -0.2, -0.3, -0.4], 2),
    "a number after none": ([NAN, 0.2, NAN, 0.1], 4),
    "a number before none": ([0.2, NAN, NAN, NAN], 2),
    "infinity": ([0.2, math.inf, math.inf, NAN], 4),
}


@pytest.mark.parametrize(
    ("case", "stored"), [*((case, True) for case in KEPT), ("the best", False), ("the last", False)]
)
def test_the_best_is_kept(case, stored, tmp_path, capsys):
    scores, step = KEPT[case]
    run = Run(tmp_path if stored else None)
    progress = run.train(scores, keep="best")
    assert (progress.weights_step, progress.step, progress.stopped_early) == (step, STEPS, False)
    assert list(run.seen) == [2, 4, 6, 8]
    assert same(run.values(), run.seen[step])
    assert not same(run.seen[2], run.seen[4])  # They moved.
    printed = capsys.readouterr().out
    assert f"The weights are those of step {step}, the best on dev." in printed
    if stored:
        record = json.loads(run.files()["best.json"])
        assert (record["step"], record["score"]) == (step, scores[step // 2 - 1])
        assert run.files().keys() == {"best.json", f"best-{step}.safetensors"}
        assert same(
            BestEvaluation.read(str(tmp_path / "checkpoints"), 8, run.trained).weights, run.values()
        )


def test_without_a_score_the_last_weights_are_kept_with_a_warning(caplog):
    run = Run()
    with caplog.at_level("WARNING"):
        progress = run.train([NAN] * 4, keep="best")
    assert progress.weights_step == STEPS and same(run.values(), run.seen[STEPS])
    assert "No evaluation had a score" in caplog.text


def test_each_evaluation_is_a_line_a_row_and_a_point(tmp_path, capsys):
    run = Run(tmp_path)
    run.train([0.25, 0.125, 0.5, 0.5])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("dev at")]
    rows = [row for row in run.rows() if "dev/loss" in row]
    shown = [
        f"dev at step {row['step']}/8  accuracy {row['dev/accuracy']:.4f}  "
        f"loss {row['dev/loss']:.4f}  score {row['dev/score']:.4f}"
        for row in rows
    ]
    assert [row["step"] for row in rows] == [2, 4, 6, 8]
    best = "  (best so far)"
    assert lines == [shown[0] + best, shown[1], shown[2] + best, shown[3]]
    assert {row["dev/loss"] for row in rows} != {rows[0]["dev/loss"]}  # The weights moved.
    points = {
        (value.tag, event.step)
        for path in tmp_path.glob("events.out.tfevents.*")
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
    }
    assert {(f"dev/{name}", 4) for name in ("accuracy", "loss", "score")} <= points
    assert ("train/loss", 8) in points


def test_evaluating_changes_nothing_of_the_training(tmp_path):
    """Weights and optimizer, with dropout and batches in their order."""
    without, beside = (Run(tmp_path / name) for name in "ab")
    without.train()
    progress = beside.train([0.5, 0.4, 0.3, 0.2], logits_of=tiny.predicted)
    assert progress.weights_step == STEPS and len(beside.seen) == 4
    assert same(without.values(), beside.values())
    readers = [
        tf.train.load_checkpoint(tf.train.latest_checkpoint(run.out / "checkpoints"))
        for run in (without, beside)
    ]
    names = [name for name in readers[0].get_variable_to_dtype_map() if "OBJECT" not in name]
    moments = [name for name in names if "OPTIMIZER_SLOT" in name]
    assert len(moments) == 2 * len(without.trained)
    assert same(*({name: np.asarray(r.get_tensor(name)) for name in names} for r in readers))
    assert mean_loss(without) == pytest.approx(mean_loss(beside), abs=1e-6)


def mean_loss(run):
    """Of all steps; a row has the mean since the one before, and a slow machine writes more."""
    rows = [row for row in run.rows() if "loss" in row]
    steps = [0, *(row["step"] for row in rows)]
    return np.average([row["loss"] for row in rows], weights=np.diff(steps))


@pytest.mark.parametrize(("keep", "evaluated"), [("last", []), ("best", [8])])
def test_without_an_interval(keep, evaluated, tiny_base_folder):
    run = Run()
    assert run.train([0.5], every=None, keep=keep).weights_step == STEPS
    assert list(run.seen) == evaluated


CALLS = {
    "a call is cut to the time between evaluations": (2, 4, [2, 4, 6, 8]),
    "at the end of the call in which it is due": (3, 2, [4, 6]),
    "the last steps are a call of their own": (5, 5, [5]),
}


@pytest.mark.parametrize("case", CALLS)
def test_several_steps_in_one_call(case, tiny_base_folder):
    every, steps_per_loop, expected = CALLS[case]
    run = Run(settings={"steps_per_loop": steps_per_loop})
    run.train([0.1, 0.2, 0.3, 0.4], every=every)
    assert list(run.seen) == expected


class Killed(BaseException):
    """What ends a run in the midst of something."""


def killing(function, number, after, path=""):
    """`function`, whose call of this number is the last: before or after its work.

    Only calls count whose first argument ends with `path`.
    """
    calls = []

    def killed(*arguments, **options):
        calls.extend([1] if str(arguments[0]).endswith(path) else [])
        if len(calls) == number and not after:
            raise Killed
        result = function(*arguments, **options)
        if len(calls) == number:
            raise Killed
        return result

    return killed


# The best are those of step 2, 4 and, best of all, 6; checkpoints are of 3, 6 and 8.
SCORES = [0.3, 0.5, 0.7, 0.2]
MOMENTS = {
    "the first evaluation": (tiny, "results", 1),
    "the third evaluation": (tiny, "results", 3),
    "the last evaluation": (tiny, "results", 4),
    "writing the weights of step 4": (storage, "write_bytes", 1, "best-4.safetensors"),
    "making those of step 4 count": (storage, "write_bytes", 2, "best.json"),
    "making those of step 6 count": (storage, "write_bytes", 3, "best.json"),
    "removing those of step 4": (storage, "remove", 1, "best-4.safetensors"),
    "saving step 3": (Checkpoints, "save", 1),
    "saving step 6": (Checkpoints, "save", 2),
    "saving step 8": (Checkpoints, "save", 3),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing disturbed."""
    run = Run(tmp_path_factory.mktemp("whole"))
    assert run.train(SCORES, keep="best").weights_step == 6
    return run


def assert_same_end(run, progress, whole):
    """A run that was taken up again ended as the one that was not."""
    assert (progress.weights_step, progress.step, progress.stopped_early) == (6, STEPS, False)
    assert same(run.values(), whole.values())
    assert run.files() == whole.files()
    dev = [[row for row in one.rows() if "dev/loss" in row] for one in (run, whole)]
    assert dev[0] == dev[1]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_moment_it_ends_the_same(moment, after, whole, tmp_path, monkeypatch):
    place, name, number, *path = MOMENTS[moment]
    run = Run(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(place, name, killing(getattr(place, name), number, after, *path))
        run.train(SCORES, keep="best")
    assert_same_end(run, run.train(SCORES, keep="best"), whole)


def test_killed_twice_and_taken_up_at_the_end_it_ends_the_same(whole, tmp_path, monkeypatch):
    run = Run(tmp_path)
    for number in (2, 3):  # At step 4; from 3 on, at step 8.
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(tiny, "results", killing(tiny.results, number, after=True))
            run.train(SCORES, keep="best")
    assert_same_end(run, run.train(SCORES, keep="best"), whole)
    again = run.train(SCORES, keep="best")
    assert again.start == STEPS and run.seen == {}
    assert_same_end(run, again, whole)


def test_rows_of_training_and_of_dev_at_the_same_step_survive(tmp_path, monkeypatch):
    run = Run(tmp_path, 24, {"save_every": 20})
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(tiny, "results", killing(tiny.results, 6, after=True))
        run.train([0.1] * 6, every=4)
    assert run.train([0.1] * 6, every=4).start == 20
    assert [row["step"] for row in run.rows() if "loss" in row] == [20, 24]
    assert [row["step"] for row in run.rows() if "dev/loss" in row] == [4, 8, 12, 16, 20, 24]


PATIENCE = {
    "the first is the best": ([0.5, 0.4, 0.3, 0.2], 2, 6, 2),
    "equal ones are no better": ([0.5, 0.5, 0.5, 0.5], 2, 6, 2),
    "patience begins anew with a better one": ([0.1, 0.0, 0.5, 0.4, 0.3, 0.9], 2, 10, 6),
    "no number is no better": ([0.1, NAN, NAN, 0.9], 2, 6, 2),
    "never a number": ([NAN, NAN, NAN, NAN], 3, 6, 6),
    "one is enough": ([0.1, 0.2, 0.1, 0.9], 1, 6, 4),
    "never at an end": ([0.1, 0.2, 0.1, 0.3, 0.2, 0.4], 2, 12, 12),
    "at an end with the training": ([0.1, 0.2, 0.3, 0.4, 0.2, 0.2], 2, 12, 8),
}


@pytest.mark.parametrize(
    ("case", "keep"),
    [*((case, "best") for case in PATIENCE), ("one is enough", "last"), ("never a number", "last")],
)
def test_patience(case, keep, tmp_path, capsys):
    """The end, whose weights they are, and that the same command does not train on."""
    scores, patience, end, best = PATIENCE[case]
    run = Run(tmp_path, 12, {"save_every": 5})
    first = run.train(scores, patience=patience, keep=keep)
    kept = best if keep == "best" else end
    values, rows = run.values(), run.rows()
    assert (first.step, first.stopped_early, first.weights_step) == (end, end < 12, kept)
    assert same(values, run.seen[kept])
    assert tf.train.latest_checkpoint(tmp_path / "checkpoints").endswith(f"ckpt-{end}")
    again = run.train(scores, patience=patience, keep=keep)
    assert (again.step, again.stopped_early, again.weights_step) == (end, end < 12, kept)
    assert run.seen == {} and same(run.values(), values) and run.rows() == rows
    said = f"Training ends at step {end}/12: no better evaluation in {patience}."
    assert capsys.readouterr().out.count(said) == (2 if end < 12 else 0)


@pytest.mark.parametrize("keep", ["best", "last"])
@pytest.mark.parametrize("number", [2, 4])
def test_patience_counts_on_after_a_kill(keep, number, tmp_path, monkeypatch):
    scores, options = [0.1, 0.5, 0.4, 0.3, 0.9, 0.9], {"patience": 2, "keep": keep}
    run = Run(tmp_path, 12)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(tiny, "results", killing(tiny.results, number, after=True))
        run.train(scores, **options)
    progress = run.train(scores, **options)
    assert (progress.step, progress.stopped_early) == (8, True)
    assert progress.weights_step == (4 if keep == "best" else 8)


def test_a_run_without_a_checkpoint_believes_no_earlier_best(tmp_path):
    """As after --overwrite."""
    run = Run(tmp_path)
    run.train([0.9, 0.8, 0.7, 0.6], keep="best")
    for path in (tmp_path / "checkpoints").glob("c*"):
        path.unlink()
    assert run.train([0.1, 0.2, 0.4, 0.3], keep="best").weights_step == 6
    assert run.files().keys() == {"best.json", "best-6.safetensors"}


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


DAMAGE = {
    "weights that are cut": lambda folder: cut(folder / "best-4.safetensors"),
    "no weights": lambda folder: (folder / "best-4.safetensors").unlink(),
    "other weights": lambda folder: (folder / "best-4.safetensors").write_bytes(b"x"),
    "nothing in best.json": lambda folder: (folder / "best.json").write_text(""),
    "a list in best.json": lambda folder: (folder / "best.json").write_text("[]"),
    "no digest": lambda folder: (folder / "best.json").write_text(
        '{"step": 4, "score": 0.5, "results": {}}'
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_weights_are_not_kept(case, tmp_path):
    run = Run(tmp_path)
    run.train([0.1, 0.5, 0.4, 0.3], keep="best")
    DAMAGE[case](tmp_path / "checkpoints")
    with raises_code("damaged", "best.json"):
        run.train([0.1, 0.5, 0.4, 0.3], keep="best")


def test_damaged_weights_of_a_later_step_are_found_again(whole, tmp_path, monkeypatch, caplog):
    run = Run(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Checkpoints, "save", killing(Checkpoints.save, 2, after=False))
        run.train(SCORES, keep="best")
    cut(tmp_path / "checkpoints" / "best-6.safetensors")
    with caplog.at_level("WARNING"):
        progress = run.train(SCORES, keep="best")
    assert progress.start == 3 and "best.json" in caplog.text
    assert_same_end(run, progress, whole)


def test_weights_of_another_model_are_refused(tmp_path):
    _, trained = tiny.setup_toy()
    some = dict(list(tiny.values(trained).items())[1:])
    BestEvaluation(2, 0.5, {}, some).write(str(tmp_path))
    with raises_code("damaged", "best.json"):
        BestEvaluation.read(str(tmp_path), 2, trained)


def test_a_loss_that_is_not_finite_is_not_evaluated(tmp_path):
    run = Run(tmp_path, settings={"learning_rate": 1e30})
    with pytest.raises(Diverged) as raised:
        run.train([0.1] * STEPS, every=1)
    step = int(re.search(r"at step (\d+)", str(raised.value))[1])
    assert list(run.seen) == list(range(1, step))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"keep": "first"}, "invalid: 'last'"),
        ({"every": 0}, "invalid: every must be 1 or more"),
        ({"patience": 0}, "invalid: patience must be 1 or more"),
        ({"every": None, "patience": 1}, "missing: it needs every"),
    ],
)
def test_what_makes_no_sense_is_refused(values, message):
    with raises_code(message):
        Evaluation(**{"every": 1, "evaluate": dict, "score": len} | values)


class Terminal(io.StringIO):
    isatty = staticmethod(lambda: True)


@pytest.mark.parametrize(
    ("stream", "expected"),
    [(io.StringIO(), "step 1/4 ..\ndev\n"), (Terminal(), "\rstep 1/4 ..\ndev\n")],
)
def test_a_line_of_its_own_on_a_terminal_too(stream, expected):
    progress = Progress(4, 8, lambda step: 1e-3, every_seconds=0, stream=stream)
    progress.on_train_begin()
    progress.on_train_batch_end(0, {"loss": 1.0})
    progress.print_line("dev")
    assert re.sub(r"1/4 .*", "1/4 ..", stream.getvalue()) == expected


def test_time_spent_evaluating_is_not_the_trainings(monkeypatch):
    """Two steps of 1 s with 10 s between them: 8 examples/s, and 6 s a step to go."""
    now = [0.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress_module.time, "process_time", lambda: 2 * now[0])
    stream = io.StringIO()
    progress = Progress(4, 8, lambda step: 1e-3, every_seconds=0, stream=stream)
    progress.on_train_begin()
    for batch in range(2):
        now[0] += 1.0
        progress.on_train_batch_end(batch, {"loss": 1.0})
        if not batch:
            with progress.paused():
                now[0] += 10.0
    assert (progress.seconds, progress.cpu_seconds) == (2.0, 4.0)
    assert "8 examples/s  ETA 0:12" in stream.getvalue()


def process(out, *more, devices=1, **environment):
    """Starts `tests/training/tiny.py` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "tests/launch.py", str(devices), "tests/training/tiny.py", out, *more],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def printed_by(process):
    """What it prints in the end."""
    printed, errors = process.communicate(timeout=400)
    assert process.returncode == 0, errors[-3000:]
    return json.loads(printed.splitlines()[-1])


@pytest.mark.long
def test_two_devices_keep_what_one_keeps(tmp_path, capsys):
    two = printed_by(process(str(tmp_path / "two"), devices=2))
    tiny.main(str(tmp_path / "one"))
    one = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (one["replicas"], two["replicas"]) == (1, 2)
    assert one["kept_step"] == two["kept_step"] == 4
    assert one["results"] == pytest.approx(two["results"], abs=1e-5)
    read = [
        BestEvaluation.read(str(tmp_path / name / "checkpoints"), 8, None)
        for name in ("one", "two")
    ]
    assert read[0].results == pytest.approx(read[1].results, abs=1e-5)


@pytest.mark.slow
def test_two_workers_evaluate_alike_and_one_of_them_writes(tmp_path):
    """The second time they are taken up again at step 6, whose best is that of step 4."""
    out, found = str(tmp_path / "out"), []
    for _ in range(2):
        cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}
        configs = [{"cluster": cluster, "task": {"type": "worker", "index": i}} for i in range(2)]
        both = [process(out, "multi_worker", TF_CONFIG=json.dumps(config)) for config in configs]
        found += [printed_by(one) for one in both]
        for path in (tmp_path / "out" / "checkpoints").glob("c*"):
            if re.search("ckpt-8|checkpoint$", path.name):
                path.unlink()
    assert [one["start"] for one in found] == [0, 0, 6, 6]
    assert all(one["kept_step"] == 4 and one["results"] == found[0]["results"] for one in found)
    best = [path.name for path in (tmp_path / "out" / "checkpoints").glob("best*")]
    assert sorted(best) == ["best-4.safetensors", "best.json"]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.mark.slow
@pytest.mark.long
def test_in_a_bucket_that_stumbles(tmp_path):
    """The second time it is taken up again at step 6, whose best is that of step 4."""
    objects = {}
    with FakeGcs(objects, buckets=("out",), faults=Faults(share=0.1, seed=1)) as fake:
        environment = fake.environment | {
            "ADAPTER_BERT_RETRY_SECONDS": "0.05",
            "GCS_RETRY_CONFIG_MAX_RETRIES": "0",
        }
        first = printed_by(process("gs://out/run", **environment))
        best = {key: value for key, value in objects.items() if "/best" in key}
        for key in [key for key in objects if re.search("ckpt-8|checkpoint$", key)]:
            fake.delete(None, *key.split("/", 1))
        again = printed_by(process("gs://out/run", **environment))
        assert sum(fake.injected.values()) >= 5
    assert (first["start"], again["start"]) == (0, 6)
    assert first["kept_step"] == again["kept_step"] == 4
    assert first["results"] == again["results"]
    assert {key.rpartition("/")[2] for key in best} == {"best.json", "best-4.safetensors"}
    assert {key: value for key, value in objects.items() if "/best" in key} == best
