"""The head of masked words in the files of a base, in three formats."""

import json
import pathlib

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from official.nlp.modeling import layers, models, networks

import adapter_bert_tf as abt
from adapter_bert_tf.base.pretraining_head import NAMES
from tests import support

HIDDEN, WORDS = support.CONFIG["hidden_size"], support.CONFIG["vocab_size"]


@pytest.fixture(scope="module")
def head():
    rng = np.random.default_rng(1)
    sizes = {"head/dense/kernel": (HIDDEN, HIDDEN), "head/bias": (WORDS,)}
    return {name: rng.normal(size=sizes.get(name, HIDDEN)).astype("f4") for name in sorted(NAMES)}


def _end_of(name):
    """The end of a name at Google and Hugging Face."""
    return name.removeprefix("head/").replace("layer_norm", "LayerNorm")


def google(folder, head):
    names = {f"cls/predictions/transform/{_end_of(name)}": value for name, value in head.items()}
    if "head/bias" in head:
        names["cls/predictions/output_bias"] = names.pop("cls/predictions/transform/bias")
    support.write_google(folder, extra=names)


def hugging_face(folder, head, prefix="bert.", **more):
    support.write_hugging_face(folder, prefix=prefix)
    path = f"{folder}/model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    for name, value in head.items():
        new = f"cls.predictions.transform.{_end_of(name)}".replace("/", ".")
        for own, theirs in ((".kernel", ".weight"), (".gamma", ".weight"), (".beta", ".bias")):
            new = new.replace(own, theirs)
        new = "cls.predictions.bias" if name == "head/bias" else new
        tensors[new] = np.ascontiguousarray(value.T) if name.endswith("kernel") else value
    safetensors.numpy.save_file(tensors | more, path)


def model_garden(folder, head):
    """As Model Garden's pretraining saves it."""
    weights = support.write_model_garden(folder)
    sizes = {"hidden_size": HIDDEN, "vocab_size": WORDS, "num_layers": 2, "inner_dim": 32}
    encoder = networks.BertEncoderV2(
        num_attention_heads=2, max_sequence_length=24, type_vocab_size=2, **sizes
    )
    model = models.BertPretrainerV2(encoder)
    model(model.inputs)
    tf.train.Checkpoint(encoder=encoder).read(f"{folder}/bert_model.ckpt").expect_partial()
    masked = model.masked_lm
    assert isinstance(masked, layers.MaskedLM)
    for variable, name in (
        (masked.dense.kernel, "head/dense/kernel"),
        (masked.dense.bias, "head/dense/bias"),
        (masked.layer_norm.gamma, "head/layer_norm/gamma"),
        (masked.layer_norm.beta, "head/layer_norm/beta"),
        (masked.bias, "head/bias"),
    ):
        variable.assign(head[name])
    for path in pathlib.Path(folder).glob("bert_model.ckpt*"):
        path.unlink()
    tf.train.Checkpoint(model=model, **model.checkpoint_items).write(f"{folder}/bert_model.ckpt")
    return weights


@pytest.mark.parametrize("write", [google, hugging_face, model_garden])
def test_the_head_is_read(tmp_path, head, write):
    write(str(tmp_path), head)
    found = abt.load_base(str(tmp_path)).pretraining_head
    assert found.keys() == NAMES
    for name, value in head.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize("write", [google, hugging_face])
def test_a_part_of_a_head_is_not_used(tmp_path, head, write):
    for number, left_out in enumerate(sorted(NAMES)):
        folder = str(tmp_path / str(number))
        write(folder, {name: value for name, value in head.items() if name != left_out})
        assert abt.load_base(folder).pretraining_head == {}


def test_a_base_without_one_has_none(tmp_path):
    support.write_hugging_face(str(tmp_path))
    assert abt.load_base(str(tmp_path)).pretraining_head == {}


@pytest.mark.parametrize("tied", [True, False])
def test_the_decoder_must_be_the_embeddings(tmp_path, head, tied, caplog):
    words = support.random_weights()["bert/embeddings/word_embeddings"]
    decoder = words if tied else words + 1
    hugging_face(str(tmp_path), head, **{"cls.predictions.decoder.weight": decoder})
    found = abt.load_base(str(tmp_path)).pretraining_head
    assert bool(found) is tied


def test_other_sizes_are_not_used(tmp_path, head):
    hugging_face(str(tmp_path), head | {"head/bias": np.zeros(3, "f4")})
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["vocab_size"] == WORDS
    assert abt.load_base(str(tmp_path)).pretraining_head == {}
