"""Tiny bases (hidden 16, 2 layers), written in the three formats' own names."""

import json
import os
import pathlib
import re

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from official.legacy.bert import configs
from official.nlp.modeling import networks
from official.nlp.tools import tf1_bert_checkpoint_converter_lib as converter

from adapter_bert_tf.task_types import table_type

GOLDEN = pathlib.Path(__file__).parent / "golden" / "adapter_bert"

WORDS = (
    "the a cat dog sat ran on in mat house red blue big small not never is was very good bad rain "
    "sun today again who why it they we you ##s ##ing ##ed ##ly un ##able play walk . , ? ! ' -"
).split(" ")
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]

CONFIG = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 24,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
}


def random_weights(config=CONFIG, seed=0):
    """Random weights under the names and in the shapes of Google's checkpoints."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    rows = {
        "word": "vocab_size",
        "position": "max_position_embeddings",
        "token_type": "type_vocab_size",
    }
    shapes = {
        f"bert/embeddings/{name}_embeddings": (config[size], hidden) for name, size in rows.items()
    }
    shapes |= _norm("bert/embeddings/LayerNorm", hidden)
    for i in range(config["num_hidden_layers"]):
        prefix = f"bert/encoder/layer_{i}"
        for name in ("self/query", "self/key", "self/value", "output/dense"):
            shapes |= _dense(f"{prefix}/attention/{name}", hidden, hidden)
        shapes |= _norm(f"{prefix}/attention/output/LayerNorm", hidden)
        shapes |= _dense(f"{prefix}/intermediate/dense", hidden, inner)
        shapes |= _dense(f"{prefix}/output/dense", inner, hidden)
        shapes |= _norm(f"{prefix}/output/LayerNorm", hidden)
    shapes |= _dense("bert/pooler/dense", hidden, hidden)
    rng = np.random.default_rng(seed)
    return {
        name: (rng.normal(size=shape) * 0.2 + name.endswith("gamma")).astype("f4")
        for name, shape in shapes.items()
    }


def write_google(folder, weights=None, config=CONFIG, vocabulary=VOCABULARY, extra=None):
    """Writes Google's TF1 layout, with optimizer slots and a pretraining head as there."""
    weights = random_weights(config) if weights is None else weights
    _write_common(folder, "bert_config.json", config, vocabulary)
    tensors = (
        dict(weights)
        | {
            "bert/pooler/dense/kernel/adam_m": np.zeros((2, 2), "f4"),
            "cls/predictions/output_bias": np.zeros(3, "f4"),
            "global_step": np.int64(7),
        }
        | (extra or {})
    )
    write_tf1(f"{folder}/bert_model.ckpt", tensors)
    return weights


def write_tf1(prefix, tensors):
    """Writes a name-based checkpoint."""
    names = sorted(tensors)
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.constant(tensors[name]) for name in names],
    )


def write_hugging_face(folder, weights=None, config=CONFIG, vocabulary=VOCABULARY, prefix=""):
    """Writes Hugging Face's layout; `hidden_act` means there what it says."""
    weights = random_weights(config) if weights is None else weights
    values = config | {"model_type": "bert", "architectures": ["BertModel"]}
    _write_common(folder, "config.json", values, vocabulary)
    tensors = {"embeddings.position_ids": np.arange(4)[None]}
    for name, value in weights.items():
        parts = name.removeprefix("bert/").replace("layer_", "layer/").split("/")
        new = ".".join(parts)
        for google, theirs in ((".kernel", ".weight"), (".gamma", ".weight"), (".beta", ".bias")):
            new = new.replace(google, theirs)
        new += ".weight" if new.endswith("_embeddings") else ""
        tensors[prefix + new] = np.ascontiguousarray(value.T if name.endswith("kernel") else value)
    safetensors.numpy.save_file(tensors, f"{folder}/model.safetensors")
    return weights


