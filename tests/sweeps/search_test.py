"""`--search`, `--asha`, `--workers`: what is proposed, which runs stop, where they are executed."""

import contextlib
import itertools
import json
import math
import types

import pytest

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.errors import Pruned
from adapter_bert_tf.sweeps import grid, results, run_list
from adapter_bert_tf.sweeps.run_list import RunList
from adapter_bert_tf.sweeps.search import halving, space
from adapter_bert_tf.sweeps.workers import Place, place_of
from adapter_bert_tf.training.evaluation import Evaluation, EvaluationCallback, Rungs
from tests.refusals import raises_code
from tests.runs import train, write_mrpc

RANGES = """
learning_rate: {low: 1e-5, high: 1e-2, log: true}
adapter_size: {low: 8, high: 256, log: true}
num_train_epochs: {low: 1, high: 3, step: 0.5}
adapter: [houlsby, pfeiffer]
adapter_layers: [null, 0-1]
"""


def config_of(folder, text=RANGES, **values):
    """A sweep of settings; `text` is the YAML file."""
    path = folder / "grid.yaml"
    path.write_text(text)
    values = {"sweep": str(path), "search": "random", "num_samples": 8} | values
    values |= {"task_name": "rte", "output_dir": str(folder / "out")}
    values |= {"do_train": True, "do_eval": True}
    return RunConfig.from_values(Command.CLASSIFIER, {}).changed(**values)


def runs_of(config):
    return RunList(config, lambda found: found["eval_accuracy"])


# === Search ===


def test_random_settings_are_those_of_the_seed_and_inside_their_ranges(tmp_path):
    pytest.importorskip("optuna")
    settings = [setting for setting, _ in runs_of(config_of(tmp_path)).runs]
    again = [setting for setting, _ in runs_of(config_of(tmp_path, parallel_trials=4)).runs]
    other = [setting for setting, _ in runs_of(config_of(tmp_path, seed=1)).runs]
    more = [setting for setting, _ in runs_of(config_of(tmp_path, num_samples=12)).runs]
    assert len(settings) == 8 and settings == again == more[:8] and settings[0] != other[0]
    for setting in settings:
        assert list(setting) == list(space_of(tmp_path))
        assert 1e-5 <= setting["learning_rate"] <= 1e-2
        assert float(f"{setting['learning_rate']:.4g}") == setting["learning_rate"]
        assert isinstance(setting["adapter_size"], int) and 8 <= setting["adapter_size"] <= 256
        assert setting["num_train_epochs"] in (1, 1.5, 2, 2.5, 3)
        assert setting["adapter"] in ("houlsby", "pfeiffer")
        assert setting["adapter_layers"] in (None, "0-1")
    rates = [math.log10(setting["learning_rate"]) for setting in settings]
    assert min(rates) < -3.5 < max(rates)  # The middle of the range of logarithms.


def space_of(folder):
    return grid.read_grid(config_of(folder))


def test_a_setting_that_is_drawn_twice_is_one_run(tmp_path):
    pytest.importorskip("optuna")
    runs = runs_of(config_of(tmp_path, "top_k: [1, 2]", num_samples=20)).runs
    assert sorted(setting["top_k"] for setting, _ in runs) == [1, 2]


BAD_RANGES = {
    "no ends": ("learning_rate: {low: 1e-3}", "invalid", "needs low and high"),
    "turned": ("learning_rate: {low: 1, high: 0.1}", "invalid", "low < high"),
    "log of 0": ("weight_decay: {low: 0, high: 1, log: true}", "invalid", "log needs low > 0"),
    "log by steps": ("adapter_size: {low: 1, high: 9, log: true, step: 2}", "invalid", "no step"),
    "text": ("adapter: {low: a, high: b}", "invalid", "is for numbers"),
    "half a size": ("adapter_size: {low: 0.5, high: 3}", "invalid", "--adapter_size=0.5"),
    "out of bounds": ("adapter_size: {low: 0, high: 3}", "invalid", "--adapter_size=0"),
    "wrong key": ("learning_rate: {min: 1, max: 2}", "invalid", "may have low, high, log, step"),
    "no step": ("top_k: {low: 1, high: 3, step: no}", "invalid", "step is a number"),
    "long step": ("top_k: {low: 1, high: 3, step: 5}", "invalid", "from 0 to high - low"),
    "wrong value": ("top_k: [1, many]", "invalid", "--top_k=many"),
}


