"""Adapters of every method: rows of one batch, directories, averages, fewer layers, SavedModels."""

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.serving.joined import join
from adapter_bert_tf.store import load_adapter, save_adapter
from adapter_bert_tf.store.combining.combine import average
from tests import support
from tests.refusals import raises_code

NAMES = ("one", "two")
SMALL = {
    name: config.adjusted(size=4) if "size" in config.adjustable else config
    for name, config in PRESETS.items()
}
METHODS = ("houlsby", "lora", "ia3", "prefix", "compacter", "mam", "unipelt")


@pytest.fixture(scope="module")
def base(tiny_base_folder):
    return load_base(tiny_base_folder)


@pytest.fixture(scope="module", params=METHODS)
def preset(request):
    return request.param


@pytest.fixture(scope="module")
def live(preset, base):
    """A model with two tasks of random weights."""
    model, rng = AdapterModel(base), np.random.default_rng(0)
    for name in NAMES:
        trained = model.add_adapter(name, ["no", "yes"], SMALL[preset], max_seq_length=16)
        for variable in trained.trainable_variables:
            variable.assign_add(rng.normal(size=variable.shape) * 0.3)
    return model


@pytest.fixture(scope="module")
def folders(live, tmp_path_factory):
    """The adapter directories of both."""
    parent = tmp_path_factory.mktemp("adapters")
    for name in NAMES:
        live.save_adapter(name, str(parent / name))
    return [str(parent / name) for name in NAMES]


@pytest.fixture(scope="module")
def loaded(folders, base):
    model = AdapterModel(base)
    for folder in folders:
        model.load_adapter(folder)
    return model


def test_a_directory_computes_the_same(live, loaded):
    inputs = support.batch(rows=4)
    for name in NAMES:
        expected = live(inputs, adapter=name)
        np.testing.assert_allclose(loaded(inputs, adapter=name), expected, atol=1e-5)
    assert np.abs(expected - live(inputs, adapter="one")).max() > 1e-2


@pytest.mark.parametrize("rows", [("one", "two"), ("two", "one", "two")], ids=len)
def test_rows_of_both_in_one_batch(rows, live, loaded):
    inputs = support.batch(rows=len(rows))
    alone = {name: live(inputs, adapter=name) for name in NAMES}
    expected = np.stack([alone[name][i] for i, name in enumerate(rows)])
    for model in (live, loaded):
        np.testing.assert_allclose(model(inputs, adapter=list(rows)), expected, atol=1e-5)


def test_a_directory_holds_what_it_needs(preset, folders):
    saved = load_adapter(folders[0])
    stored = SMALL[preset].stored_config()
    assert ModuleConfig.from_dict(saved.config["adapter"]) == stored
    specs = stored.specs(saved.config["base"])
    own = {name: v.shape for name, v in saved.weights.items() if name.startswith("adapters/")}
    assert own == {name: spec.shape for name, spec in specs.items()}


def test_an_average(folders, base, tmp_path):
    saved = [load_adapter(folder) for folder in folders]
    mean = average(saved)
    for name, value in mean.weights.items():
        expected = (saved[0].weights[name] + saved[1].weights[name]) / 2
        np.testing.assert_allclose(value, expected, atol=1e-7)
    save_adapter(str(tmp_path / "mean"), mean.config, mean.weights)
    AdapterModel(base).load_adapter(str(tmp_path / "mean"))


def test_without_the_lowest_layer(preset, folders, base, loaded):
    model = AdapterModel(base)
    name = model.load_adapter(folders[0], drop_lowest=1)
    adapter = ModuleConfig.from_dict(model.config(name)["adapter"])
    assert adapter == SMALL[preset].stored_config().without_lowest(1, 2)
    inputs = support.batch()
    change = model(inputs, adapter=name) - loaded(inputs, adapter="one")
    assert np.abs(change).max() > 1e-3
    with raises_code("invalid"):
        AdapterModel(base).load_adapter(folders[0], drop_lowest=2)


@pytest.mark.long
def test_a_saved_model_of_both(folders, base, live, tmp_path):
    join(folders, base, str(tmp_path / "model"))
    texts = ["the cat ran", "rain", "a red house"]
    served = tf.saved_model.load(str(tmp_path / "model")).signatures["tasks"]
    rows, empty = ["two", "one", "two"], tf.constant([""] * 3)
    output = served(task=tf.constant(rows), text_a=tf.constant(texts), text_b=empty)
    expected = live(TextEncoder(base.vocabulary, 16).inputs(texts), adapter=rows)
    np.testing.assert_allclose(output["logits"], expected, atol=1e-5)
