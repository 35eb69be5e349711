"""Reads pretrained weights in three formats into one form: Google's names, float32 arrays.

Each reader returns a dict from the variable names of Google's TF1 checkpoints, such as
`bert/encoder/layer_0/attention/self/query/kernel`, to arrays. Adapters and the head of
trained checkpoints come under our names (`adapters/layer_0/attention/down_kernel`,
`head/kernel`). What is no part of the encoder (optimizer slots, pretraining heads) is left out.
"""

import re

import numpy as np
import safetensors
import safetensors.numpy
import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError

VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"

ADAPTER_BERT_VARIABLES = {
    "weights1": "down_kernel",
    "biases1": "down_bias",
    "weights2": "up_kernel",
    "biases2": "up_bias",
}

HUGGING_FACE_RULES = (
    (r"^bert\.", ""),
    (r"\.LayerNorm\.(weight|gamma)$", ".LayerNorm.gamma"),
    (r"\.LayerNorm\.(bias|beta)$", ".LayerNorm.beta"),
    (r"_embeddings\.weight$", "_embeddings"),
    (r"\.weight$", ".kernel"),
    (r"\.layer\.(\d+)\.", r".layer_\1."),
    (r"\.", "/"),
    (r"^", "bert/"),
)

MODEL_GARDEN_RULES = (
    (r"^_embedding_layer/embeddings$", "embeddings/word_embeddings"),
    (r"^_position_embedding_layer/(_position_)?embeddings$", "embeddings/position_embeddings"),
    (r"^_type_embedding_layer/embeddings$", "embeddings/token_type_embeddings"),
    (r"^_embedding_norm_layer/", "embeddings/LayerNorm/"),
    (r"^_transformer_layers/(\d+)/", r"encoder/layer_\1/"),
    (r"^_pooler_layer/", "pooler/dense/"),
    (r"/_attention_layer/_output_dense/", "/attention/output/dense/"),
    (r"/_attention_layer/_(query|key|value)_dense/", r"/attention/self/\1/"),
    (r"/_attention_layer_norm/", "/attention/output/LayerNorm/"),
    (r"/_intermediate_dense/", "/intermediate/dense/"),
    (r"/_output_dense/", "/output/dense/"),
    (r"/_output_layer_norm/", "/output/LayerNorm/"),
    (r"^", "bert/"),
)


def read_weights(path):
    """Reads a `.safetensors` file or a checkpoint prefix, whichever format it is in.

    Returns:
      dict from name to float32 array, as the module says.

    Raises:
      InputError: when it cannot be read or holds no BERT, with what it holds.
    """
    if path.endswith(".safetensors"):
        return _read_hugging_face(path)
    try:
        reader = tf.train.load_checkpoint(_local_checkpoint(path))
    except (tf.errors.OpError, ValueError) as error:
        raise InputError(f"Cannot read the checkpoint {path!r}: {error}") from error
    names = sorted(reader.get_variable_to_shape_map())
    if "_CHECKPOINTABLE_OBJECT_GRAPH" in names:
        return _read_model_garden(path, reader, names)
    return _read_google(path, reader, names)


def _local_checkpoint(prefix):
    """The prefix of a checkpoint's files, or of local copies of them."""
    if not storage.is_remote(prefix):
        return prefix
    files = storage.glob(f"{prefix}.index") + storage.glob(f"{prefix}.data-*")
    return storage.cached(*files)[0].removesuffix(".index") if files else prefix


def _read_google(path, reader, names):
    """Google's and adapter-bert's TF1 checkpoints: the names are already the common ones."""
    values = {}
    for name in names:
        if re.search(r"adam_[mv]$|/Adam(_1)?$", name):
            continue
        common = _adapter_bert_name(name)
        if common is not None:
            value = reader.get_tensor(name)
            if common.endswith("_bias"):  # adapter-bert keeps its biases as [1, size].
                value = value.reshape(-1)
            values[common] = _float32(value, path, name)
    for scope in ("", "cls/squad/"):  # Of a classifier, and of a span labeler.
        if f"{scope}output_weights" in names:  # [labels, hidden]; a kernel is [hidden, labels].
            values["head/kernel"] = np.transpose(reader.get_tensor(f"{scope}output_weights"))
            values["head/bias"] = reader.get_tensor(f"{scope}output_bias")
    return _check_found(path, values, names)


