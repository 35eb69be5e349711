"""Methods that the package does not know are trained, counted, saved, refused, loaded and served.

Each is one file of `toy_methods/`; no file of the package names them.
"""

import ast
import json
import pathlib
import sys

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.modules import module_from_values
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.serving.joined import join
from adapter_bert_tf.store import contents, load_adapter, save_adapter, schema
from adapter_bert_tf.store.weights import digest
from adapter_bert_tf.task_types import TASK_TYPES
from adapter_bert_tf.training.loop import TrainingSettings, train
from adapter_bert_tf.training.parameter_report import format_report
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import processes, support
from tests.adapters import toy_methods
from tests.adapters.toy_methods import (
    ToyHypernetwork,
    ToyLowRank,
    ToyMixture,
    ToyPrefix,
    ToyRescaling,
)
from tests.refusals import raises_code
from tests.runs import command, write_mrpc
from tests.runs import train as train_by_command

METHODS = {
    "hypernetwork": ToyHypernetwork(),
    "mixture": ToyMixture(),
    "rescaling": ToyRescaling(),
    "low_rank": ToyLowRank(),
    "prefix": ToyPrefix(),
}
STACKABLE = [name for name, config in METHODS.items() if config.stackable]
ADAPTER = 2 * 16 * 4 + 4 + 16  # Parameters of an adapter of size 4.
# Dict from group to the numbers of trained and of all parameters, on the tiny base of two layers.
COUNTS = {
    "hypernetwork": {"adapters": (4 * ADAPTER * 5 + 3 * 5, 4 * ADAPTER * 5 + 3 * 5)},
    "mixture": {"adapters": (4 * 2, 4 * 2), "members": (0, 4 * 2 * ADAPTER)},
    "rescaling": {"adapters": (2 * (16 + 16 + 32), 2 * (16 + 16 + 32))},
    "low_rank": {"adapters": (2 * 2 * (2 * 16 * 2), 2 * 2 * (2 * 16 * 2))},
    "prefix": {"adapters": (2 * 2 * 3 * 16, 2 * 2 * 3 * 16)},
}
OTHER_PROCESS = """
import pathlib, sys
import numpy as np
import adapter_bert_tf as abt
import tests.adapters.toy_methods

base, folder = sys.argv[1], pathlib.Path(sys.argv[2])
model = abt.AdapterModel(abt.load_base(base))
inputs = dict(np.load(folder / "inputs.npz"))
names = sorted(path.name for path in folder.iterdir() if path.is_dir())
for name in names:
    model.load_adapter(str(folder / name), name)
np.savez(folder / "logits.npz", **{name: model(inputs, adapter=name) for name in names})
"""


def inputs_of(rows=4):
    """A batch of three tasks."""
    return support.batch(rows=rows) | {"task_ids": np.arange(rows, dtype=np.int32) % 3}


def batches(steps):
    data = tf.data.Dataset.from_tensors((inputs_of(), np.array([0, 1, 1, 0])))
    return lambda start, share: data.repeat(steps - start)


