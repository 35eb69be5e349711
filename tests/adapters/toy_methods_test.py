"""A method that the house has never seen is trained, counted, saved, refused and loaded.

The methods are in `toy_methods.py`; nothing of `adapters/encoder.py`, `training/`, `store/` or
`run/` knows of them.
"""

import ast
import json
import pathlib
import subprocess
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
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.store import contents, load_adapter, save_adapter, schema
from adapter_bert_tf.store.weights import digest
from adapter_bert_tf.task_types import TASK_TYPES
from adapter_bert_tf.training.loop import TrainingSettings, train
from adapter_bert_tf.training.parameter_report import format_report
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import support
from tests.adapters import toy_methods
from tests.adapters.toy_methods import ToyHypernetwork, ToyMixture
from tests.runs import command, write_mrpc
from tests.runs import train as train_by_command

pytestmark = pytest.mark.long

METHODS = {"hypernetwork": ToyHypernetwork(), "mixture": ToyMixture()}
PLACE = 2 * 16 * 4 + 4 + 16  # Parameters of an adapter of size 4.
# Trained, and of how many, of the tiny base's two layers.
COUNTS = {
    "hypernetwork": {"adapters": (4 * PLACE * 5 + 3 * 5, 4 * PLACE * 5 + 3 * 5)},
    "mixture": {"adapters": (4 * 2, 4 * 2), "members": (0, 4 * 2 * PLACE)},
}
OTHER_PROCESS = """
import sys
import numpy as np
import adapter_bert_tf as abt
import tests.adapters.toy_methods

base, folder = sys.argv[1:]
model = abt.AdapterModel(abt.load_base(base))
name = model.load_adapter(f"{folder}/adapter")
inputs = dict(np.load(f"{folder}/inputs.npz"))
np.save(f"{folder}/logits.npy", model(inputs, adapter=name))
"""


def inputs_of(rows=4):
    """A batch of three tasks."""
    return support.batch(rows=rows) | {"task_ids": np.arange(rows, dtype=np.int32) % 3}


def batches(steps):
    data = tf.data.Dataset.from_tensors((inputs_of(), np.array([0, 1, 1, 0])))
    return lambda start, share: data.repeat(steps - start)


@pytest.fixture(scope="module", params=METHODS)
def trained(request, tiny_base_folder, tmp_path_factory):
    """(name, model before as arrays, model, trained variables, adapter directory)."""
    tf_keras.utils.set_random_seed(0)
    base, config = load_base(tiny_base_folder), METHODS[request.param]
    model = TASK_TYPES["classification"].new_model(base.build_encoder(config), 2)
    variables = select_trained(model, Tuning())
    before = {name: v.numpy() for name, v in model.named_variables().items()}
    train(model, variables, batches(4), TrainingSettings(4, 4, 1e-2))
    folder = tmp_path_factory.mktemp(request.param) / "adapter"
    described = schema.describe("toy", ["no", "yes"], base.fingerprint(), Tuning(), config)
    save_adapter(str(folder), described, contents.kept_variables(model, Tuning()))
    return request.param, before, model, variables, folder


def test_what_is_trained_moves_and_nothing_else(trained):
    _, before, model, variables, _ = trained
    after = {key: v.numpy() for key, v in model.named_variables().items()}
    moved = {key for key in after if after[key].tobytes() != before[key].tobytes()}
    assert moved == set(variables)
    assert any(key.startswith("adapters/") for key in moved)
    assert not any(key.startswith("members/") for key in moved)


def test_it_is_counted_by_group(trained):
    name, _, model, variables, _ = trained
    rows = {
        line.split()[0]: line.split()
        for line in format_report(model, variables, Tuning()).split("\n")
    }
    for group, counts in COUNTS[name].items():
        assert tuple(int(cell.replace(",", "")) for cell in rows[group][1:3]) == counts


def test_another_process_computes_the_same(trained, tiny_base_folder):
    _, _, model, _, folder = trained
    inputs = inputs_of()
    np.savez(folder.parent / "inputs.npz", **inputs)
    subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, tiny_base_folder, folder.parent],
        check=True,
        cwd=pathlib.Path(__file__).parents[2],
    )
    expected = model(inputs, training=False)
    np.testing.assert_allclose(np.load(folder.parent / "logits.npy"), expected, atol=1e-6)


def test_the_directory_holds_the_configuration(trained):
    name, _, _, _, folder = trained
    saved = load_adapter(str(folder))
    assert ModuleConfig.from_dict(saved.config["adapter"]) == METHODS[name]
    assert METHODS[name].kind in (folder / "README.md").read_text()