def _adapter_bert_name(name):
    """The common name of a TF1 variable, None for what is not of the encoder."""
    match = re.fullmatch(r"bert/encoder/(layer_\d+)/(attention/)?output/adapters/(\w+)", name)
    if match:
        layer, attention, variable = match.groups()
        sublayer = "attention" if attention else "feed_forward"
        return f"adapters/{layer}/{sublayer}/{ADAPTER_BERT_VARIABLES.get(variable, variable)}"
    return name if name.startswith("bert/") else None


def _read_hugging_face(path):
    try:
        tensors = safetensors.numpy.load(storage.read_bytes(*storage.cached(path)))
    except (tf.errors.OpError, safetensors.SafetensorError) as error:
        raise InputError(f"Cannot read {path!r}: {error}") from error
    values = {}
    for name, value in tensors.items():
        if re.search(r"^(cls|classifier|qa_outputs)\.|position_ids$", name):
            continue
        transposed = name.endswith(".weight") and value.ndim == 2 and "embeddings" not in name
        common = _apply(HUGGING_FACE_RULES, name)
        values[common] = _float32(value.T if transposed else value, path, name)
    return _check_found(path, values, sorted(tensors))


def _read_model_garden(path, reader, names):
    """Model Garden's object-based checkpoints, of `BertEncoderV2` and of the functional encoder."""
    root, rename = _model_garden_root(path, names)
    values = {}
    for name in names:
        if not (name.startswith(root) and name.endswith(VALUE)) or "OPTIMIZER_SLOT" in name:
            continue
        inner = rename(name.removeprefix(root).removesuffix(VALUE))
        if inner is not None:
            value = _float32(reader.get_tensor(name), path, name)
            values[_apply(MODEL_GARDEN_RULES, inner)] = value
    return _check_found(path, values, names)


def _model_garden_root(path, names):
    """Where the encoder hangs in the object graph, and how its attributes are called there."""
    for mark, rename in (
        ("_embedding_layer/embeddings", _attribute_name),
        ("layer_with_weights-0/embeddings", _functional_renamer(names)),
    ):
        roots = [n.removesuffix(mark + VALUE) for n in names if n.endswith(mark + VALUE)]
        if roots:
            return min(roots, key=len), rename
    return _fail(path, names)


def _attribute_name(name):
    return name if re.match("_(embedding|position|type|transformer|pooler)", name) else None


def _functional_renamer(names):
    """Names of `networks.BertEncoder`, whose layers are numbered: embeddings, blocks, pooler."""
    numbers = [int(n) for name in names for n in re.findall(r"layer_with_weights-(\d+)/", name)]
    fixed = {
        0: "_embedding_layer",
        1: "_position_embedding_layer",
        2: "_type_embedding_layer",
        3: "_embedding_norm_layer",
        max(numbers, default=0): "_pooler_layer",
    }

    def rename(name):
        match = re.fullmatch(r"layer_with_weights-(\d+)/(.*)", name)
        if not match:
            return None
        number = int(match[1])
        return f"{fixed.get(number, f'_transformer_layers/{number - 4}')}/{match[2]}"

    return rename


def _apply(rules, name):
    for pattern, replacement in rules:
        name = re.sub(pattern, replacement, name)
    return name


def _float32(value, path, name):
    value = np.asarray(value, np.float32)
    if not np.isfinite(value).all():
        raise InputError(f"{path}: {name} holds values that are not finite (NaN or infinity).")
    return value


def _check_found(path, values, names):
    return values if "bert/embeddings/word_embeddings" in values else _fail(path, names)


def _fail(path, names):
    shown = "\n  ".join(names[:40])
    raise InputError(
        f"{path} holds no BERT encoder in Google's, Model Garden's or Hugging Face's names. "
        f"It has {len(names)} variables:\n  {shown}"
    )
