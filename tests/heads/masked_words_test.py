"""The head of masked words: the figures of the library `adapters`, and given weights."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import adapter_bert_tf as abt
from adapter_bert_tf.adapters.languages.invertible import InvertibleConfig
from adapter_bert_tf.adapters.methods.union import UnionConfig
from adapter_bert_tf.adapters.presets import PFEIFFER
from adapter_bert_tf.heads.masked_words.model import MaskedWordModel
from adapter_bert_tf.task_types import TASK_TYPES
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import support

GOLDEN = json.loads(
    (pathlib.Path(__file__).parents[1] / "golden" / "madx" / "masked_words.json").read_text()
)
HEAD = {"0": "transform.dense", "2": "transform.LayerNorm"}
TASK = dataclasses.replace(PFEIFFER, bottleneck_size=4)
LANG = UnionConfig((InvertibleConfig(), dataclasses.replace(PFEIFFER, bottleneck_size=8)))
SETUPS = {"none": None, "task": TASK, "lang": LANG}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The base of the figures with its head, as Hugging Face's library saves them."""
    folder = tmp_path_factory.mktemp("base")
    config = GOLDEN["config"] | {"model_type": "bert"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "vocab.txt").write_text("\n".join(support.VOCABULARY[:32]) + "\n")
    tensors = {}
    for name, value in GOLDEN["weights"].items():
        if name.startswith("heads.mlm."):
            number, _, rest = name.removeprefix("heads.mlm.").partition(".")
            layer = f"{HEAD[number]}." if number in HEAD else ""
            name = f"cls.predictions.{layer}{rest}"
        elif "adapters." in name:
            continue
        tensors[name] = np.array(value, np.float32)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    return abt.load_base(str(folder))


def golden_values(setup):
    """Weights of the adapters of a setup, by common name."""
    values = {}
    for name, value in GOLDEN["weights"].items():
        value = np.array(value, np.float32)
        value = value.T if value.ndim == 2 else value
        parts = name.split(".")
        kind = "kernel" if parts[-1] == "weight" else "bias"
        if f"invertible_adapters.{setup}." in name:
            which, layer = parts[-3], {"0": "down", "2": "up"}[parts[-2]]
            values[f"adapters/embeddings/{which}/{layer}_{kind}"] = value
        elif f"output.adapters.{setup}." in name:
            layer = "down" if "adapter_down" in name else "up"
            values[f"adapters/layer_{parts[3]}/feed_forward/{layer}_{kind}"] = value
    return values


def model_of(base, setup):
    model = MaskedWordModel(base.build_encoder(SETUPS[setup]))
    variables = model.named_variables()
    for name, value in (base.pretraining_head | golden_values(setup)).items():
        variables[name].assign(value)
    return model


def inputs_of(**more):
    names = {
        "input_word_ids": "input_ids",
        "input_mask": "attention_mask",
        "input_type_ids": "token_type_ids",
    }
    given = {own: tf.constant(GOLDEN["inputs"][theirs]) for own, theirs in names.items()}
    return given | {name: tf.constant(value) for name, value in more.items()}


# Where labels are: positions, pieces, and whether the place is used.
POSITIONS = [[3, 4, 0], [2, 0, 0]]
TARGETS = [[11, 21, 0], [7, 0, 0]]
USED = np.array([[1, 1, 0], [1, 0, 0]], np.float32)


@pytest.mark.parametrize("setup", SETUPS)
def test_losses_are_those_of_the_other_library(base, setup):
    rows = np.array(GOLDEN["mlm_labels"])
    assert [[rows[i][p] for p in POSITIONS[i]] for i in (0, 1)] == [[11, 21, -100], [7, -100, -100]]
    model, expected = model_of(base, setup), GOLDEN["outputs"][setup]["loss_mlm"]
    logits = model(inputs_of(masked_positions=POSITIONS))
    assert logits.shape == (2, 3, 32)
    weights = USED * 2 / USED.sum()  # As `train_batches` makes them: their sum is that of rows.
    labels = tf.constant(np.stack([np.array(TARGETS, np.float32), weights], -1))
    loss = tf.reduce_mean(model.training_loss()(labels, logits))
    np.testing.assert_allclose(loss, expected, atol=1e-5)
    sums = model(
        inputs_of(masked_positions=POSITIONS, masked_ids=TARGETS, masked_weights=USED)
    ).numpy()
    total = sums.sum(0)
    np.testing.assert_allclose(total[0] / total[2], expected, atol=1e-5)
    best = np.argmax(logits, -1)
    assert total[1] == ((best == TARGETS) * USED).sum() and total[2] == 3


def test_scores_are_those_of_the_other_library(base):
    logits = model_of(base, "lang")(inputs_of())
    np.testing.assert_allclose(logits, GOLDEN["outputs"]["lang"]["logits_mlm"], atol=1e-4)


@pytest.mark.parametrize("setup", SETUPS)
def test_given_weights_compute_the_same(base, setup):
    kind, model = TASK_TYPES["masked_words"], model_of(base, setup)
    values = {n: v for n, v in model.named_variables().items() if not n.startswith("bert/")}
    encoder = base.build_encoder()
    expected = model(inputs_of())
    got = kind.logits_of(encoder, inputs_of(), SETUPS[setup], values)
    np.testing.assert_allclose(got, expected, atol=1e-5)
    stacked = {name: tf.stack([value, value]) for name, value in values.items()}
    got = kind.logits_of(encoder, inputs_of(), SETUPS[setup], stacked, "rows")
    np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("tuning", "count"),
    [
        # Two layers of 16 x 8 + 8 + 8 x 16 + 16; coupling 2 x (8 x 4 + 4 + 4 x 8 + 8);
        # head 16 x 16 + 16 + 2 x 16 + 32.
        (Tuning("adapters", train_layer_norm=False), 2 * 280 + 2 * 76 + 336),
        (Tuning("head"), 336),
    ],
)
def test_what_is_trained(base, tuning, count):
    model = model_of(base, "lang")
    trained = select_trained(model, tuning)
    assert sum(int(np.prod(v.shape)) for v in trained.values()) == count
    assert {n for n in trained if n.startswith("head/")} == set(
        TASK_TYPES["masked_words"].specs(model.encoder.config, ())
    )
    assert not any(name.startswith("bert/") for name in trained)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(inputs_of(masked_positions=POSITIONS)) ** 2)
    gradients = tape.gradient(loss, list(trained.values()))
    assert all(gradient is not None for gradient in gradients)


def test_full_tuning_trains_the_decoder_too(base):
    model = model_of(base, "none")
    trained = select_trained(model, Tuning("full"))
    words = trained["bert/embeddings/word_embeddings"]
    assert not any(name.startswith("bert/pooler") for name in trained)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(inputs_of(masked_positions=POSITIONS)))
    gradient = tf.convert_to_tensor(tape.gradient(loss, words))
    # Pieces that are not in the input get a gradient as parts of the decoder.
    assert np.abs(gradient.numpy()).min(-1).all()


def test_it_compiles_with_xla(base):
    model = model_of(base, "lang")
    inputs = inputs_of(masked_positions=POSITIONS)
    run = tf.function(lambda given: model(given, training=False), jit_compile=True)
    np.testing.assert_allclose(run(inputs), model(inputs), atol=1e-5)
