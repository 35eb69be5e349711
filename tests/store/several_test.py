"""Directories of several tasks: what was first written loads, and damaged ones are refused."""

import json
import pathlib
import shutil

import pytest

import adapter_bert_tf as abt
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.store import load_adapter
from adapter_bert_tf.store.__main__ import main
from adapter_bert_tf.store.combine import without_lowest
from adapter_bert_tf.store.schema import seal
from tests import support
from tests.runs import base_flags, command

GOLDEN = support.GOLDEN.parent / "several"
BEFORE = support.GOLDEN.parent / "written_before"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
WHOLE, SHARED, EACH = "multitask_full", "multitask_adapters", "per_task_adapters"
TASKS = ("pairs", "kinds", "scores")


def evaluated(out, folder, *flags):
    """The results of a command in the folder of the base and the data."""
    where = (f"--adapter_dir={folder}", f"--output_dir={out}")
    flags = (*flags, *base_flags("base"), "--do_eval", *where)
    assert command(*flags, folder=BEFORE) is None
    return json.loads((out / "run.json").read_text())["eval"]


@pytest.mark.parametrize("method", EXPECTED)
def test_the_first_that_was_written(method, tmp_path):
    tasks = "--task_name=../several/tasks.yaml"
    found = evaluated(tmp_path, GOLDEN / method, tasks)
    assert found.keys() == EXPECTED[method].keys()
    for name, value in EXPECTED[method].items():
        assert found[name] == pytest.approx(value, abs=1e-5), name


@pytest.mark.parametrize("method", [SHARED, EACH])
def test_the_first_adapter_of_a_task_that_was_written(method, tmp_path):
    task = ("--task_name=mrpc", "--data_dir=mrpc")
    found = evaluated(tmp_path, GOLDEN / method / "tasks" / "pairs", *task)
    for name, value in found.items():
        expected = EXPECTED[method][name.replace("eval_", "eval_pairs_")]
        assert value == pytest.approx(expected, abs=1e-5), name


def test_python_loads_each_task_by_its_name():
    model = abt.AdapterModel(abt.load_base(str(BEFORE / "base")))
    for task in TASKS:
        assert model.load_adapter(GOLDEN / EACH / "tasks" / task) == task
        model.load_adapter(GOLDEN / SHARED / "tasks" / task, f"shared {task}")
    assert len(model.list_adapters()) == 6


# Damage. Each row changes a copy, sealed again as one who knows how would, and says what the
# message holds.


def _config(change):
    """A change of the config: a function of it that returns another."""

    def damage(folder):
        path = folder / "adapter_config.json"
        config = change(json.loads(path.read_text()))
        path.write_text(json.dumps(seal(config, config["weights_sha256"])))

    return damage


def _set(**values):
    return _config(lambda config: config | values)


def _tasks(change):
    return _config(lambda config: config | {"tasks": change(config["tasks"])})


def _first(**values):
    return _tasks(lambda tasks: [tasks[0] | values, *tasks[1:]])


def _adapter(**values):
    return _config(lambda config: config | {"adapter": config["adapter"] | values})


def _tuning(method):
    return lambda config: {
        "method": method,
        "tuning": config["tuning"] | {"method": method},
    }