@pytest.mark.parametrize("case", BAD_RANGES)
def test_a_bad_range_is_refused(case, tmp_path):
    text, code, words = BAD_RANGES[case]
    with raises_code(code, words):
        grid.read_grid(config_of(tmp_path, text))


def test_a_range_needs_a_search_and_asha_single_runs(tmp_path):
    with raises_code("missing", "--search=random or --search=tpe"):
        grid.read_grid(config_of(tmp_path, search="grid"))
    for more in ({"num_trials": 2}, {"folds": 3}):
        with raises_code("conflict", "--asha compares settings by one run each"):
            grid.read_grid(config_of(tmp_path, asha=True, **more))


def test_the_ends_of_all_ranges_are_checked_before_a_search():
    grid_ = {"a": {"low": 1, "high": 5}, "b": ["x", "y", "z"]}
    assert space.corners(grid_) == [
        {"a": 1, "b": "x"},
        {"a": 5, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 1, "b": "z"},
    ]


def run_search(config, rows, at_a_time=1, stop_after=None):
    """The settings of a search, whose score is the negative distance of the rate from 1e-3."""
    runs = runs_of(config)
    runs.recall()
    left, begun = runs.left(rows), []
    while batch := list(itertools.islice(left, at_a_time)):
        for run_config in batch:
            begun.append(run_config.output.folder)
            if len(begun) == stop_after:
                return begun
            distance = abs(math.log10(run_config.training.learning_rate) + 3)
            rows[run_config.output.folder] = {
                "status": "finished",
                "results": {"eval_accuracy": -distance},
            }
    return begun


TPE = {"search": "tpe", "num_samples": 14}


@pytest.mark.parametrize("at_a_time", [1, 2])
def test_a_search_by_results_goes_on_with_the_same_proposals(at_a_time, tmp_path):
    pytest.importorskip("optuna")
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    text = RANGES.split("num_train")[0]
    whole = run_search(config_of(tmp_path / "whole", text, **TPE), {}, at_a_time)
    rows, config = {}, config_of(tmp_path / "cut", text, **TPE)
    first = run_search(config, rows, at_a_time, stop_after=13)
    then = run_search(config, rows, at_a_time)
    names = [[folder.rpartition("/")[2] for folder in some] for some in (whole, first + then)]
    assert len(set(names[0])) == 14
    assert list(dict.fromkeys(names[1])) == names[0]
    assert first[-1] == then[0]  # It had begun, and had no result.
    proposals = json.loads((tmp_path / "cut" / "out" / "proposals.json").read_text())["proposals"]
    assert len(proposals) == 14


def test_a_search_learns_from_its_results(tmp_path):
    pytest.importorskip("optuna")
    rows = {}
    config = config_of(tmp_path, RANGES.split("adapter_size")[0], search="tpe", num_samples=30)
    run_search(config, rows)
    scores = [row["results"]["eval_accuracy"] for row in rows.values()]
    assert sum(scores[15:]) / 15 > sum(scores[:10]) / 10 + 0.1


def test_no_run_starts_after_the_budget(tmp_path, monkeypatch, capsys):
    now = iter([0.0, 30.0, 59.0, 60.0])
    monkeypatch.setattr(run_list.time, "monotonic", lambda: next(now))
    runs = RunList(config_of(tmp_path, "top_k: [1, 2, 3, 4]", search="grid", sweep_minutes=1), None)
    assert [one.method.top_k for one in runs.left({})] == [1, 2]
    assert "No further run starts: --sweep_minutes=1 are over." in capsys.readouterr().out


# === Asynchronous successive halving ===