def damage_weights(folder, change):
    """Changes the arrays and makes both digests right again."""
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
def test_damaged_weights_are_refused(damage, trained, tmp_path):
    folder = tmp_path / "adapter"
    folder.mkdir()
    for path in trained[-1].iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    damage_weights(folder, DAMAGES[damage])
    with pytest.raises(InputError):
        load_adapter(str(folder))


@pytest.mark.parametrize(
    "adapter", [{"kind": "unheard_of"}, {"kind": "toy_mixture", "colour": 1}, {"kind": 3}], ids=str
)
def test_a_configuration_of_no_known_kind_is_refused(adapter):
    with pytest.raises(InputError, match="Received"):
        ModuleConfig.from_dict(adapter)


def test_each_row_has_the_weights_of_its_task(tiny_base_folder):
    encoder = load_base(tiny_base_folder).build_encoder(ToyHypernetwork())
    inputs = support.batch(rows=4)
    mixed = encoder(inputs | {"task_ids": np.array([0, 2, 1, 0], np.int32)})["pooled_output"]
    for row, task in enumerate([0, 2, 1, 0]):
        alone = encoder(inputs | {"task_ids": np.full(4, task, np.int32)})["pooled_output"]
        np.testing.assert_allclose(mixed[row], alone[row], atol=1e-6)
    assert (
        np.abs(mixed[0] - encoder(inputs | {"task_ids": np.full(4, 1)})["pooled_output"][0]).max()
        > 1e-3
    )


def test_a_mixture_is_the_mean_of_its_members(tiny_base_folder):
    """With equal shares, as at the start; two products by hand against the one."""
    encoder = load_base(tiny_base_folder).build_encoder(ToyMixture())
    for name, variable in encoder.module_layer.named_variables().items():
        if name.startswith("members/"):
            variable.assign(tf.stack([variable[0], variable[0]]))
    halves = {
        name.replace("members/", "adapters/"): variable[0]
        for name, variable in encoder.module_layer.named_variables().items()
        if name.startswith("members/")
    }
    one = encoder.encoder(support.batch(), module=module_from_values(AdapterConfig(4), halves))
    np.testing.assert_allclose(
        encoder(support.batch())["pooled_output"], one["pooled_output"], atol=1e-6
    )


@pytest.mark.parametrize("name", support.seldom(METHODS, list(METHODS)[:1]))
def test_it_travels_through_the_command(name, tiny_base_folder, tmp_path, capsys):
    """Trained, exported, and evaluated from its directory to the same numbers."""
    (tmp_path / "method.json").write_text(METHODS[name].to_json())
    mrpc, out = write_mrpc(tmp_path / "MRPC"), tmp_path / "out"
    train_by_command(
        mrpc,
        tiny_base_folder,
        out,
        "--do_eval",
        "--do_export",
        "--num_train_epochs=2",
        f"--adapter={tmp_path}/method.json",
    )
    record = json.loads((out / "run.json").read_text())
    assert ModuleConfig.from_dict(record["adapter"]) == METHODS[name]
    assert (out / "saved_model" / "saved_model.pb").exists()
    again = tmp_path / "again"
    assert (
        command(
            "--task_name=mrpc",
            f"--data_dir={mrpc}",
            "--do_eval",
            f"--adapter_dir={out}/adapter",
            f"--output_dir={again}",
            "--max_seq_length=16",
            f"--base_model={tiny_base_folder}",
        )
        is None
    )
    results = [(folder / "eval_results.txt").read_text() for folder in (out, again)]
    assert results[0] == results[1]


def test_the_methods_are_short():
    tree = ast.parse(pathlib.Path(toy_methods.__file__).read_text())
    lengths = {
        c.name: c.end_lineno - c.lineno + 1 + len(c.decorator_list)
        for c in tree.body
        if isinstance(c, ast.ClassDef)
    }
    assert lengths["ToyHypernetwork"] + lengths["ToyHypernetworkModule"] < 40
    assert lengths["ToyMixture"] + lengths["ToyMixtureModule"] < 40


def test_both_may_serve_beside_ordinary_adapters(tiny_base_folder, tmp_path):
    model = AdapterModel(load_base(tiny_base_folder))
    for name, config in {**METHODS, "plain": "houlsby"}.items():
        model.add_adapter(name, ["no", "yes"], config, max_seq_length=16)
    inputs = support.batch(rows=3)
    mixed = model(inputs, adapter=["mixture", "plain", "hypernetwork"])
    for row, name in enumerate(["mixture", "plain", "hypernetwork"]):
        np.testing.assert_allclose(mixed[row], model(inputs, adapter=name)[row], atol=1e-6)
