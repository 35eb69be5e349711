"""The files of a base: configuration, vocabulary, and weights in two of the formats."""

import functools
import json
import pathlib
import tempfile

import tensorflow as tf
from hypothesis import strategies as st

from adapter_bert_tf.base import load_base
from adapter_bert_tf.base.readers import read_shapes
from adapter_bert_tf.data.tokenization import TextEncoder
from tests import support
from tests.base.tokenizer_files_test import tokenizer_json
from tests.fuzz import values
from tests.fuzz.adapters import with_other_header
from tests.fuzz.cases import Case

SMALL = support.CONFIG | {"hidden_size": 4, "intermediate_size": 8, "num_hidden_layers": 1}
PIECES = len(support.VOCABULARY)
TOKENIZER_FILES = {
    "tokenizer_config.json": {
        "do_lower_case": True,
        "strip_accents": None,
        "tokenizer_class": "BertTokenizer",
        "model_max_length": 24,
        "additional_special_tokens": ["cat"],
    },
    "special_tokens_map.json": {"cls_token": "[CLS]", "pad_token": {"content": "[PAD]"}},
    "added_tokens.json": {"[E1]": PIECES},
    "tokenizer.json": tokenizer_json(added=[(PIECES, "[E1]")]),
}
MORE = {"layer_norm_eps": 1e-12, "position_embedding_type": "absolute", "pad_token_id": 0}


@functools.cache
def sound(layout):
    """Dict from name to bytes of a sound base: `google` or `hugging_face`."""
    with tempfile.TemporaryDirectory() as folder:
        write = support.write_google if layout == "google" else support.write_hugging_face
        write(folder, support.random_weights(SMALL), SMALL)
        paths = pathlib.Path(folder).iterdir()
        return {path.name: path.read_bytes() for path in sorted(paths) if path.is_file()}


@st.composite
def configs(draw):
    """Bases whose configuration, vocabulary or tokenizer settings were changed."""
    files = dict(sound("hugging_face"))
    config = json.loads(files["config.json"]) | MORE
    files["config.json"] = draw(values.json_bytes(values.changed(config) | values.json_values()))
    if draw(st.booleans()):
        files["vocab.txt"] = draw(_vocabularies())
    for name in draw(st.sets(st.sampled_from(sorted(TOKENIZER_FILES)))):
        stated = values.changed(TOKENIZER_FILES[name]) | values.json_values()
        files[name] = draw(values.json_bytes(stated))
    for name in draw(st.sets(st.sampled_from(sorted(files)), max_size=1)):
        if draw(st.integers(0, 3)) == 0:
            del files[name]
    return Case(files)


@st.composite
def _vocabularies(draw):
    pieces = draw(values.changed(support.VOCABULARY))
    lines = pieces if isinstance(pieces, list) else [pieces]
    end = draw(st.sampled_from(("\n", "\r\n", "\r")))
    content = (end.join(map(_line, lines)) + end).encode("utf-8", "surrogatepass")
    return draw(st.just(content) | values.edited(content))


def _line(piece):
    return piece if isinstance(piece, str) else json.dumps(piece)


@st.composite
def tensors(draw):
    """Bases whose safetensors file was changed, most often in its header."""
    files = dict(sound("hugging_face"))
    content = files["model.safetensors"]
    other = with_other_header(content) | values.edited(content)
    return Case(files | {"model.safetensors": draw(other)})


@st.composite
def checkpoints(draw):
    """Bases whose TensorFlow checkpoint was changed."""
    files = dict(sound("google"))
    name = draw(st.sampled_from([n for n in sorted(files) if "ckpt" in n]))
    return Case(files | {name: draw(values.edited(files[name]))})


def with_index(change):
    """The case of a checkpoint whose index is damaged so."""
    files = dict(sound("google"))
    name = next(name for name in files if name.endswith(".index"))
    return Case(files | {name: change(files[name])})


def read(folder, settings):
    """Reads all of a base as a run does; the shapes are those that were said."""
    base = load_base(str(folder))
    shapes = read_shapes(base.weights_path)
    assert {name: array.shape for name, array in base.stored_weights.items()} == shapes
    assert len(base.fingerprint()["weights_sha256"]) == 64
    assert len(base.vocabulary.sha256) == 64
    if base.vocabulary.tokenizer.differences():
        TextEncoder(base.vocabulary, 8).align(tf.constant(["The [E1]cat, \u4e2d"]))
