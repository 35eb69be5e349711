"""Directories of several tasks: what was first written loads, and damaged ones are refused."""

import json
import pathlib
import shutil

import numpy as np
import pytest

import adapter_bert_tf as abt
from adapter_bert_tf.cli.store import main
from adapter_bert_tf.store import load_adapter
from adapter_bert_tf.store.combining.combine import drop_lowest_layers
from adapter_bert_tf.store.schema import seal
from tests import support
from tests.refusals import raises_code
from tests.runs import base_flags, command

pytestmark = pytest.mark.long

GOLDEN = support.GOLDEN.parent / "several"
BEFORE = support.GOLDEN.parent / "written_before"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
WHOLE, SHARED, EACH = "multitask_full", "multitask_adapters", "per_task_adapters"
HYPER, PLUS, PALS = "hyperformer", "hyperformer++", "pals"
TASKS = ("pairs", "kinds", "scores")


def evaluated(out, folder, *flags):
    """The results of a command in the folder of the base and the data."""
    where = (f"--adapter_dir={folder}", f"--output_dir={out}")
    flags = (*flags, *base_flags("base"), "--do_eval", *where)
    assert command(*flags, folder=BEFORE) is None
    return json.loads((out / "run.json").read_text())["eval"]


@pytest.mark.parametrize("method", support.seldom(EXPECTED, (WHOLE, EACH, PLUS, PALS)))
def test_the_first_that_was_written(method, tmp_path):
    tasks = "--task_name=../several/tasks.yaml"
    found = evaluated(tmp_path, GOLDEN / method, tasks)
    assert found.keys() == EXPECTED[method].keys()
    for name, value in EXPECTED[method].items():
        assert found[name] == pytest.approx(value, abs=1e-5), name


@pytest.mark.parametrize("method", support.seldom([SHARED, EACH, HYPER, PLUS], (EACH, PLUS)))
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


LIST, NAMES = "invalid: tasks", "invalid: names"
SIZES = "damaged: adapter.safetensors"
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
    "a task less": (_tasks(lambda tasks: tasks[:2]), "invalid: parts of each task"),
    "a task more": (
        _tasks(lambda tasks: [*tasks, tasks[0] | {"name": "new"}]),
        "invalid: parts of each task",
    ),
    "tasks in another order": (_tasks(lambda tasks: tasks[::-1]), "invalid: parts of each task"),
    "one task twice": (_tasks(lambda tasks: [tasks[0], *tasks]), NAMES),
    "another name": (_first(name="other"), "invalid: parts of each task"),
    "a name that leads away": (_first(name="../../x"), NAMES),
    "the name of another": (_first(name="kinds"), NAMES),
    "a name of a number": (_first(name=1), LIST),
    "a task of a number": (_first(task=1), LIST),
    "a name of 100 letters": (_first(name="x" * 100), NAMES),
    "several in a task": (_first(head="several"), "invalid: tasks"),
    "an unknown head": (_first(head="nope"), "invalid: nope"),
    "a head of spans": (_first(head="span"), "invalid: pairs"),
    "labels in a text": (_first(labels="01"), LIST),
    "labels of numbers": (_first(labels=[0, 1]), "invalid: labels"),
    "a label twice": (_first(labels=["0", "0"]), "invalid: labels"),
    "no labels": (_first(labels=[]), "invalid: labels"),
    "labels and scores": (_first(regression=True), "invalid: labels"),
    "a label more": (_first(labels=["0", "1", "2"]), SIZES),
    "no inputs": (_first(inputs={}), "invalid: inputs"),
    "too long inputs": (_first(inputs={"texts": 2, "max_seq_length": 10**6}), "invalid: at most"),
    "three texts": (_first(inputs={"texts": 3, "max_seq_length": 16}), "invalid: pairs"),
    "a metric of text": (
        _first(metric={"name": "f1", "value": "0", "split": "dev"}),
        "invalid: metric",
    ),
    "a metric that is no number": (
        _first(metric={"name": "f1", "value": float("nan"), "split": "dev"}),
        "invalid: metric",
    ),
    "a metric of all that has no name": (_set(metric={"": None}), "invalid: metric"),
    "a table of nothing": (_first(table=[]), "invalid: table"),
    "adapters of other tasks": (_adapter(tasks=["a", "b", "c"]), "invalid: parts of each task"),
    "adapters of no task": (_adapter(tasks=[]), NAMES),
    "adapters in a text": (_adapter(tasks="abc"), NAMES),
    "an adapter of nothing": (_adapter(adapter=None), "invalid: adapter must be"),
    "an adapter in an adapter": (
        _config(
            lambda config: (
                config | {"adapter": {**config["adapter"]} | {"adapter": config["adapter"]}}
            )
        ),
        "invalid: PerTaskConfig",
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
        SIZES,
    ),
    "no adapter": (_set(adapter=None), "invalid: adapter"),
    "a method for one": (_config(lambda c: c | _tuning("adapters")(c)), "invalid: tasks"),
    "one head": (_set(head="classification", labels=["0", "1"]), "invalid: inputs"),
    "a bit of the weights": (_flip, "damaged: digest"),
    "weights cut short": (
        lambda folder: (folder / "adapter.safetensors").write_bytes(b"x" * 100),
        "damaged: damaged",
    ),
    "no weights": (lambda folder: (folder / "adapter.safetensors").unlink(), "damaged: damaged"),
    "the weights of one task": (
        lambda folder: shutil.copy(folder / "tasks/pairs/adapter.safetensors", folder),
        "damaged: does not match",
    ),
}


