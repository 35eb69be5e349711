"""Analyses that train: by the adapters' start, by size, by kind; and maps of several tasks."""

import csv
import json

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from adapter_bert_tf.analysis import outputs
from adapter_bert_tf.analysis.common import runner_for
from adapter_bert_tf.analysis.sweeps import (
    init_scale,
    line_plots,
    size_map,
    sweep_analysis,
    variants,
)
from adapter_bert_tf.analysis.sweeps.sweep_analysis import Point
from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.analyze import main
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.training.tuning import Tuning
from tests.analysis.looked import look
from tests.refusals import raises_code

pytestmark = pytest.mark.long

SHORT = ("--do_train", "--num_train_epochs=1", "--train_batch_size=8", "--max_seq_length=16")


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_by_the_start(looked_at, tmp_path, capsys):
    asked = (f"--output_dir={tmp_path}/out", "--scales=1e-3,1", "--adapter=adapter_bert", *SHORT)
    assert look("init_scale", looked_at, *asked, "--dry_run") is None
    assert "2 runs of adapter_init_scale" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    assert look("init_scale", looked_at, *asked) is None
    found = rows(tmp_path / "out" / "init_scale.csv")
    assert [float(row["setting"]) for row in found] == [1e-3, 1.0]
    for row, name in zip(found, ("0.001", "1.0"), strict=True):
        folder = tmp_path / "out" / "runs" / f"adapter_init_scale={name},seed=0"
        record = json.loads((folder / "run.json").read_text())
        assert float(row["value"]) == pytest.approx(record["eval"]["eval_accuracy"], abs=1e-6)
        assert int(row["trained"]) == record["parameters"]["trained"]
        assert row["examples"] == "16" and row["metric"] == "accuracy"
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("init_scale.*")}
    capsys.readouterr()
    assert look("init_scale", looked_at, *asked) is None
    assert "step " not in capsys.readouterr().out  # No run is trained twice.
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").glob("init_scale.*")} == before


@pytest.mark.slow
def test_by_size(looked_at, tmp_path):
    asked = (f"--output_dir={tmp_path}/out", "--sizes=2,4", "--tops=1", *SHORT)
    assert look("size", looked_at, *asked) is None
    found = rows(tmp_path / "out" / "size.csv")
    assert [(row["method"], row["setting"]) for row in found] == [
        ("adapters", "2"), ("adapters", "4"), ("top_k", "top_k,1"), ("layer_norm", "layer_norm"),
    ]  # fmt: skip
    assert main(["size_map", str(tmp_path / "out" / "size.csv"), f"--output_dir={tmp_path}/m"]) == 0
    joined = rows(tmp_path / "m" / "size_map.csv")
    assert [row["setting"] for row in joined] == ["2", "4", "1", ""]
    assert [row | {"setting": ""} for row in joined] == [row | {"setting": ""} for row in found]


def test_by_size_above_frozen_layers(looked_at, tmp_path):
    """Top-k tuning goes no deeper than what is not frozen; more is refused before the first run."""
    asked = (f"--output_dir={tmp_path}/out", "--sizes=2", "--frozen_layers=1", *SHORT)
    assert look("size", looked_at, *asked) is None
    found = [(row["method"], row["setting"]) for row in rows(tmp_path / "out" / "size.csv")]
    assert found == [("adapters", "2"), ("top_k", "top_k,1"), ("layer_norm", "layer_norm")]
    other = (f"--output_dir={tmp_path}/other", *asked[1:], "--tops=1,2")
    assert "--tops are different numbers from 1 to 1" in look("size", looked_at, *other)
    assert not (tmp_path / "other").exists()


def test_by_size_has_adapters_and_no_other_tuning(looked_at, tmp_path):
    asked = (f"--output_dir={tmp_path}/out", "--sizes=2", "--tuning=head", *SHORT)
    assert "--tuning=head" in look("size", looked_at, *asked)


def test_two_own_tables_are_two_tasks():
    def name(**values):
        given = {"task_name": "tsv", "data_dir": "data/reviews", **values}
        config = RunConfig.from_values(Command.CLASSIFIER, given, given)
        return runner_for(config).table_name(config)

    assert name() == "reviews" and name(data_dir="data/weather/") == "weather"
    assert name(adapter_name="stars") == "stars" and name(task_name="MRPC") == "mrpc"


