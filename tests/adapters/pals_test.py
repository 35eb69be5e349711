"""PALs: a whole encoder as the authors' code computes it, by count, what is refused."""

import dataclasses
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.methods.mixed import MixedModule
from adapter_bert_tf.adapters.methods.projected_attention import PalsConfig
from adapter_bert_tf.adapters.modules import AdapterModule, WrappedModule
from adapter_bert_tf.adapters.registry import ModuleConfig
from tests.refusals import raises_code

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "pals"
EXPECTED = np.load(GOLDEN / "expected.npz")
TASKS = ("0", "1", "2")
SIZES = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_layers": 3,
    "num_attention_heads": 4,
    "inner_dim": 64,
    "max_sequence_length": 8,
    "activation": "gelu_erf",
}
DENSE = {
    "attention/self/query": "attention|query",
    "attention/self/key": "attention|key",
    "attention/self/value": "attention|value",
    "attention/output/dense": "attention|output",
    "intermediate/dense": "feed_forward|up",
    "output/dense": "feed_forward|down",
}
NORMS = {"attention/output": "attention", "output": "feed_forward"}


def linear(ours, theirs):
    return {
        f"{ours}/kernel": EXPECTED[f"{theirs}|weight"].T,
        f"{ours}/bias": EXPECTED[f"{theirs}|bias"],
    }


def norm(ours, theirs):
    names = {"gamma": "scale", "beta": "offset"}
    return {
        f"{ours}/LayerNorm/{own}": EXPECTED[f"{theirs}|layer_norm|{other}"]
        for own, other in names.items()
    }


def base_values():
    named = norm("bert/embeddings", "embeddings")
    for name in ("word", "position", "token_type"):
        named[f"bert/embeddings/{name}_embeddings"] = EXPECTED[f"embeddings|{name}"]
    for i in range(3):
        prefix = f"bert/encoder/layer_{i}"
        for ours, theirs in DENSE.items():
            named |= linear(f"{prefix}/{ours}", f"layer|{i}|{theirs}")
        for ours, theirs in NORMS.items():
            named |= norm(f"{prefix}/{ours}", f"layer|{i}|{theirs}")
    return named | linear("bert/pooler/dense", "pooler")


def pal_values():
    named = {}
    for task in TASKS:
        prefix = f"tasks/{task}/pals"
        named |= linear(f"{prefix}/encoder", f"pal|{task}|encoder")
        named |= linear(f"{prefix}/decoder", f"pal|{task}|decoder")
        for i in range(3):
            for name in ("query", "key", "value"):
                at = f"layer|{i}|{name}"
                named |= linear(f"{prefix}/layer_{i}/{name}", f"pal|{task}|{at}")
    return {name: tf.constant(value) for name, value in named.items()}


@pytest.fixture(scope="module")
def encoder():
    made = AdapterBertEncoder(**SIZES)
    values = base_values()
    assert set(values) == set(made.named_variables())
    for name, variable in made.named_variables().items():
        variable.assign(values[name].reshape(variable.shape))
    return made


def inputs_of(task):
    names = {"input_word_ids": "ids", "input_type_ids": "types", "input_mask": "mask"}
    named = {ours: tf.constant(EXPECTED[f"input|{n}"], tf.int32) for ours, n in names.items()}
    return named | {"task_ids": tf.fill([2], task)}


class Watching(WrappedModule):
    """Another module; keeps the input of each block after the first."""

    def __init__(self, inner, seen):
        super().__init__(inner)
        self.seen = seen

    def adapt_sublayer(self, sublayer):
        self.seen[sublayer.layer] = sublayer.block_input.numpy()
        return self.inner.adapt_sublayer(sublayer)


def run(encoder, module, task=0, **more):
    seen = {}
    actual = encoder(inputs_of(task), module=Watching(module, seen), **more)
    layers = [seen[1], seen[2], actual["sequence_output"].numpy()]
    return layers, actual["pooled_output"].numpy()


@pytest.mark.parametrize("heads", [6, 3])
@pytest.mark.parametrize("task", range(3))
def test_an_encoder_with_pals_is_the_original(task, heads, encoder):
    module = PalsConfig(TASKS, 12, heads).module(pal_values())
    layers, pooled = run(encoder, module, task)
    prefix = "output" if heads == 6 else "output_3_heads"
    for i, actual in enumerate(layers):
        np.testing.assert_allclose(actual, EXPECTED[f"{prefix}|{task}|layer|{i}"], atol=1e-5)
    np.testing.assert_allclose(pooled, EXPECTED[f"{prefix}|{task}|pooled"], atol=1e-5)


def test_the_same_base_without_them(encoder):
    layers, pooled = run(encoder, AdapterModule())
    for i, actual in enumerate(layers):
        np.testing.assert_allclose(actual, EXPECTED[f"output|no_pal|layer|{i}"], atol=1e-5)
    np.testing.assert_allclose(pooled, EXPECTED["output|no_pal|pooled"], atol=1e-5)


def test_cls_alone_is_exact(encoder):
    """Where the last block computes one position, its PAL still attends to all."""
    module = PalsConfig(TASKS, 12, 6).module(pal_values())
    _, whole = run(encoder, module, 1)
    _, alone = run(encoder, module, 1, output_range=1)
    np.testing.assert_allclose(alone, whole, atol=1e-6)


@pytest.mark.parametrize("copies", [1, 2])
def test_positions_in_any_order_are_exact(copies, encoder):
    """Also where several modules share a batch."""
    module = PalsConfig(TASKS, 12, 6).module(pal_values())
    inputs = {name: tf.concat([value] * copies, 0) for name, value in inputs_of(1).items()}
    modules = MixedModule([module] * copies)
    places = np.array([[3, 0], [1, 1]] * copies)
    whole = encoder(inputs, module=modules)["sequence_output"].numpy()
    found = encoder(inputs, tf.constant(places, tf.int32), modules)["sequence_output"]
    expected = np.take_along_axis(whole, places[..., np.newaxis], 1)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_each_row_has_the_pals_of_its_task(encoder):
    module = PalsConfig(TASKS, 12, 6).module(pal_values())
    mixed = encoder(inputs_of(0) | {"task_ids": tf.constant([2, 1])}, module=module)[
        "pooled_output"
    ]
    expected = [EXPECTED["output|2|pooled"][0], EXPECTED["output|1|pooled"][1]]
    np.testing.assert_allclose(mixed, expected, atol=1e-5)


def test_counts():
    """1,819,836 of each task on BERT-base, as in the authors' code; the paper leaves biases out."""
    specs = PalsConfig(tuple(f"t{i}" for i in range(8))).specs(
        {"hidden_size": 768, "num_layers": 12}
    )
    assert sum(np.prod(spec.shape) for spec in specs.values()) == 8 * 1_819_836


def test_a_config_travels():
    config = PalsConfig(("a", "b"), 24, 4, "gelu")
    assert ModuleConfig.from_json(config.to_json()) == config


REFUSED = {
    "no tasks": {"tasks": ()},
    "a size that heads do not divide": {"size": 200},
    "a size of 0": {"size": 0},
    "true is no number": {"num_heads": True},
    "an activation that is none": {"activation": "mish"},
    "an absurd size": {"size": 12 * 10**8},
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    with raises_code("invalid", "Received"):
        dataclasses.replace(PalsConfig(("a",)), **REFUSED[case])
