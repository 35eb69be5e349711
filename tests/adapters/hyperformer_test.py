"""HyperFormer and HyperFormer++: as the original code computes them, by count, at their start."""

import dataclasses
import pathlib

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.encoder import AdapterBertEncoder
from adapter_bert_tf.adapters.methods.hyperformer import (
    HyperFormerConfig,
    embedding_name,
    generate_adapters,
    project_embeddings,
)
from adapter_bert_tf.adapters.modules import Sublayer, module_from_values
from adapter_bert_tf.adapters.registry import ModuleConfig
from adapter_bert_tf.adapters.task_encoder import new_encoder
from adapter_bert_tf.adapters.variable_specs import norm_names
from tests import support
from tests.refusals import raises_code

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "hyperformer"
EXPECTED = np.load(GOLDEN / "expected.npz")
TASKS, HIDDEN, BOTTLENECK = ("a", "b", "c"), 32, 8
ONE = AdapterConfig(BOTTLENECK, normalize_output=True)
WIDTHS = {"task_embedding_size": 16, "projector_size": 20, "projected_size": 12}
SMALL = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_layers": 2,
    "num_attention_heads": 2,
    "inner_dim": 32,
    "max_sequence_length": 24,
}
# What the original calls a generator, and what it generates here.
GENERATORS = {
    "{before}down_sampler{after}.weight_generator.0": "down_kernel",
    "{before}down_sampler{after}.bias_generator.0": "down_bias",
    "{before}up_sampler{after}.weight_generator.0": "up_kernel",
    "{before}up_sampler{after}.bias_generator.0": "up_bias",
    "post_layernorm_hypernet.weight_generator": "output_layer_norm_gamma",
    "post_layernorm_hypernet.bias_generator": "output_layer_norm_beta",
}
PROJECTOR = {"0": "down", "2": "up"}


def golden(*names):
    return EXPECTED["|".join(names)]


def linear(name):
    """A linear layer of the original, as kernel and bias."""
    return {"kernel": golden(f"{name}.weight").T, "bias": golden(f"{name}.bias")}


def flattened_as_here(values, shape):
    """What generates a kernel `[out, in]`, row by row, as what generates `[in, out]`."""
    own = (*values["kernel"].shape[:1], *shape[::-1])
    return {
        "kernel": values["kernel"].reshape(own).swapaxes(1, 2).reshape(len(values["kernel"]), -1),
        "bias": values["bias"].reshape(shape[::-1]).T.reshape(-1),
    }


def generators(model, module, **around):
    named = {}
    for theirs, ours in GENERATORS.items():
        values = linear(f"{model}.{module}|{theirs.format(**around)}")
        if ours.endswith("_kernel"):
            shape = (HIDDEN, BOTTLENECK) if ours.startswith("down") else (BOTTLENECK, HIDDEN)
            values = flattened_as_here(values, shape)
        named |= {f"{ours}/{name}": value for name, value in values.items()}
    return named


def task_embeddings(model):
    return {
        f"tasks/{task}/hypernetwork/embedding": golden(
            f"{model}.task_embeddings", f"task_to_embeddings.{task}"
        )
        for task in TASKS
    }


def projector(model, module):
    return {
        f"hypernetwork/projector/{ours}_{name}": value
        for theirs, ours in PROJECTOR.items()
        for name, value in linear(f"{model}.{module}.task_embeding_generator.{theirs}").items()
    }


def original():
    """Values of the golden HyperFormer, of one adapter."""
    named = task_embeddings("hyperformer") | projector(
        "hyperformer", "task_embeddings|task_hyper_net"
    )
    prefix = "hypernetwork/layer_0/attention"
    made = generators("hyperformer", "adapter", before="meta_", after="")
    made = {f"{prefix}/{name}": value for name, value in made.items()}
    return named | made


def original_plus_plus():
    """Values of the golden HyperFormer++, of three layers."""
    model = "hyperformer++"
    named = task_embeddings(model) | projector(model, "hypernet|task_hypernet")
    for i, row in enumerate(golden(f"{model}.hypernet", "layer_id_embeddings.weight")):
        named[f"hypernetwork/layer_{i}/embedding"] = row
    positions = golden(f"{model}.hypernet", "adapters_block_type.weight")
    for name, row in zip(("feed_forward", "attention"), positions, strict=True):
        named[f"hypernetwork/{name}/embedding"] = row
    for theirs, ours in (("weight", "gamma"), ("bias", "beta")):
        named[f"hypernetwork/projector/layer_norm_{ours}"] = golden(
            f"{model}.hypernet", f"LayerNorm.{theirs}"
        )
    made = generators(model, "hypernet", before="", after="_hyper_net")
    return named | {f"hypernetwork/generators/{name}": value for name, value in made.items()}