def _in(config, **values):
    """The config with other values in the adapter that is made for each task."""
    adapter = config["adapter"] | {"adapter": config["adapter"]["adapter"] | values}
    return config | {"adapter": adapter}


HYPERFORMER = "invalid: HyperFormer:"
OF_HYPER = {  # Of HyperFormer++, in addition to the rows above that are not of adapters alone.
    "hypernetworks of other tasks": (
        _adapter(tasks=["a", "b", "c"]),
        "invalid: parts of each task",
    ),
    "no tasks of the hypernetwork": (_adapter(tasks=[]), NAMES),
    "one for each place": (_adapter(shared=False), SIZES),
    "shared by a word": (_adapter(shared="no"), HYPERFORMER),
    "larger embeddings": (_adapter(task_embedding_size=5), SIZES),
    "embeddings of nothing": (_adapter(task_embedding_size=0), HYPERFORMER),
    "absurd embeddings": (_adapter(task_embedding_size=10**12), HYPERFORMER),
    "embeddings of true": (_adapter(task_embedding_size=True), HYPERFORMER),
    "a wider projector": (_adapter(projector_size=7), SIZES),
    "a projector of text": (_adapter(projector_size="6"), HYPERFORMER),
    "wider vectors": (_adapter(projected_size=6), SIZES),
    "negative vectors": (_adapter(projected_size=-5), HYPERFORMER),
    "no projector": (_adapter(projector=False), SIZES),
    "LayerNorms for all tasks": (_adapter(conditional_norm=False), SIZES),
    "a start of its own": (_adapter(start="random"), HYPERFORMER),
    "an unknown key": (_adapter(temperature=1), "invalid: adapter"),
    "adapters without a LayerNorm after": (
        _config(lambda config: _in(config, normalize_output=False)),
        "invalid: normalize_output",
    ),
    "wider adapters of each": (_config(lambda c: _in(c, bottleneck_size=5)), SIZES),
    "adapters in one layer": (_config(lambda config: _in(config, layers=[1])), SIZES),
    "adapters in a layer too high": (
        _config(lambda config: _in(config, layers=[2])),
        "invalid: below 2",
    ),
    "adapters after one sublayer": (
        _config(lambda config: _in(config, sublayers=["attention"])),
        SIZES,
    ),
    "another kind": (_adapter(kind="pals"), "invalid: adapter"),
    "no kind": (_adapter(kind="hyper"), "invalid: adapter"),
    "another method": (_config(lambda c: c | _tuning(EACH)(c)), "invalid: there is no such part"),
}
OF_PALS = {
    "PALs of other tasks": (_adapter(tasks=["a", "b", "c"]), "invalid: parts of each task"),
    "narrower PALs": (_adapter(size=9), SIZES),
    "heads that do not divide": (_adapter(num_heads=5), "invalid: num_heads"),
    "no heads": (_adapter(num_heads=0), "invalid: num_heads"),
    "heads of text": (_adapter(num_heads="3"), "invalid: num_heads"),
    "an unknown activation": (_adapter(activation="mish"), "invalid: activation"),
    "a frozen base": (_config(lambda c: c | _tuning("multitask_layer_norm")(c)), SIZES),
}
OF_ALL = {
    case: row
    for case, row in DAMAGE.items()
    if case not in ("one adapter for all", "no adapter", "wider adapters")
    and "adapter in" not in case
    and "adapters in" not in case
    and "the weights of one" not in case
}
CASES = [
    *((EACH, case, row) for case, row in DAMAGE.items()),
    *((PLUS, case, row) for case, row in (OF_ALL | OF_HYPER).items()),
    *((PALS, case, row) for case, row in OF_PALS.items()),
]