def _flip(folder):
    content = bytearray((folder / "adapter.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "adapter.safetensors").write_bytes(bytes(content))


def _without(task, name):
    return {key: value for key, value in task.items() if key != name}


LIST, NAMES = "tasks must be a list of tasks", "different names of letters"
SIZES = "does not hold what its config|must have the shape"
DAMAGE = {
    "no tasks": (_set(tasks=[]), NAMES),
    "tasks of nothing": (_set(tasks=None), LIST),
    "tasks in a dict": (_tasks(lambda tasks: {task["task"]: task for task in tasks}), LIST),
    "tasks in a text": (_set(tasks="pairs"), LIST),
    "tasks by name": (_tasks(lambda tasks: [task["task"] for task in tasks]), LIST),
    "a task of nothing": (_tasks(lambda tasks: [*tasks, None]), LIST),
    "no list of tasks": (_config(lambda config: _without(config, "tasks")), LIST),
    **{
        f"a task without {name}": (
            _tasks(lambda tasks, name=name: [_without(tasks[0], name), *tasks[1:]]),
            LIST,
        )
        for name in ("task", "head", "labels", "regression", "inputs")
    },
    "a task less": (_tasks(lambda tasks: tasks[:2]), "an adapter for each task"),
    "a task more": (
        _tasks(lambda tasks: [*tasks, tasks[0] | {"name": "new"}]),
        "an adapter for each task",
    ),
    "tasks in another order": (_tasks(lambda tasks: tasks[::-1]), "an adapter for each task"),
    "one task twice": (_tasks(lambda tasks: [tasks[0], *tasks]), NAMES),
    "another name": (_first(name="other"), "an adapter for each task"),
    "a name that leads away": (_first(name="../../x"), NAMES),
    "the name of another": (_first(name="kinds"), NAMES),
    "a name of a number": (_first(name=1), LIST),
    "a task of a number": (_first(task=1), LIST),
    "a name of 100 letters": (_first(name="x" * 100), NAMES),
    "several in a task": (_first(head="several"), "cannot be several tasks itself"),
    "an unknown head": (_first(head="nope"), "nope"),
    "a head of spans": (_first(head="span"), "pairs"),
    "labels in a text": (_first(labels="01"), LIST),
    "labels of numbers": (_first(labels=[0, 1]), "labels must be different strings"),
    "a label twice": (_first(labels=["0", "0"]), "labels must be different strings"),
    "no labels": (_first(labels=[]), "a classifier has labels"),
    "labels and scores": (_first(regression=True), "a classifier has labels"),
    "a label more": (_first(labels=["0", "1", "2"]), SIZES),
    "no inputs": (_first(inputs={}), "inputs must be like"),
    "too long inputs": (_first(inputs={"texts": 2, "max_seq_length": 10**6}), "at most"),
    "three texts": (_first(inputs={"texts": 3, "max_seq_length": 16}), "pairs"),
    "a metric of text": (_first(metric={"name": "f1", "value": "0", "split": "dev"}), "metric"),
    "a metric that is no number": (
        _first(metric={"name": "f1", "value": float("nan"), "split": "dev"}),
        "metric|NaN",
    ),
    "a table of nothing": (_first(table=[]), "table must be like"),
    "adapters of other tasks": (_adapter(tasks=["a", "b", "c"]), "an adapter for each task"),
    "adapters of no task": (_adapter(tasks=[]), NAMES),
    "adapters in a text": (_adapter(tasks="abc"), NAMES),
    "an adapter of nothing": (_adapter(adapter=None), "must be an AdapterConfig"),
    "an adapter in an adapter": (
        _config(
            lambda config: (
                config | {"adapter": {**config["adapter"]} | {"adapter": config["adapter"]}}
            )
        ),
        "per_task|unknown adapter config keys",
    ),
    "wider adapters": (
        _config(
            lambda config: (
                config
                | {
                    "adapter": config["adapter"]
                    | {"adapter": config["adapter"]["adapter"] | {"bottleneck_size": 5}}
                }
            )
        ),
        SIZES,
    ),
    "one adapter for all": (
        _config(lambda config: config | {"adapter": config["adapter"]["adapter"]}),
        "per_task|" + SIZES,
    ),
    "no adapter": (_set(adapter=None), "adapter|" + SIZES),
    "a method for one": (_config(lambda c: c | _tuning("adapters")(c)), "trains no several tasks"),
    "one head": (_set(head="classification", labels=["0", "1"]), "trains several tasks|inputs"),
    "a bit of the weights": (_flip, "digest"),
    "weights cut short": (
        lambda folder: (folder / "adapter.safetensors").write_bytes(b"x" * 100),
        "damaged",
    ),
    "no weights": (lambda folder: (folder / "adapter.safetensors").unlink(), "damaged"),
    "the weights of one task": (
        lambda folder: shutil.copy(folder / "tasks/pairs/adapter.safetensors", folder),
        "damaged|does not hold",
    ),
}


def test_forty_kinds_of_damage():
    assert len(DAMAGE) >= 40


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_refused(case, tmp_path):
    damage, said = DAMAGE[case]
    folder = pathlib.Path(shutil.copytree(GOLDEN / EACH, tmp_path / "whole"))
    damage(folder)
    with pytest.raises(InputError, match=said) as caught:
        load_adapter(str(folder))
    assert str(folder) in str(caught.value)


def test_wholes_of_the_same_tasks_are_averaged(tmp_path, capsys):
    """Their mean has no results yet, neither as a whole nor of a task."""
    both = [str(GOLDEN / EACH)] * 2
    assert main(["average", *both, f"--output={tmp_path}/mean"]) == 0
    mean, one = load_adapter(str(tmp_path / "mean")), load_adapter(both[0])
    assert mean.weights.keys() == one.weights.keys()
    assert [task["metric"] for task in mean.config["tasks"]] == [None] * 3
    other = shutil.copytree(GOLDEN / EACH, tmp_path / "other")
    _first(labels=["1", "0"])(other)
    assert main(["average", both[0], str(other), f"--output={tmp_path}/no"]) == 1
    assert "these differ in ['tasks']" in capsys.readouterr().err


def test_the_librarys_files_are_of_one_task(tmp_path, capsys):
    base = f"--base_model={BEFORE}/base"
    assert main(["export", str(GOLDEN / EACH), f"--output={tmp_path}/hub", base]) == 1
    assert "Name the folder of one of them" in capsys.readouterr().err


def test_the_lowest_layers_are_left_out_of_all_tasks():
    kept = without_lowest(load_adapter(str(GOLDEN / EACH)), 1)
    assert not any("layer_0" in name for name in kept.weights if name.startswith("tasks/"))
    assert any("layer_1" in name for name in kept.weights if name.startswith("tasks/"))
    with pytest.raises(InputError, match="no adapter is left"):
        without_lowest(load_adapter(str(GOLDEN / EACH)), 2)