def adapted(config, values, task, layer, sublayer):
    """A(x) of the golden inputs, as their task's rows."""
    x = tf.constant(EXPECTED["inputs"])
    ids = tf.fill([x.shape[0]], TASKS.index(task))
    module = config.module(values).for_call({"task_ids": ids})
    return module.adapt_sublayer(
        Sublayer(layer, sublayer, x, tf.zeros_like(x), None, x, None)
    ).numpy()


@pytest.mark.parametrize("task", TASKS)
def test_hyperformer_is_the_original(task):
    adapter = dataclasses.replace(ONE, sublayers=("attention",), layers=(0,))
    config, values = HyperFormerConfig(adapter, TASKS, **WIDTHS), original()
    sizes = {"hidden_size": HIDDEN, "num_layers": 1}
    assert {n: s.shape for n, s in config.specs(sizes).items()} == {
        n: v.shape for n, v in values.items()
    }
    vector = project_embeddings(values, tf.constant([values[embedding_name(task)]]))[0]
    np.testing.assert_allclose(vector, golden("hyperformer.task_vector", task), atol=1e-6)
    actual = adapted(config, values, task, 0, "attention")
    np.testing.assert_allclose(actual, golden("hyperformer.output", task), atol=1e-5)


@pytest.mark.parametrize("task", TASKS)
def test_hyperformer_plus_plus_is_the_original(task):
    config, values = HyperFormerConfig(ONE, TASKS, shared=True, **WIDTHS), original_plus_plus()
    sizes = {"hidden_size": HIDDEN, "num_layers": 3}
    assert {n: s.shape for n, s in config.specs(sizes).items()} == {
        n: v.shape for n, v in values.items()
    }
    for layer in range(3):
        for sublayer in ("attention", "feed_forward"):
            actual = adapted(config, values, task, layer, sublayer)
            expected = golden("hyperformer++.output", task, str(layer), sublayer)
            np.testing.assert_allclose(actual, expected, atol=1e-5)


@pytest.mark.parametrize("sublayer", ["attention", "feed_forward"])
def test_what_hyperformer_plus_plus_generates(sublayer):
    made = generate_adapters(ONE, TASKS, original_plus_plus())
    names = {
        "down_kernel": "down_kernel",
        "down_bias": "down_bias",
        "up_kernel": "up_kernel",
        "up_bias": "up_bias",
        "norm_scale": "output_layer_norm_gamma",
        "norm_offset": "output_layer_norm_beta",
    }
    for theirs, ours in names.items():
        actual = made[f"adapters/layer_1/{sublayer}/{ours}"][TASKS.index("b")].numpy()
        expected = golden("hyperformer++.generated", "b", "1", sublayer, theirs)
        np.testing.assert_allclose(actual, expected.T, atol=1e-5)


BERT_BASE = {"hidden_size": 768, "num_layers": 12}
EIGHT = tuple(f"t{i}" for i in range(8))
OF_BASE = AdapterConfig(24, normalize_output=True)
COUNTS = {
    # With the base's 25 LayerNorms, 38,400, and without heads.
    "BERT-base": (HyperFormerConfig(OF_BASE, EIGHT), BERT_BASE, 61_195_008 - 38_400),
    "BERT-base, ++": (
        HyperFormerConfig(OF_BASE, EIGHT, shared=True),
        BERT_BASE,
        2_620_376 - 38_400,
    ),
    "one number for a task": (
        HyperFormerConfig(AdapterConfig(2, normalize_output=True), ("a",), task_embedding_size=1),
        {"hidden_size": 16, "num_layers": 1},
        # Embedding, projector (1 -> 128 -> 64), and 2 places of 65 (2hd + h + d + 2h).
        1 + 2 * 128 + 129 * 64 + 2 * 65 * (2 * 16 * 2 + 16 + 2 + 32),
    ),
    "without a projector": (
        HyperFormerConfig(AdapterConfig(2, normalize_output=True), ("a", "b"), projector=False),
        {"hidden_size": 16, "num_layers": 1},
        2 * 64 + 2 * 65 * (2 * 16 * 2 + 16 + 2 + 32),
    ),
    "without conditional LayerNorms": (
        HyperFormerConfig(
            AdapterConfig(2, normalize_output=True), ("a",), shared=True, conditional_norm=False
        ),
        {"hidden_size": 16, "num_layers": 1},
        4 * 64 + (192 * 128 + 128) + (128 * 64 + 64) + 128 + 65 * (64 + 18) + 2 * 32,
    ),
}


