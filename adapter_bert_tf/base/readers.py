"""Reads pretrained weights in three formats, as float32 arrays under common names.

The common names are those of Google's TF1 checkpoints, such as
`bert/encoder/layer_0/attention/self/query/kernel`, and for adapters and head of trained checkpoints
those of this package (`adapters/layer_0/attention/down_kernel`, `head/kernel`). Variables outside
the encoder (optimizer slots, pretraining heads) are left out.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re

import ml_dtypes
import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.base import tensors
from adapter_bert_tf.errors import Damaged, Unsupported
from adapter_bert_tf.lazy import tf
from adapter_bert_tf.sanitize import truncate

NOT_ENCODER = r"^(cls|classifier|qa_outputs)\.|position_ids$"
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
WORDS = "bert/embeddings/word_embeddings"
TIED = "masked_lm/embedding_table"

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


@dataclasses.dataclass(frozen=True)
class Stored:
    """An array in a file."""

    name: str  # In the file.
    shape: tuple[int, ...]  # In the layout of this package.
    transposed: bool = False  # Whether rows and columns are exchanged in the file.


def read_weights(path: str) -> dict[str, np.ndarray]:
    """Reads a `.safetensors` file or a checkpoint prefix: common name to float32 array.

    Raises `InputError`, with the names of its variables, when it is damaged or not a BERT.
    """
    stored, reader = _open(path)
    if reader is None:
        read = tensors.read_tensors(path, NOT_ENCODER).__getitem__
    else:
        read = functools.partial(read_tensor, path, reader)
    return {common: convert(read(item.name), item, path) for common, item in stored.items()}


def read_shapes(path: str) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays of `read_weights`, without reading these; raises the same errors."""
    return {common: item.shape for common, item in _open(path)[0].items()}


def _open(path):
    """(dict from common name to `Stored`, checkpoint reader or None) of a file."""
    if path.endswith(".safetensors"):
        return _in_hugging_face(path), None
    reader = open_checkpoint(path)
    shapes = {name: tuple(shape) for name, shape in reader.get_variable_to_shape_map().items()}
    is_object_based = "_CHECKPOINTABLE_OBJECT_GRAPH" in shapes
    return (_in_model_garden if is_object_based else _in_google)(path, shapes), reader


def checkpoint_errors() -> tuple[type[Exception], ...]:
    """Errors of TensorFlow for a damaged checkpoint.

    Its index may point past the end of the data, or to a block larger than memory.
    """
    return (tf.errors.OpError, OSError, IndexError, MemoryError, ValueError)


def open_checkpoint(path):
    """The reader of a complete TensorFlow checkpoint. Raises `InputError`."""
    try:
        reader = tf.train.load_checkpoint(_local_checkpoint(path))
    except checkpoint_errors() as error:
        raise Damaged(
            f"Cannot read the checkpoint {path!r}: {storage.reason(error)} Copy or download all of "
            "its files again."
        ) from error
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    needed = sum(math.prod(shape) * max(types[n].size, 0) for n, shape in shapes.items())
    size = sum(storage.stat(file).length for file in storage.glob(f"{path}.data-*"))
    if size < needed:
        raise Damaged(
            f"The checkpoint {path!r} is incomplete: its variables take {needed:,} bytes, its data "
            f"files (.data-...) have {size:,}. Copy or download all of its files again."
        )
    return reader


def read_tensor(path, reader, name):
    """The array of a variable. Raises `InputError` if it cannot be read."""
    damaged: tuple[type[Exception], ...] = (*checkpoint_errors(), RuntimeError)
    try:
        return reader.get_tensor(name)
    except damaged as error:
        raise Damaged(
            f"The checkpoint {path!r} is damaged: {name} cannot be read "
            f"({storage.reason(error)}). Copy or download all of its files again."
        ) from error


def _local_checkpoint(prefix):
    """The prefix of a checkpoint's files; for remote ones, of local copies."""
    if not storage.is_remote(prefix):
        return prefix
    files = storage.glob(f"{prefix}.index") + storage.glob(f"{prefix}.data-*")
    return storage.cached(*files)[0].removesuffix(".index") if files else prefix


def _in_google(path, shapes):
    """Google's and adapter-bert's TF1 checkpoints, which have the common names."""
    stored: dict[str, Stored] = {}
    for name in sorted(shapes):
        common = None if re.search(r"adam_[mv]$|/Adam(_1)?$", name) else _adapter_bert_name(name)
        if common is not None:
            flat = (math.prod(shapes[name]),)  # adapter-bert keeps its biases as [1, size].
            shape = flat if common.endswith("_bias") else shapes[name]
            _add(stored, common, Stored(name, shape), path)
    for scope in ("", "cls/squad/"):  # Of a classifier, and of a span labeler.
        kernel, bias = f"{scope}output_weights", f"{scope}output_bias"
        if kernel in shapes and bias in shapes:  # [labels, hidden]; a kernel is [hidden, labels].
            stored["head/kernel"] = Stored(kernel, shapes[kernel][::-1], transposed=True)
            stored["head/bias"] = Stored(bias, shapes[bias])
    return _require_encoder(path, stored, shapes)