def ledger_of(path, run, **changes):
    """A ledger with one row: what `run` says, with changes."""
    record = json.loads((run / "run.json").read_text())
    row = {
        "task": "mrpc", "method": "adapters 2", "seed": 0, "trained": 7, "eval": record["eval"],
        "examples": record["examples"], "data_sha256": record["data_sha256"], **changes,
    }  # fmt: skip
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def test_what_is_in_a_ledger_is_not_trained(looked_at, tmp_path, capsys):
    path = tmp_path / "rows.jsonl"
    for changes in (
        {},
        {"method": "top_k 1"},
        {"method": "layer_norm"},
        {"method": "full", "trained": 99},
        {"method": "adapters 4", "data_sha256": {"train": "other"}},
        {"method": "adapters 4", "task": "rte"},
    ):
        ledger_of(path, looked_at.run, **changes)
    asked = (f"--output_dir={tmp_path}/out", "--tops=1", f"--rows={path}", *SHORT)
    assert look("size", looked_at, *asked, "--sizes=2", "--dry_run") is None
    assert not (tmp_path / "out").exists()
    assert look("size", looked_at, *asked, "--sizes=2,4") is None
    assert "4 runs of mrpc are in" in (printed := capsys.readouterr().out)
    assert "1 used other data" in printed
    found = rows(tmp_path / "out" / "size.csv")
    assert [(row["method"], row["setting"], row["trained"] in ("7", "99")) for row in found] == [
        ("adapters", "2", True), ("adapters", "4", False), ("top_k", "1", True),
        ("layer_norm", "", True), ("full", "", True),
    ]  # fmt: skip
    whole = json.loads((looked_at.run / "run.json").read_text())["eval"]["eval_accuracy"]
    assert float(found[0]["value"]) == pytest.approx(whole, abs=1e-6)
    trained = [path.name for path in (tmp_path / "out").iterdir() if path.is_dir()]
    assert trained == ["adapters_4_0"]


def test_all_methods_are_checked_before_the_first_trains(looked_at, tmp_path):
    """Only adapters are trained on top of another: not the upper layers, which come later."""
    model = AdapterModel(load_base(looked_at.base))
    model.add_adapter("below", ["a", "b"], "pfeiffer", tuning=Tuning(train_layer_norm=False))
    model.save_adapter("below", tmp_path / "below")
    asked = (f"--output_dir={tmp_path}/out", "--sizes=2", f"--stack={tmp_path}/below", *SHORT)
    for more in ("--dry_run", "--report"):
        error = look("size", looked_at, *asked, more)
        assert error.startswith("error: The runs of top_k: --stack works with --tuning=adapters")
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text, said", [("{", "a ledger of"), ("[]", "a ledger of"), ('{"task": "mrpc"}', "0 runs of")]
)
def test_a_file_that_is_no_ledger(text, said, looked_at, tmp_path, capsys):
    (tmp_path / "rows.jsonl").write_text(text)
    asked = (f"--output_dir={tmp_path}/out", f"--rows={tmp_path}/rows.jsonl", *SHORT, "--dry_run")
    error = look("size", looked_at, *asked)
    assert said in (error or capsys.readouterr().out)


@pytest.mark.slow
def test_by_kind(looked_at, tmp_path, monkeypatch, capsys):
    kept = ("houlsby", "depth_2", "attention_only")
    monkeypatch.setattr(variants, "VARIANTS", {name: variants.VARIANTS[name] for name in kept})
    assert look("variants", looked_at, f"--output_dir={tmp_path}/out", *SHORT) is None
    found = {row["variant"]: int(row["trained"]) for row in rows(tmp_path / "out" / "variants.csv")}
    assert tuple(found) == kept
    assert found["depth_2"] - found["houlsby"] == 4 * (64 * 64 + 64)
    assert found["houlsby"] - found["attention_only"] == 2 * (2 * 16 * 64 + 64 + 16)
    assert "depth_2" in capsys.readouterr().out


