"""Damaged and absurd files of a base: one message that names the file and what was received."""

import json
import pathlib
import resource
import shutil
import struct

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from adapter_bert_tf.base import load_base, open_base
from adapter_bert_tf.base.config import read_config
from adapter_bert_tf.base.readers import read_weights
from adapter_bert_tf.base.vocabulary import read_vocabulary
from tests import support
from tests.refusals import raises_code

TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float64": np.float64}

# For each case a change of the configuration, and a part of the message.
VALUES = {
    "text for a size": ({"vocab_size": "47"}, "invalid: vocab_size"),
    "true for a size": ({"num_hidden_layers": True}, "invalid: num_hidden_layers"),
    "a fraction of a size": ({"hidden_size": 16.0}, "invalid: hidden_size"),
    "nothing for a size": ({"intermediate_size": None}, "invalid: intermediate_size"),
    "a negative size": ({"type_vocab_size": -1}, "invalid: type_vocab_size"),
    "an absurd vocabulary": ({"vocab_size": 10**9}, "invalid: vocab_size"),
    "absurdly deep": ({"num_hidden_layers": 10**9}, "invalid: num_hidden_layers"),
    "absurd heads": ({"num_attention_heads": 0}, "invalid: num_attention_heads"),
    "absurd positions": ({"max_position_embeddings": 10**7}, "invalid: max_position_embeddings"),
    "absurd in all": (
        {"hidden_size": 16384, "intermediate_size": 65536, "num_hidden_layers": 256},
        "unsupported: config.json",
    ),
    "a dropout of no number": ({"hidden_dropout_prob": float("nan")}, "invalid: Received: nan"),
    "a negative dropout": ({"hidden_dropout_prob": -0.1}, "invalid: hidden_dropout_prob"),
    "a dropout of all": (
        {"attention_probs_dropout_prob": 1},
        "invalid: from 0 to below 1. Received: 1",
    ),
    "a dropout of text": ({"attention_probs_dropout_prob": "0.1"}, "invalid: '0.1'"),
    "a dropout of true": ({"hidden_dropout_prob": True}, "invalid: Received: True"),
    "an epsilon of zero": ({"layer_norm_eps": 0}, "invalid: layer_norm_eps"),
    "a negative epsilon": ({"layer_norm_eps": -1e-12}, "invalid: layer_norm_eps"),
    "an epsilon without end": ({"layer_norm_eps": float("inf")}, "invalid: Received: inf"),
    "a deviation below zero": ({"initializer_range": -1}, "invalid: initializer_range"),
    "a list of activations": ({"hidden_act": ["gelu"]}, "damaged: hidden_act"),
    "an object as activation": ({"hidden_act": {"gelu": 1}}, "damaged: hidden_act"),
    "a list of types": ({"model_type": ["bert"]}, "unsupported: model_type"),
    "heads that do not divide": ({"num_attention_heads": 3}, "damaged: divisible"),
}


@pytest.mark.parametrize("case", VALUES)
def test_what_a_configuration_cannot_say(case, tmp_path):
    change, message = VALUES[case]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(support.CONFIG | change))
    with raises_code(message) as raised:
        read_config(str(path))
    assert str(path) in str(raised.value) and len(str(raised.value)) < 1000


CONTENTS = {
    "not UTF-8": (b'{"vocab_size": "\xff"}', "damaged: 'utf-8'"),
    "UTF-16": ("{}".encode("utf-16"), "damaged: 'utf-8'"),
    "deep": (b"[" * 200_000, "damaged: nested too deeply"),
    "a number of 5,000 digits": (
        b'{"vocab_size": ' + b"9" * 5000 + b"}",
        "damaged: of 5,000 digits",
    ),
    "nothing": (b"", "damaged: not valid JSON"),
    "a list": (b"[" + b"1," * 10_000 + b"1]", "damaged: must hold a JSON object"),
    "no sizes": (b'{"a\\u001b[2J": 1}', "damaged: 'vocab_size'"),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_what_is_no_configuration(case, tmp_path):
    content, message = CONTENTS[case]
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with raises_code(message) as raised:
        read_config(str(path))
    assert str(path) in str(raised.value) and len(str(raised.value)) < 1000
    assert "\x1b" not in str(raised.value)


def test_a_folder_is_no_configuration(tmp_path):
    with raises_code("unavailable", "Cannot read"):
        read_config(str(tmp_path))


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    config, vocabulary = tmp_path / "config.json", tmp_path / "vocab.txt"
    config.write_text(json.dumps(support.CONFIG), encoding="utf-8-sig")
    vocabulary.write_text("\n".join(support.VOCABULARY) + "\n", encoding="utf-8-sig")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}', "utf-8-sig")
    assert read_config(str(config)).vocab_size == len(support.VOCABULARY)
    assert read_vocabulary(str(vocabulary)).pieces == tuple(support.VOCABULARY)


VOCABULARIES = {
    "a piece twice": (
        "\n".join([*support.VOCABULARY, "cat"]) + "\n",
        "damaged: lines 8 and 51 are the",
    ),
    "blank lines": ("\n".join(support.VOCABULARY) + "\n\n\n", "damaged: are the same word piece"),
    "not UTF-8": (b"[PAD]\n\xff\n", "damaged: not a UTF-8 text file"),
}