@pytest.mark.parametrize("case", COUNTS)
def test_counts(case):
    config, sizes, expected = COUNTS[case]
    assert sum(np.prod(spec.shape) for spec in config.specs(sizes).values()) == expected


KINDS = {
    "hyperformer": {},
    "hyperformer++": {"shared": True},
    "no conditional LayerNorm": {"conditional_norm": False},
    "++, no conditional LayerNorm": {"shared": True, "conditional_norm": False},
    "no projector": {"projector": False},
    "++, no projector": {"shared": True, "projector": False},
}


def small(kind, **more):
    adapter = AdapterConfig(2, normalize_output=True)
    return HyperFormerConfig(adapter, ("a", "b"), task_embedding_size=4, **KINDS[kind], **more)


def batch_of(*ids):
    return support.batch(rows=len(ids)) | {"task_ids": tf.constant(ids)}


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_start_is_the_base(kind):
    tf_keras.utils.set_random_seed(1)
    encoder = new_encoder(SMALL, small(kind))
    inputs = batch_of(0, 1, 1)
    actual, base = encoder(inputs), encoder.encoder(inputs)
    for name in actual:
        np.testing.assert_array_equal(actual[name], base[name])


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_every_variable(kind):
    """Once gamma is not zero any more, as it is after the first step."""
    tf_keras.utils.set_random_seed(1)
    encoder = new_encoder(SMALL, small(kind))
    for name, variable in encoder.module_layer.named_variables().items():
        if "output_layer_norm" in name:
            variable.assign(tf.random.stateless_normal(variable.shape, (1, 2)))
    inputs = batch_of(0, 1, 1)
    variables = encoder.module_layer.named_variables()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(encoder(inputs)["pooled_output"][:, :3] ** 2)
    gradients = tape.gradient(loss, list(variables.values()))
    still = [n for n, g in zip(variables, gradients, strict=True) if g is None or not np.any(g)]
    assert still == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_gets_what_is_generated_for_its_task(kind):
    tf_keras.utils.set_random_seed(1)
    config, encoder = small(kind), AdapterBertEncoder(**SMALL)
    rng = np.random.default_rng(0)
    values = {
        name: tf.constant(rng.normal(0, 0.3, spec.shape), tf.float32)
        for name, spec in reversed(config.specs(SMALL).items())  # As a file may have them.
    }
    inputs = batch_of(1, 0, 1)
    mixed = encoder(inputs, module=config.module(values))["pooled_output"].numpy()
    made = generate_adapters(config.adapter, config.tasks, values)
    assert set(made) == set(config.adapter.specs(SMALL))
    alone = []
    for i in range(2):
        own = {name: tensor[i] for name, tensor in made.items()}
        module = module_from_values(config.adapter, own)
        alone.append(encoder(inputs, module=module)["pooled_output"].numpy())
    np.testing.assert_allclose(mixed, [alone[1][0], alone[0][1], alone[1][2]], atol=1e-5)
    assert np.abs(alone[0] - alone[1]).max() > 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_a_config_travels(kind):
    config = small(kind, start="published")
    assert ModuleConfig.from_json(config.to_json()) == config


def test_layers_without_adapters_have_no_generators():
    adapter = AdapterConfig(2, normalize_output=True)
    config = HyperFormerConfig(adapter, ("a",), shared=True).without_lowest(1, 2)
    names = config.specs(SMALL)
    assert "hypernetwork/layer_1/embedding" in names
    assert "hypernetwork/layer_0/embedding" not in names


REFUSED = {
    "no LayerNorm after": {"adapter": AdapterConfig(2)},
    "no adapter": {"adapter": None},
    "no tasks": {"tasks": ()},
    "a task twice": {"tasks": ("a", "a")},
    "a path": {"tasks": ("../a",)},
    "a size of 0": {"task_embedding_size": 0},
    "a size that is no number": {"projector_size": "64"},
    "true is no size": {"projected_size": True},
    "an absurd size": {"projected_size": 10**9},
    "a switch that is none": {"shared": 1},
    "a start that is none": {"start": "zero"},
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    with raises_code("invalid", "Received"):
        dataclasses.replace(small("hyperformer"), **REFUSED[case])


def test_no_name_of_the_base_is_taken():
    names = small("hyperformer++").specs(SMALL)
    assert not set(names) & {f"{name}/gamma" for name in norm_names(2)}