REFUSED = {
    "a sweep": (("--sweep=paper",), "decides what is trained. Received: --sweep"),
    "predictions": (("--do_predict",), "Received: --do_predict"),
    "several tasks": (
        ("--task_name=cola,mrpc", "--tuning=multitask_adapters"),
        "one task. Received: --task_name=cola,mrpc",
    ),
    "no numbers": (("--scales=1,x",), "--scales are numbers"),
    "a negative one": (("--scales=-1",), "--scales are different numbers from 1e-12 to 100"),
    "an infinite one": (("--scales=1,inf",), "Received: '1,inf'"),
    "one twice": (("--scales=1,1e0",), "different numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case, looked_at, tmp_path):
    more, said = REFUSED[case]
    error = look("init_scale", looked_at, f"--output_dir={tmp_path}/out", *SHORT, *more)
    assert error and said in error and not (tmp_path / "out").exists()


def points(*values, task="t", method="adapters", setting="8", trained=100):
    return [
        Point(task, method, setting, seed, trained, "mcc", value, 50)
        for seed, value in enumerate(values)
    ]


def test_medians_and_ranges_are_drawn():
    found = points(0.5, 0.7, 0.6) + points(0.2, float("nan"), setting="64", trained=1000)
    axes = line_plots.draw(found, line_plots.parameters, "trained parameters").axes[0]
    line, _, (bars,) = axes.containers[0]
    np.testing.assert_allclose(np.array(line.get_xydata(), float), [[100, 60], [1000, 20]])
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    np.testing.assert_allclose(ends, [[50, 70], [20, 20]])
    assert "n = 50" in axes.get_title() and "1 to 3 seeds" in axes.get_title()
    assert axes.get_legend() and axes.lines[0].get_label() == "diverged"
    assert axes.get_xlabel() == "trained parameters" and axes.get_ylabel() == "mcc, dev (%)"


def test_differences_by_hand():
    found = []
    for task, full, small in (("a", 0.8, 0.75), ("b", 0.5, 0.6), ("c", 0.9, 0.9)):
        found += points(full - 0.1, full, full + 0.1, task=task, method="full", trained=9)
        found += points(small, task=task)
    found += points(0.4, task="alone")
    ((method, trained, changes),) = size_map.differences(found)
    assert (method, trained) == ("adapters", 100)
    np.testing.assert_allclose(changes, [-5, 10, 0], atol=1e-9)
    figure = size_map.draw(found)
    assert figure.axes[4].get_title().endswith("percentile of 3 tasks")


def test_titles_of_long_tasks_fit_and_ticks_have_no_offset():
    found = []
    for number in range(4):
        name = f"news_of_the_day_by_topic_and_region_{number}_in_full"
        found += points(0.86551, 0.865514, 0.865523, task=name, method="full", trained=9)
        found += points(0.865512, 0.865518, task=name)
    figure = size_map.draw(found)
    outputs.picture_files(figure, "size_map", "command")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    panels = [axes for axes in figure.axes if axes.get_visible()]
    titles = [axes.title.get_window_extent(canvas.get_renderer()) for axes in panels]
    width, height = canvas.get_width_height()
    for number, box in enumerate(titles):
        assert box.x0 >= 0 and box.x1 <= width and box.y1 <= height
        assert not any(box.overlaps(other) for other in titles[:number])
    assert "news_of_the_day" in panels[0].get_title() and "3_in_full" in panels[3].get_title()
    offsets = [axis.get_offset_text().get_text() for a in panels for axis in (a.xaxis, a.yaxis)]
    assert not any(offsets)


def test_runs_that_diverged_and_runs_that_are_there_twice(tmp_path, capsys):
    found = points(0.5, 0.7) + points(float("nan"), 0.6, setting="64", trained=0)
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    for place, listed in ((path, found + points(0.1, method="bitfit")), (other, found[:1])):
        place.write_bytes(sweep_analysis.points_table(listed))
    asked = (f"--output_dir={tmp_path}/out", str(path), str(other))
    assert main(["size_map", *asked]) == 0
    printed = capsys.readouterr().out
    assert "1 of 4 runs diverged" in printed and "Left out" in printed and "bitfit" in printed
    assert len(rows(tmp_path / "out" / "size_map.csv")) == 4
    other.write_bytes(sweep_analysis.points_table(points(0.51)))
    assert main(["size_map", *asked]) == 1
    assert "two results of t, adapters 8, seed 0: 0.500000 and 0.510000" in capsys.readouterr().err
    path.write_bytes(sweep_analysis.points_table(points(float("nan"))))
    assert main(["size_map", *asked[:2]]) == 1
    assert "Every run diverged" in capsys.readouterr().err


def test_variants_write_over_nothing(looked_at, tmp_path):
    """Their configurations are files of the folder; what is there may be another's."""
    asked = (f"--output_dir={tmp_path}/out", *SHORT)
    assert "there is no" in look("variants", looked_at, *asked, f"--data_dir={tmp_path}/none")
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "relu.json").write_text("mine")
    assert "relu.json says something else" in look("variants", looked_at, *asked)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["relu.json"]
    (tmp_path / "out" / "relu.json").unlink()
    (tmp_path / "out" / "tanh.json").symlink_to(tmp_path / "elsewhere")
    assert "is a link" in look("variants", looked_at, *asked)


def line_of(**changes):
    row = {"task": "t", "method": "adapters 8", "seed": 0, "trained": 5, "examples": {"dev": 3}}
    return json.dumps(row | {"eval": {"eval_accuracy": 0.5}} | changes) + "\n"


def table_of(**changes):
    row = points(0.5)[0]._asdict() | changes
    return (
        sweep_analysis.points_table(points(0.5, 0.6)).decode()
        + ",".join(map(str, row.values()))
        + "\n"
    )


WRONG = {
    "no columns": ("a.csv", "x\n1\n", "damaged: a.csv, line 2"),
    "a short row": ("a.csv", table_of() + "t,full\n", "damaged: line 5"),
    "no rows": ("a.csv", "task,method\n", "not_found: holds no runs"),
    "no UTF-8": ("a.csv", "\udcff", "damaged: a.csv"),
    "no JSON": ("a.jsonl", "{", "damaged: a.jsonl, line 1"),
    "no UTF-8 lines": ("a.jsonl", "\udcff", "damaged: a.jsonl"),
    "a list": (
        "a.jsonl",
        line_of() + "[1]",
        "damaged: line 2",
    ),
    "no metric": ("a.jsonl", '{"task": "a", "eval": {}}', "damaged: eval_mcc"),
    "no eval": ("a.jsonl", line_of() + '{"task": "a"}', "damaged: line 2"),
    "no sets": ("a.jsonl", line_of(examples=3), "damaged: line 1"),
    "no dev set": ("a.jsonl", line_of(examples={}), "damaged: line 1"),
    "no method": ("a.jsonl", line_of(method=3), "damaged: line 1"),
    "no task": ("a.jsonl", line_of(task=["t"]), "damaged: line 1"),
}
NUMBERS = [("seed", "x"), ("seed", -1), ("trained", -5), ("trained", True), ("trained", 2.5)]
NUMBERS += [("trained", 10**200), ("examples", 0), ("value", "x"), ("value", float("inf"))]
ONLY_IN_LINES = [("seed", 0.0), ("value", True), ("value", None), ("value", float("nan"))]
NAMES = {"value": ("eval", "eval_accuracy"), "examples": ("examples", "dev")}
for part, given in NUMBERS + ONLY_IN_LINES:
    name, key = NAMES.get(part, (part, None))
    content = line_of() + line_of(**{name: {key: given} if key else given})
    WRONG[f"a line: {part} {given}"] = ("a.jsonl", content, "damaged: a.jsonl, line 2")
for part, given in NUMBERS:
    content = table_of(**{part: given})
    WRONG[f"a row: {part} {given}"] = ("a.csv", content, "damaged: a.csv, line 4")


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_table(case, tmp_path):
    name, content, said = WRONG[case]
    (tmp_path / name).write_bytes(content.encode(errors="surrogateescape"))
    with raises_code(said):
        size_map.read(str(tmp_path / name))
    assert main(["size_map", str(tmp_path / name), f"--output_dir={tmp_path}/out"]) == 1
    assert not (tmp_path / "out").exists()


def test_tasks_that_are_not_there_are_named(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_bytes(sweep_analysis.points_table(points(0.5) + points(0.6, task="u")))
    asked = ["size_map", f"--output_dir={tmp_path}/out", str(path)]
    assert main([*asked, "--tasks=t,x, y"]) == 1
    said = "--tasks='t,x, y': there are no runs of ['x', 'y']. The tables have runs of ['t', 'u']."
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main([*asked, "--tasks=t, u"]) == 0


def test_defaults():
    assert init_scale.SCALES[0] == 1e-7 and init_scale.SCALES[-1] == 1
    assert sweep_analysis.parse_numbers("1,2", "sizes", int, 1, 2) == [1, 2]
    with raises_code("invalid", "--sizes"):
        sweep_analysis.parse_numbers("", "sizes", int, 1, 2)