@pytest.mark.parametrize(
    ("score", "others", "expected"),
    [
        (0.1, [], True),  # Fewer than three: too few to compare.
        (0.1, [0.9], True),
        (0.1, [0.9, 0.8], False),  # The best of three goes on.
        (0.9, [0.1, 0.8], True),
        (0.8, [0.8, 0.1], True),  # As good as the best.
        (0.7, [0.9, 0.8, 0.1, 0.2], False),  # The best of five.
        (0.8, [0.9, 0.7, 0.1, 0.2, 0.3], True),  # The best two of six.
        (math.nan, [], False),
        (-math.inf, [-math.inf, 0.1], False),
    ],
)
def test_the_best_third_goes_on(score, others, expected):
    assert halving.goes_on(score, others) is expected


def test_rungs_are_proportions_of_the_steps():
    rungs = Rungs(halving.SHARES, lambda *arguments: True)
    reached = [(step, rungs.reached(step - 1, step, 90)) for step in range(1, 91)]
    assert [pair for pair in reached if pair[1] is not None] == [(10, 0), (30, 1)]
    assert rungs.reached(0, 40, 90) == 1  # A call of many steps.
    assert rungs.reached(10, 20, 90) is None and rungs.reached(0, 2, 2) is None


# In the order of the runs: scores at both rungs; by hand, what is decided.
MADE_UP = [
    ([0.5, 0.6], [True, True]),
    ([0.4, 0.7], [True, True]),
    ([0.3], [False]),  # The best of three: 0.5.
    ([0.6, 0.5], [True, False]),  # Of four; then the best of three: 0.7.
    ([0.55], [False]),  # The best of five: 0.6.
    ([0.58, 0.8], [True, True]),  # The best two of six: 0.6 and 0.58; then the best of four.
]


def test_decisions_are_those_of_the_runs_before_and_stay(tmp_path):
    def plan(number):
        run = types.SimpleNamespace(run_id=f"run {number}")
        folder, output = types.SimpleNamespace(run=run), tmp_path / f"top_k={number},seed=0"
        output.mkdir(exist_ok=True)
        return types.SimpleNamespace(
            output=types.SimpleNamespace(folder=str(output)), folder=folder
        )

    (tmp_path / "other").mkdir()
    other = {"sweep": "another", "run": "x", "rungs": [{"rung": 0, "step": 1, "score": 9.0}]}
    (tmp_path / "other" / "rungs.json").write_text(json.dumps(other))
    for number, (scores, expected) in enumerate(MADE_UP):
        rungs = halving.rungs_of(plan(number), "sweep")
        found = [rungs.goes_on(rung, 10 * 3**rung, score) for rung, score in enumerate(scores)]
        assert found == expected, number
    # A run that continues before a rung keeps what was decided there, with later results known.
    assert halving.rungs_of(plan(1), "sweep").goes_on(0, 10, 0.4) is True
    rows = [
        halving.stopped_row(plan(number).output.folder, "sweep", f"run {number}")
        for number in range(6)
    ]
    assert [row and (row["stopped_at_step"], row["stopped_score"]) for row in rows] == [
        None, None, (10, 0.3), (30, 0.5), (10, 0.55), None,
    ]  # fmt: skip
    folder = plan(2).output.folder
    assert halving.stopped_row(folder, "another", "run 2") is None
    assert halving.stopped_row(folder, "sweep", "other data") is None


class Printed:
    """Takes the place of `Progress`."""

    start, steps = 0, 90

    def __init__(self):
        self.rows = []

    def paused(self):
        return contextlib.nullcontext()

    def log_row(self, row):
        self.rows.append(row["step"])

    def print_line(self, line):
        pass


def test_a_rung_is_no_evaluation_of_the_run():
    """The best weights and the log are the same with and without it."""
    asked = []
    rungs = Rungs((1 / 9, 1 / 3), lambda *rung: asked.append(rung) or rung[0] == 0)
    evaluation = Evaluation(20, lambda: {"a": 0.5}, lambda found: found["a"], rungs=rungs)
    progress = Printed()
    callback = EvaluationCallback(evaluation, {}, progress)
    with pytest.raises(Pruned, match="step 30 of 90") as stopped:
        for batch in range(90):
            callback.on_train_batch_end(batch, {"loss": 1.0})
    assert asked == [(0, 10, 0.5), (1, 30, 0.5)] and progress.rows == [20]
    assert stopped.value.step == 30 and callback.best.step == 20