def write_model_garden(
    folder, weights=None, config=CONFIG, vocabulary=VOCABULARY, functional=False
):
    """Writes Model Garden's object-based layout with Model Garden's own converter."""
    weights = random_weights(config) if weights is None else weights
    _write_common(folder, "bert_config.json", config, vocabulary)
    write_tf1(f"{folder}/tf1/ckpt", weights)
    converter.convert(
        checkpoint_from_path=f"{folder}/tf1/ckpt",
        checkpoint_to_path=f"{folder}/tf1/renamed",
        num_heads=config["num_attention_heads"],
        name_replacements=converter.BERT_V2_NAME_REPLACEMENTS,
        permutations=converter.BERT_V2_PERMUTATIONS,
        exclude_patterns=["adam"],
    )
    cfg = configs.BertConfig.from_dict(config)
    encoder = networks.BertEncoder if functional else networks.BertEncoderV2
    model = encoder(
        vocab_size=cfg.vocab_size,
        hidden_size=cfg.hidden_size,
        num_layers=cfg.num_hidden_layers,
        num_attention_heads=cfg.num_attention_heads,
        inner_dim=cfg.intermediate_size,
        max_sequence_length=cfg.max_position_embeddings,
        type_vocab_size=cfg.type_vocab_size,
    )
    model(model.inputs)
    reader = tf.train.load_checkpoint(f"{folder}/tf1/renamed")
    for variable in model.variables:
        name = variable.name.removesuffix(":0")
        variable.assign(reader.get_tensor(re.sub(r"^bert_encoder_v2(_\d+)?/", "", name)))
    tf.train.Checkpoint(encoder=model).write(f"{folder}/bert_model.ckpt")
    tf.io.gfile.rmtree(f"{folder}/tf1")
    return weights


def seldom(values, often):
    """`values` as parameters of a test; those not `often` run in `make test-slow` only."""
    return [pytest.param(v, marks=() if v in often else pytest.mark.slow) for v in values]


def batch(seed=0, rows=3, length=7):
    """Encoder inputs with padding at the end of every row but the first."""
    rng = np.random.default_rng(seed)
    lengths = [length, *rng.integers(2, length, rows - 1)]
    mask = (np.arange(length) < np.array(lengths)[:, None]).astype("i4")
    return {
        "input_word_ids": (rng.integers(5, len(VOCABULARY), (rows, length)) * mask).astype("i4"),
        "input_mask": mask,
        "input_type_ids": (rng.integers(0, 2, (rows, length)) * mask).astype("i4"),
    }


def adapter_config(base, adapter, method="adapters", labels=("0", "1"), **values):
    """What `save_adapter` is told of an adapter."""
    return {
        "method": method,
        "tuning": {"method": method},
        "task": "mrpc",
        "adapter": adapter and adapter.__dict__,
        "head": "classification",
        "labels": list(labels),
        "regression": not labels,
        "inputs": {"texts": 2, "max_seq_length": 16},
        "metric": {"name": "f1", "value": 0.5, "split": "dev"},
        "base": base.fingerprint(),
        "versions": {"tensorflow": "2.20"},
        "command": "python run_classifier.py",
    } | values


def _write_common(folder, config_name, config, vocabulary):
    os.makedirs(folder, exist_ok=True)
    pathlib.Path(folder, config_name).write_text(json.dumps(config))
    pathlib.Path(folder, "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")


def _dense(prefix, inputs, outputs):
    return {f"{prefix}/kernel": (inputs, outputs), f"{prefix}/bias": (outputs,)}


def _norm(prefix, size):
    return {f"{prefix}/gamma": (size,), f"{prefix}/beta": (size,)}


def past_its_end(index):
    """The bytes of a checkpoint's index, changed so that they lead to some behind the last."""
    return _with_places(index, bytes([0, 8, 0xFF, 0x7F, 14]))


def too_large_for_memory(index):
    """The bytes of a checkpoint's index, changed so that a block of it has 2**49 bytes."""
    return _with_places(index, bytes([0, 8, 0, *[0x80] * 7, 1]))


def _with_places(index, places):
    """With other offsets and sizes of its two blocks, 7 bits a byte."""
    return index[:-48] + places.ljust(40, b"\0") + index[-8:]


def encoded(task, examples):
    """Labels of examples as arrays, as the type of their task reads them; None for no labels."""
    return examples.labels and table_type(task.task_type).encode(task, examples)