def _adapter_bert_name(name):
    """The common name of a TF1 variable; None outside the encoder."""
    match = re.fullmatch(r"bert/encoder/(layer_\d+)/(attention/)?output/adapters/(\w+)", name)
    if match:
        layer, attention, variable = match.groups()
        sublayer = "attention" if attention else "feed_forward"
        return f"adapters/{layer}/{sublayer}/{ADAPTER_BERT_VARIABLES.get(variable, variable)}"
    return name if name.startswith("bert/") else None


def _in_hugging_face(path):
    shapes = tensors.read_shapes(path)
    stored: dict[str, Stored] = {}
    for name, shape in shapes.items():
        if re.search(NOT_ENCODER, name):
            continue
        transposed = name.endswith(".weight") and len(shape) == 2 and "embeddings" not in name
        common = _apply(HUGGING_FACE_RULES, name)
        _add(stored, common, Stored(name, shape[::-1] if transposed else shape, transposed), path)
    return _require_encoder(path, stored, shapes)


def _in_model_garden(path, shapes):
    """Model Garden's object-based checkpoints, of `BertEncoderV2` and of the functional encoder."""
    names = sorted(shapes)
    root, rename = _model_garden_root(path, names)
    stored: dict[str, Stored] = {}
    for name in names:
        if not (name.startswith(root) and name.endswith(VALUE)) or "OPTIMIZER_SLOT" in name:
            continue
        inner = rename(name.removeprefix(root).removesuffix(VALUE))
        if inner is not None:
            _add(stored, _apply(MODEL_GARDEN_RULES, inner), Stored(name, shapes[name]), path)
    # The shortest path to an object names it; a pretraining head shares the word embeddings.
    tied = [name for name in names if re.fullmatch(rf"(.*/)?{TIED}{re.escape(VALUE)}", name)]
    if tied and WORDS not in stored:
        stored[WORDS] = Stored(tied[0], shapes[tied[0]])
    return _require_encoder(path, stored, names)


def _model_garden_root(path, names):
    """The path of the encoder in the object graph, and a function that renames its attributes."""
    renamers = {
        "_embedding_norm_layer/gamma": _attribute_name,
        "layer_with_weights-0/embeddings": _functional_renamer(names),
    }
    for mark, rename in renamers.items():
        roots = [n.removesuffix(mark + VALUE) for n in names if n.endswith(mark + VALUE)]
        if roots:
            return min(roots, key=len), rename
    return _fail(path, names)


def _attribute_name(name):
    return name if re.match("_(embedding|position|type|transformer|pooler)", name) else None


def _functional_renamer(names):
    """Names of `networks.BertEncoder`, whose layers are numbered: embeddings, blocks, pooler."""
    numbers = [int(n) for name in names for n in re.findall(r"layer_with_weights-(\d{1,4})/", name)]
    fixed = {
        0: "_embedding_layer",
        1: "_position_embedding_layer",
        2: "_type_embedding_layer",
        3: "_embedding_norm_layer",
        max(numbers, default=0): "_pooler_layer",
    }

    def rename(name):
        match = re.fullmatch(r"layer_with_weights-(\d{1,4})/(.*)", name)
        if not match:
            return None
        number = int(match[1])
        return f"{fixed.get(number, f'_transformer_layers/{number - 4}')}/{match[2]}"

    return rename


def _apply(rules, name):
    for pattern, replacement in rules:
        name = re.sub(pattern, replacement, name)
    return name


def convert(value, stored, path):
    """The float32 array in the layout of this package. Raises `InputError`."""
    name, dtype = stored.name, value.dtype
    if not np.issubdtype(dtype, np.floating) and dtype != ml_dtypes.bfloat16:
        raise Damaged(f"{path}: {name} must hold floating-point numbers. Received: {dtype}")
    with np.errstate(over="ignore"):  # The check for infinity follows.
        value = np.asarray(value.T if stored.transposed else value, np.float32)
    if not np.isfinite(value).all():
        raise Damaged(f"{path}: {name} holds values that are not finite (NaN or infinity).")
    return value.reshape(stored.shape)


def _add(stored, common, item, path):
    """Adds a `Stored`. Raises `InputError` for a second one with the same common name."""
    if common in stored:
        raise Damaged(
            f"{path} holds {common} twice, as {truncate(stored[common].name, 80)!r} and as "
            f"{truncate(item.name, 80)!r}. Save the model again with one of them."
        )
    stored[common] = item


def _require_encoder(path, stored, names):
    return stored if WORDS in stored else _fail(path, sorted(names))


def _fail(path, names):
    first = "\n  ".join(truncate(name, 80) for name in names[:25])
    raise Unsupported(
        f"{path} has no BERT encoder under Google's, Model Garden's or Hugging Face's names. "
        f"It has {len(names)} variables:\n  {first}"
    )
