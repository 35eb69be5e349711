"""Adapters with another size for each layer: training, files, batches, fusion."""

import dataclasses

import numpy as np
import pytest

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.methods.hyperformer import HyperFormerConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.cli.store import main
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.store import load_adapter
from adapter_bert_tf.training.tuning import Tuning
from tests.refusals import raises_code
from tests.support import GOLDEN

CONFIG = AdapterConfig(4, layer_sizes={0: 2})
IDS = np.array([[2, 7, 9, 3], [2, 11, 3, 0]], "i4")
INPUTS = {
    "input_word_ids": IDS,
    "input_mask": (IDS > 0).astype("i4"),
    "input_type_ids": np.zeros_like(IDS),
}


@pytest.fixture(scope="module")
def model():
    """Two tasks with random weights and these sizes, one with one size."""
    model, rng = AdapterModel(load_base(str(GOLDEN / "bert_model.ckpt"))), np.random.default_rng(0)
    plain = dataclasses.replace(CONFIG, layer_sizes={})
    for name, config in (("a", CONFIG), ("b", CONFIG), ("plain", plain)):
        trained = model.add_adapter(
            name, ["no", "yes"], config, tuning=Tuning(train_layer_norm=False)
        )
        for variable in trained.trainable_variables:
            variable.assign_add(rng.normal(size=variable.shape) * 0.1)
    return model


def test_files_have_the_sizes(model, tmp_path):
    model.save_adapter("a", str(tmp_path / "a"))
    saved = load_adapter(str(tmp_path / "a"))
    kernels = {i: saved.weights[f"adapters/layer_{i}/attention/down_kernel"] for i in (0, 1)}
    assert {i: kernel.shape for i, kernel in kernels.items()} == {0: (32, 2), 1: (32, 4)}
    assert "size 4 (layer 0: 2)" in (tmp_path / "a" / "README.md").read_text()
    again = AdapterModel(model.base)
    again.load_adapter(str(tmp_path / "a"))
    np.testing.assert_array_equal(again(INPUTS, "a"), model(INPUTS, "a"))


def test_the_list_shows_the_smallest_and_the_largest(model, tmp_path, capsys):
    for name in ("a", "plain"):
        model.save_adapter(name, str(tmp_path / name))
    assert main(["list", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()[1:3]
    assert [line.split()[:3] for line in lines] == [
        ["a", "adapters", "2-4"],
        ["plain", "adapters", "4"],
    ]


def test_generated_adapters_have_one_size():
    adapter = dataclasses.replace(CONFIG, normalize_output=True)
    with raises_code("invalid", "one size"):
        HyperFormerConfig(adapter, ("a",))


def test_rows_of_one_batch(model):
    rows = model(INPUTS, ["a", "b"]).numpy()
    for row, name in zip(rows, ("a", "b"), strict=True):
        expected = model(INPUTS, name).numpy()[["a", "b"].index(name)]
        np.testing.assert_allclose(row, expected, atol=1e-5)


def test_a_fusion(model):
    fused = model.add_fusion("fused", ["a", "b"], ["x", "y"])
    shapes = {n: v.shape for n, v in fused.named_variables().items() if n.startswith("members/")}
    assert shapes["members/layer_0/attention/down_kernel"] == (2, 32, 2)
    assert np.isfinite(model(INPUTS, "fused")).all()
    with raises_code("mismatch", "layer_sizes"):
        model.add_fusion("other", ["a", "plain"], ["x", "y"])
