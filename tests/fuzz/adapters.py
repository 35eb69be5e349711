"""Adapter directories, with digests that are right, and `--adapter=FILE`."""

import argparse
import functools
import json
import struct
import types

import numpy as np
import safetensors.numpy
from hypothesis import strategies as st

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.methods.hyperformer import HyperFormerConfig
from adapter_bert_tf.adapters.methods.per_task import PerTaskConfig
from adapter_bert_tf.adapters.methods.projected_attention import PalsConfig
from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.cli import store_commands
from adapter_bert_tf.config.sections.model import MethodConfig
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run.method import from_config
from adapter_bert_tf.store import contents, load_adapter, multitask, schema
from adapter_bert_tf.store.adapter_dir import AdapterDir
from adapter_bert_tf.store.card import card
from adapter_bert_tf.store.weights import digest
from tests import support
from tests.fuzz import values
from tests.fuzz.cases import Case, Link

ADAPTER = AdapterConfig(bottleneck_size=2)
SIZES = {
    "vocab_size": 9,
    "hidden_size": 4,
    "num_layers": 1,
    "num_attention_heads": 2,
    "inner_dim": 8,
    "type_vocab_size": 2,
    "max_sequence_length": 24,
    "lower_case": True,
    "activation": "gelu",
    "norm_epsilon": 1e-12,
    "vocabulary_sha256": "0",
    "weights_sha256": "1",
}
CONFIG, WEIGHTS = "a/adapter_config.json", "a/adapter.safetensors"


OF_ONE = ("task", "head", "labels", "regression", "inputs", "metric")
METHODS = ("adapters", "multitask_full", "multitask_adapters", "per_task_adapters")
METHODS += ("hyperformer", "hyperformer++", "pals")
MADE = AdapterConfig(2, normalize_output=True)
WIDTHS = {"task_embedding_size": 2, "projector_size": 3, "projected_size": 2}
TASKS = ("a", "b-2")
OF_METHOD = {
    "multitask_full": None,
    "multitask_adapters": ADAPTER,
    "per_task_adapters": PerTaskConfig(ADAPTER, TASKS),
    "hyperformer": HyperFormerConfig(MADE, TASKS, **WIDTHS),
    "hyperformer++": HyperFormerConfig(MADE, TASKS, shared=True, **WIDTHS),
    "pals": PalsConfig(TASKS, 4, 2),
}


@functools.cache
def sound(method=METHODS[0]):
    """(config without digests, bytes of the weights) of a sound adapter; of several tasks, two."""
    base = types.SimpleNamespace(fingerprint=lambda: SIZES)
    config = support.adapter_config(base, ADAPTER, method)
    if method != METHODS[0]:
        config["adapter"] = OF_METHOD[method] and OF_METHOD[method].to_dict()
        one = {name: config[name] for name in OF_ONE}
        scores = one | {"task": "b-2", "labels": [], "regression": True}
        config |= multitask.whole([one | {"task": "a"}, scores])
    config |= {"name": "mine", "run": "0", "global_step": 3}
    arrays = {n: np.ones(s, "f4") for n, s in contents.expected_shapes(config).items()}
    config = json.loads(json.dumps(config))
    return config, safetensors.numpy.save(arrays, metadata={"format": "adapter_bert_tf"})


@st.composite
def cases(draw):
    """Directories whose config was changed and sealed again, or whose weights were."""
    config, weights = sound(draw(st.sampled_from(METHODS)))
    if draw(st.booleans()):
        weights = draw(_weights(weights))
    config = draw(values.changed(config))
    content = json.dumps(_sealed(config, weights), ensure_ascii=draw(st.booleans()))
    content = content.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 5)) == 0:
        content = draw(values.edited(content))
    files = {CONFIG: content, WEIGHTS: weights, "a/README.md": draw(st.binary(max_size=9))}
    if draw(st.integers(0, 5)) == 0:
        name = draw(st.sampled_from(sorted(files)))
        files[name] = draw(st.sampled_from((None, Link("../../outside/below/mine"), Link("."))))
    return Case(files)


def changed(**values):
    """The case of a sound adapter with other values in its config, sealed."""
    config, weights = sound()
    return Case({CONFIG: json.dumps(_sealed(config | values, weights)).encode(), WEIGHTS: weights})


def with_header(**values):
    """The case of a sound adapter whose first weights' header has other values."""
    config, weights = sound()
    (length,) = struct.unpack("<Q", weights[:8])
    header = json.loads(weights[8 : 8 + length])
    name = next(name for name in header if name != "__metadata__")
    text = json.dumps(header | {name: header[name] | values}).encode()
    weights = struct.pack("<Q", len(text)) + text + weights[8 + length :]
    return Case({CONFIG: json.dumps(_sealed(config, weights)).encode(), WEIGHTS: weights})


def _sealed(config, weights):
    if not isinstance(config, dict):
        return config
    return schema.seal(config, digest(weights))


@st.composite
def _weights(draw, content):
    """Weights whose header was changed; its length is right, most often."""
    if draw(st.integers(0, 3)) == 0:
        return draw(values.edited(content))
    return draw(with_other_header(content))


@st.composite
def with_other_header(draw, content):
    """A safetensors file with a changed header."""
    (length,) = struct.unpack("<Q", content[:8])
    header = draw(values.json_bytes(values.changed(json.loads(content[8 : 8 + length]))))
    size = draw(st.just(len(header)) | st.sampled_from((0, 1, 2**31, 2**63, 2**64 - 1)))
    return struct.pack("<Q", size) + header + content[8 + length :]


def load(folder, settings):
    """Lists, verifies and loads a directory, and looks whose it is."""
    path = str(folder / "a")
    parsed = argparse.Namespace(folders=[str(folder)], base_model=None)
    store_commands.list_adapters(parsed)
    store_commands.verify_adapters(argparse.Namespace(folders=[path], base_model=None))
    AdapterDir(path).run()
    errors = [_refusal(AdapterDir(path).require_replaceable)]
    saved = load_adapter(path)
    card(saved.config)
    store_commands.show_adapters(argparse.Namespace(folders=[path]))
    schema.parse(json.dumps(saved.config), path)
    for error in filter(None, errors):
        raise error


def _refusal(function):
    try:
        function()
    except InputError as error:
        return error


PARTS = {
    "kind": "bottleneck",
    "bottleneck_size": 4,
    "activation": "gelu",
    "init_scale": 1e-3,
    "layers": [0, 1],
    "sublayers": ["attention", "feed_forward"],
}


@st.composite
def files(draw):
    """Files for `--adapter`, and texts for `--adapter_layers`."""
    known = [PARTS, ADAPTER.__dict__, *(config.to_dict() for config in PRESETS.values())]
    anything = st.one_of([values.changed(json.loads(json.dumps(parts))) for parts in known])
    content = draw(values.json_bytes(anything | values.json_values()))
    layers = st.none() | st.text("0123456789-,. ", max_size=12) | values.texts()
    return Case({"adapter.json": content}, {"layers": draw(layers)})


def read(folder, settings):
    """Reads the file, and makes the variables' list for a tiny base."""
    config = MethodConfig(adapter=str(folder / "adapter.json"), adapter_layers=settings["layers"])
    parts = from_config._with_overrides(config)
    parts.without_lowest(0, 1).specs(SIZES)
    parts.summary()