@pytest.fixture(scope="module")
def base(tiny_base_folder):
    return load_base(tiny_base_folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder with an adapter directory for each method that was trained."""
    return tmp_path_factory.mktemp("adapters")


@pytest.fixture(scope="module")
def train_method(base, folder):
    """Function of a method's name: (values before training, model, trained variables)."""
    trained = {}

    def train_once(name):
        if name not in trained:
            trained[name] = _train(base, METHODS[name], str(folder / name))
        return trained[name]

    return train_once


def _train(base, config, folder):
    tf_keras.utils.set_random_seed(0)
    model = TASK_TYPES["classification"].new_model(base.build_encoder(config), 2)
    variables = select_trained(model, Tuning())
    before = {key: v.numpy() for key, v in model.named_variables().items()}
    train(model, variables, batches(4), TrainingSettings(4, 4, 1e-2))
    described = schema.describe("toy", ["no", "yes"], base.fingerprint(), Tuning(), config)
    save_adapter(folder, described, contents.kept_variables(model, Tuning()))
    return before, model, variables


@pytest.fixture(params=METHODS)
def method(request):
    """The name of a method."""
    return request.param


def test_exactly_the_trained_variables_move(method, train_method):
    before, model, variables = train_method(method)
    after = {key: v.numpy() for key, v in model.named_variables().items()}
    moved = {key for key in after if after[key].tobytes() != before[key].tobytes()}
    assert moved == set(variables)
    assert any(key.startswith("adapters/") for key in moved)
    assert not any(key.startswith("members/") for key in moved)


def test_parameters_are_counted_by_group(method, train_method):
    _, model, variables = train_method(method)
    rows = {
        line.split()[0]: line.split()
        for line in format_report(model, variables, Tuning()).split("\n")
    }
    for group, counts in COUNTS[method].items():
        assert tuple(int(cell.replace(",", "")) for cell in rows[group][1:3]) == counts


def test_another_process_computes_the_same(train_method, folder, tiny_base_folder):
    inputs = inputs_of()
    expected = {name: train_method(name)[1](inputs, training=False) for name in METHODS}
    np.savez(folder / "inputs.npz", **inputs)
    done = processes.run([sys.executable, "-c", OTHER_PROCESS, tiny_base_folder, folder])
    assert done.returncode == 0, done.stderr
    logits = np.load(folder / "logits.npz")
    for name, values in expected.items():
        np.testing.assert_allclose(logits[name], values, atol=1e-6)


def test_the_directory_holds_the_configuration(method, train_method, folder):
    train_method(method)
    saved = load_adapter(str(folder / method))
    assert ModuleConfig.from_dict(saved.config["adapter"]) == METHODS[method]
    assert METHODS[method].kind in (folder / method / "README.md").read_text()


def damage_weights(folder, change):
    """Changes the arrays and updates both digests."""
    arrays = dict(safetensors.numpy.load_file(folder / "adapter.safetensors"))
    content = safetensors.numpy.save(change(arrays))
    (folder / "adapter.safetensors").write_bytes(content)
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(schema.seal(config, digest(content))))


def first_of(arrays):
    return next(name for name in arrays if not name.startswith(("bert/", "head/")))