@pytest.mark.parametrize("method", [EACH, PLUS])
def test_forty_kinds_of_damage(method):
    assert len([case for case in CASES if case[0] == method]) >= 40


@pytest.mark.parametrize(
    ("method", "damage", "said"),
    [(method, *row) for method, _, row in CASES],
    ids=[f"{method}, {case}" for method, case, _ in CASES],
)
def test_damage_is_refused(method, damage, said, tmp_path):
    folder = pathlib.Path(shutil.copytree(GOLDEN / method, tmp_path / "whole"))
    damage(folder)
    with raises_code(said) as caught:
        load_adapter(str(folder))
    assert str(folder) in str(caught.value)


def test_wholes_of_the_same_tasks_are_averaged(tmp_path, capsys):
    """Their mean has no results yet, neither as a whole nor of a task."""
    both = [str(GOLDEN / EACH), str(shutil.copytree(GOLDEN / EACH, tmp_path / "again"))]
    assert main(["average", *both, f"--output={tmp_path}/mean"]) == 0
    mean, one = load_adapter(str(tmp_path / "mean")), load_adapter(both[0])
    assert mean.weights.keys() == one.weights.keys()
    assert [task["metric"] for task in mean.config["tasks"]] == [None] * 3
    other = shutil.copytree(GOLDEN / EACH, tmp_path / "other")
    _first(labels=["1", "0"])(other)
    assert main(["average", both[0], str(other), f"--output={tmp_path}/no"]) == 1
    assert "these differ in ['tasks']" in capsys.readouterr().err


@pytest.mark.parametrize("method", [SHARED, EACH, HYPER, PLUS])
def test_generate_writes_what_stands_beside_the_whole(method, tmp_path):
    out = tmp_path / "one"
    assert main(["generate", str(GOLDEN / method), "--task=kinds", f"--output={out}"]) == 0
    made, there = load_adapter(str(out)), load_adapter(str(GOLDEN / method / "tasks" / "kinds"))
    assert made.weights.keys() == there.weights.keys()
    for name, value in there.weights.items():
        np.testing.assert_allclose(made.weights[name], value, atol=1e-6, err_msg=name)
    assert main(["verify", str(out), str(GOLDEN / method)]) == 0


GENERATE = {
    "a task that is not there": ((PLUS, "--task=other"), "holds the tasks"),
    "a base that was trained": ((PALS, "--task=kinds"), "no adapter of a single task"),
    "an adapter of one task": ((f"{PLUS}/tasks/kinds", "--task=kinds"), "Use it as it is"),
}


@pytest.mark.parametrize("case", GENERATE)
def test_what_cannot_be_generated(case, tmp_path, capsys):
    (folder, task), message = GENERATE[case]
    assert main(["generate", str(GOLDEN / folder), task, f"--output={tmp_path}/one"]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "one").exists()


def test_what_is_made_for_two_tasks_differs():
    one, other = (load_adapter(str(GOLDEN / PLUS / "tasks" / n)).weights for n in TASKS[:2])
    names = [name for name in one if name.startswith("adapters/") and "norm" in name]
    assert all(np.abs(one[name] - other[name]).max() > 1e-6 for name in names)


def test_the_librarys_files_are_of_one_task(tmp_path, capsys):
    base = f"--base_model={BEFORE}/base"
    assert main(["export", str(GOLDEN / EACH), f"--output={tmp_path}/hub", base]) == 1
    assert "Name the folder of one of them" in capsys.readouterr().err


def test_the_lowest_layers_are_left_out_of_all_tasks():
    kept = drop_lowest_layers(load_adapter(str(GOLDEN / EACH)), 1)
    assert not any("layer_0" in name for name in kept.weights if name.startswith("tasks/"))
    assert any("layer_1" in name for name in kept.weights if name.startswith("tasks/"))
    with raises_code("invalid", "no adapter is left"):
        drop_lowest_layers(load_adapter(str(GOLDEN / EACH)), 2)
    with raises_code("invalid", "Received: True"):
        drop_lowest_layers(load_adapter(str(GOLDEN / EACH)), True)