@pytest.mark.parametrize("case", VOCABULARIES)
def test_what_is_no_vocabulary(case, tmp_path):
    content, message = VOCABULARIES[case]
    path = tmp_path / "vocab.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with raises_code(message) as raised:
        read_vocabulary(str(path))
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("content", [b"[" * 200_000, b"\xff", b"[1]", b"{", b"9" * 5000])
def test_what_is_no_tokenizer_configuration(content, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(support.VOCABULARY) + "\n")
    (tmp_path / "tokenizer_config.json").write_bytes(content)
    with raises_code("damaged", "tokenizer_config.json"):
        read_vocabulary(str(tmp_path / "vocab.txt"))


@pytest.mark.parametrize("kind", TYPES)
def test_weights_of_every_type_are_read(kind, tmp_path):
    weights = support.random_weights()
    stored = {name: value.astype(TYPES[kind]) for name, value in weights.items()}
    support.write_hugging_face(tmp_path, stored)
    weights = read_weights(str(tmp_path / "model.safetensors"))
    for name, value in stored.items():
        assert weights[name].dtype == np.float32
        np.testing.assert_array_equal(weights[name], value.astype(np.float32))
    load_base(str(tmp_path)).build_encoder()


def test_weights_of_two_names(tmp_path):
    support.write_hugging_face(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    name = next(name for name in tensors if name.endswith("pooler.dense.bias"))
    other = name.removeprefix("bert.") if name.startswith("bert.") else f"bert.{name}"
    safetensors.numpy.save_file(tensors | {other: tensors[name] + 1}, path)
    with raises_code("damaged", "bert/pooler/dense/bias"):
        load_base(str(tmp_path))


def test_weights_that_are_no_floats(tmp_path):
    weights = support.random_weights()
    weights["bert/pooler/dense/bias"] = np.zeros(16, "i8")
    support.write_hugging_face(tmp_path, weights)
    with raises_code("damaged", "I64"):
        load_base(str(tmp_path)).build_encoder()


def _grow(path, size):
    with path.open("ab") as file:
        file.truncate(size)


def _header(path, header):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    path.write_bytes(struct.pack("<Q", len(text)) + text)


HUGE = {"embeddings.x": {"dtype": "F32", "shape": [10**9, 10**9], "data_offsets": [0, 4]}}
SAFETENSORS = {
    "empty": lambda path: path.write_bytes(b""),
    "cut in the header": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "cut in the weights": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "too long": lambda path: _grow(path, path.stat().st_size + 1),
    "a hole of 20 GB": lambda path: _grow(path, 20 << 30),
    "a header without end": lambda path: path.write_bytes(b"\xff" * 16),
    "an absurd shape": lambda path: _header(path, HUGE),
    "a deep header": lambda path: _header(path, b"[" * 100_000),
    "a header that is no UTF-8": lambda path: _header(path, b'{"\xff": 1}'),
}


@pytest.mark.parametrize("case", SAFETENSORS)
def test_damaged_safetensors(case, tmp_path):
    support.write_hugging_face(tmp_path)
    SAFETENSORS[case](tmp_path / "model.safetensors")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with raises_code("damaged", "model.safetensors") as raised:
        load_base(str(tmp_path))
    assert str(tmp_path / "model.safetensors") in str(raised.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 18  # Kilobytes.


def _damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


DATA, INDEX = "bert_model.ckpt.data-00000-of-00001", "bert_model.ckpt.index"
CHECKPOINTS = {
    "no data": (DATA, pathlib.Path.unlink, "damaged: is incomplete"),
    "cut data": (
        DATA,
        lambda path: path.write_bytes(path.read_bytes()[:-50]),
        "damaged: is incomplete",
    ),
    "changed data": (DATA, _damage, "damaged: is damaged: bert/"),
    "no index": (INDEX, pathlib.Path.unlink, "not_found: No weights"),
    "cut index": (
        INDEX,
        lambda path: path.write_bytes(path.read_bytes()[:-50]),
        "damaged: Cannot read",
    ),
    "an empty index": (INDEX, lambda path: path.write_bytes(b""), "damaged: Cannot read"),
    "another index": (INDEX, lambda path: path.write_bytes(b"x" * 5000), "damaged: Cannot read"),
}


@pytest.mark.parametrize("case", CHECKPOINTS)
def test_damaged_checkpoints(case, tmp_path, tiny_base_folder):
    name, change, message = CHECKPOINTS[case]
    shutil.copytree(tiny_base_folder, tmp_path, dirs_exist_ok=True)
    change(tmp_path / name)
    with raises_code(message) as raised:
        load_base(str(tmp_path)).build_encoder()
    assert str(tmp_path) in str(raised.value)


@pytest.mark.parametrize("write", [support.write_google, support.write_hugging_face])
def test_sizes_are_compared_before_anything_is_built(write, tmp_path):
    write(tmp_path)
    (config,) = tmp_path.glob("*config.json")
    config.write_text(json.dumps(support.CONFIG | {"num_hidden_layers": 256, "type_vocab_size": 9}))
    with raises_code("mismatch", "token_type_embeddings"):
        load_base(str(tmp_path))


def test_absurd_sizes_without_a_checkpoint(tmp_path, tiny_base_folder):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(support.CONFIG | {"vocab_size": 10**9}))
    with raises_code("invalid", "vocab_size"):
        open_base(config_path=str(path), vocabulary_path=f"{tiny_base_folder}/vocab.txt")


@pytest.mark.parametrize("scheme", ["s3", "http", "hdfs"])
def test_schemes_that_are_not_supported(scheme):
    with raises_code("unsupported", f"{scheme}://"):
        load_base(f"{scheme}://bucket/base")