DAMAGES = {
    "one is missing": lambda a: {name: v for name, v in a.items() if name != first_of(a)},
    "one is renamed": lambda a: {
        ("adapters/other" if name == first_of(a) else name): v for name, v in a.items()
    },
    "another shape": lambda a: a | {first_of(a): a[first_of(a)][..., None]},
    "not finite": lambda a: a | {first_of(a): a[first_of(a)] * np.float32("nan")},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_weights_are_refused(damage, method, train_method, folder, tmp_path):
    train_method(method)
    damaged = tmp_path / "adapter"
    damaged.mkdir()
    for path in (folder / method).iterdir():
        (damaged / path.name).write_bytes(path.read_bytes())
    damage_weights(damaged, DAMAGES[damage])
    with raises_code("invalid" if damage == "not finite" else "damaged"):
        load_adapter(str(damaged))


@pytest.mark.parametrize(
    "adapter", [{"kind": "unheard_of"}, {"kind": "toy_mixture", "colour": 1}, {"kind": 3}], ids=str
)
def test_a_configuration_of_no_known_kind_is_refused(adapter):
    with raises_code("invalid", "Received"):
        ModuleConfig.from_dict(adapter)


def test_each_row_has_the_weights_of_its_task(base):
    encoder = base.build_encoder(ToyHypernetwork())
    inputs = support.batch(rows=4)
    mixed = encoder(inputs | {"task_ids": np.array([0, 2, 1, 0], np.int32)})["pooled_output"]
    for row, task in enumerate([0, 2, 1, 0]):
        alone = encoder(inputs | {"task_ids": np.full(4, task, np.int32)})["pooled_output"]
        np.testing.assert_allclose(mixed[row], alone[row], atol=1e-6)
        others = encoder(inputs | {"task_ids": np.full(4, (task + 1) % 3)})["pooled_output"]
        assert np.abs(mixed[row] - others[row]).max() > 1e-3


def test_a_mixture_is_the_mean_of_its_members(base):
    """With equal shares, as at the start: the sum of two halves is one adapter."""
    encoder = base.build_encoder(ToyMixture())
    members = {
        name: variable
        for name, variable in encoder.module_layer.named_variables().items()
        if name.startswith("members/")
    }
    for variable in members.values():
        variable.assign(tf.stack([variable[0], variable[0]]))
    values = {name.replace("members/", "adapters/"): v[0] for name, v in members.items()}
    one = encoder.encoder(support.batch(), module=module_from_values(AdapterConfig(4), values))
    np.testing.assert_allclose(
        encoder(support.batch())["pooled_output"], one["pooled_output"], atol=1e-6
    )


def add_task(model, name, config, seed):
    """Adds a task with random weights."""
    trained = model.add_adapter(name, ["no", "yes"], config, max_seq_length=16)
    rng = np.random.default_rng(seed)
    for variable in trained.trainable_variables:
        variable.assign_add(rng.normal(size=variable.shape) * 0.3)


def test_all_methods_share_a_batch(base):
    """Rows of a stackable kind are computed in one pass, each with values of its own."""
    model = AdapterModel(base)
    add_task(model, "plain", "houlsby", 0)
    for seed, (name, config) in enumerate(METHODS.items()):
        add_task(model, name, config, seed)
        if config.stackable:
            add_task(model, f"{name} 2", config, 100 + seed)
    names = [*model.list_adapters(), *(f"{name} 2" for name in STACKABLE)]
    inputs = support.batch(rows=len(names))
    mixed = model(inputs, adapter=names)
    alone = {name: model(inputs, adapter=name) for name in model.list_adapters()}
    for row, name in enumerate(names):
        np.testing.assert_allclose(mixed[row], alone[name][row], atol=1e-5)
    for name in STACKABLE:
        assert np.abs(alone[name] - alone[f"{name} 2"]).max() > 1e-2


def test_they_are_served(base, tmp_path):
    model = AdapterModel(base)
    for seed, (name, kind) in enumerate(
        {"a": "rescaling", "b": "rescaling", "c": "low_rank"}.items()
    ):
        add_task(model, name, METHODS[kind], seed)
        model.save_adapter(name, str(tmp_path / name))
    join([str(tmp_path / name) for name in "abc"], base, str(tmp_path / "model"))
    texts = ["the cat ran", "rain", "a red house"]
    served = tf.saved_model.load(str(tmp_path / "model")).signatures["tasks"]
    output = served(
        task=tf.constant(["b", "c", "a"]), text_a=tf.constant(texts), text_b=tf.constant([""] * 3)
    )
    inputs = TextEncoder(base.vocabulary, 16).inputs(texts)
    expected = model(inputs, adapter=["b", "c", "a"])
    np.testing.assert_allclose(output["logits"], expected, atol=1e-5)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] * (n != "low_rank")) for n in METHODS]
)
def test_it_travels_through_the_command(name, tiny_base_folder, tmp_path):
    """Trained, exported, and evaluated from its directory to the same numbers."""
    (tmp_path / "method.json").write_text(METHODS[name].to_json())
    mrpc, out = write_mrpc(tmp_path / "MRPC"), tmp_path / "out"
    train_by_command(
        mrpc,
        tiny_base_folder,
        out,
        "--do_eval",
        "--do_export",
        "--num_train_epochs=1",
        f"--adapter={tmp_path}/method.json",
    )
    record = json.loads((out / "run.json").read_text())
    assert ModuleConfig.from_dict(record["adapter"]) == METHODS[name]
    assert (out / "saved_model" / "saved_model.pb").exists()
    again = tmp_path / "again"
    error = command(
        "--task_name=mrpc",
        f"--data_dir={mrpc}",
        "--do_eval",
        f"--adapter_dir={out}/adapter",
        f"--output_dir={again}",
        "--max_seq_length=16",
        f"--base_model={tiny_base_folder}",
    )
    assert error is None
    results = [(path / "eval_results.txt").read_text() for path in (out, again)]
    assert results[0] == results[1]


def test_the_methods_are_short():
    for path in pathlib.Path(toy_methods.__file__).parent.glob("[a-z]*.py"):
        classes = [n for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef)]
        lines = [c.end_lineno - c.lineno + 1 + len(c.decorator_list) for c in classes]
        assert len(classes) == 2 and sum(lines) < 40, path