def test_a_stopped_run_is_in_the_table_and_never_the_best(tmp_path):
    settings = [{"top_k": k} for k in (1, 2)]
    scores = [-math.inf, 0.5]
    assert results.choose(settings, scores) == 1
    text = results.ranking(settings, scores, ["eval_m"], statuses=["stopped", "finished"])
    assert "stopped" in text.splitlines()[-1] and "0/1" in text.splitlines()[-1]
    runs = grid.all_runs(config_of(tmp_path, search="grid", text="top_k: [1, 2]"), settings)
    rows = {runs[0][1].output.folder: halving.row_of_stopped(10, 0.25)}
    rows[runs[1][1].output.folder] = {"status": "finished", "results": {"eval_m": 0.5}}
    assert results.table_of(runs, rows).splitlines() == [
        "top_k,seed,status,stopped_at_step,stopped_score,eval_m",
        "1,0,stopped,10,0.25,",
        "2,0,finished,,,0.5",
    ]


@pytest.mark.long
def test_a_search_with_asha_leaves_finished_runs_as_they_are(
    tiny_base_folder, tmp_path, capsys, monkeypatch
):
    """And what it has stopped does not start again; tiny models are too equal to compare."""
    pytest.importorskip("optuna")
    monkeypatch.setattr(halving, "goes_on", lambda score, others: len(others) < 2)
    mrpc = write_mrpc(tmp_path / "MRPC")
    (tmp_path / "space.yaml").write_text("learning_rate: {low: 1e-5, high: 1e-1, log: true}")
    flags = ("--do_eval", "--num_train_epochs=2", f"--sweep={tmp_path}/space.yaml")
    search = (*flags, "--search=random", "--num_samples=4", "--asha")
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *search)
    rows = [line.split(",") for line in (out / "sweep.csv").read_text().splitlines()[1:]]
    assert [row[2] for row in rows] == ["finished", "finished", "stopped", "stopped"]
    said = capsys.readouterr().out
    assert "(rung 1 of 2: goes on)" in said and "not among the best runs there" in said
    before = (out / "sweep.csv").read_text()
    train(mrpc, tiny_base_folder, out, *search)
    assert (out / "sweep.csv").read_text() == before
    assert "***** Run" not in capsys.readouterr().out
    alone = (f"--learning_rate={rows[0][0]}", *flags[:2])
    alone = train(mrpc, tiny_base_folder, tmp_path / "alone", *alone)
    run = out / f"learning_rate={rows[0][0]},seed=0"
    for name in ("adapter/adapter.safetensors", "eval_results.txt"):
        assert (run / name).read_bytes() == (alone / name).read_bytes()
    assert not (alone / "rungs.json").exists()


# === Where runs are executed ===


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, Place(1)),
        ({"parallel_trials": 3}, Place(3)),
        ({"workers": "local:3"}, Place(3)),
        ({"workers": "3"}, Place(3)),
        ({"workers": "local:3", "parallel_trials": 3}, Place(3)),
        ({"workers": "ray"}, Place(None, True)),
        ({"workers": "ray", "parallel_trials": 1}, Place(1, True)),
        ({"workers": "auto"}, Place(None, True, "auto")),
        ({"workers": "ray://head:10001"}, Place(None, True, "ray://head:10001")),
        ({"workers": "10.0.0.1:6379", "parallel_trials": 8}, Place(8, True, "10.0.0.1:6379")),
    ],
)
def test_where_runs_are_executed(values, expected, tmp_path):
    assert place_of(config_of(tmp_path, **values)) == expected


@pytest.mark.parametrize("text", ["local", "local:0", "local:x", "ray://", "head", "http://a:1"])
def test_there_are_no_such_workers(text, tmp_path):
    with raises_code("invalid", "--workers is local:N, ray, auto", text):
        place_of(config_of(tmp_path, workers=text))


def test_two_numbers_of_processes_are_refused(tmp_path):
    with raises_code("conflict", "--workers=local:2 and --parallel_trials=3 differ"):
        place_of(config_of(tmp_path, workers="local:2", parallel_trials=3))
