"""Models of one task for runtimes without TensorFlow: ONNX and LiteRT."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from adapter_bert_tf.base import Base
from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.serving_texts import INPUTS
from adapter_bert_tf.interop.litert import to_litert
from adapter_bert_tf.interop.onnx_graph import to_onnx
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.adapter_dir import require_free
from adapter_bert_tf.store.combining.stacking import require_no_stack
from adapter_bert_tf.store.directory import SavedAdapter
from adapter_bert_tf.store.files import write_files
from adapter_bert_tf.task_types import type_of


class Format(NamedTuple):
    """How models of a format are written."""

    file_name: str
    convert: Callable[[Any], bytes]  # A concrete function.
    any_length: bool  # Whether rows may be shorter than the adapter's `max_seq_length`.


FORMATS = {
    "onnx": Format("model.onnx", to_onnx, any_length=True),
    "litert": Format("model.tflite", to_litert, any_length=False),
}
TASK, VOCABULARY, TOKENIZER = "task.json", "vocab.txt", "tokenizer_config.json"


def export_model(saved: SavedAdapter, folder: str, base: Base, format: str) -> list[str]:
    """Writes encoder and head of one task for another runtime; returns the names of its outputs.

    The model takes int32 `input_word_ids`, `input_mask` and `input_type_ids`, `[batch, length]`,
    where `length` is the adapter's `max_seq_length`, in ONNX any length up to it. Its float32
    outputs are `logits` `[batch, outputs]` and, for classes and label sets, `probabilities`; for
    questions `start_logits` and `end_logits` `[batch, length]`; for tags `logits` and
    `probabilities` `[batch, length, tags]`, to be read at the first piece of each word.

    Args:
      saved: the adapter of one task, of any method.
      folder: new or empty; it gets the model, `task.json` (labels, lengths, names), `vocab.txt` and
        `tokenizer_config.json`, which `transformers` reads too.
      base: the base of the adapter.
      format: a key of `FORMATS`.

    Raises:
      InputError: when the base differs, the format is unknown or its library missing, or the format
        has no operation for a part of the model.
    """
    if format not in FORMATS:
        raise InputError(f"format must be one of {list(FORMATS)}. Received: {preview(format)}")
    require_free(folder)
    kind, config = type_of(saved.config), saved.config
    if not saved.members:
        require_no_stack(config, format)
    encoder = base.build_encoder(contents.adapter_of(config))
    model = kind.new_model(encoder, contents.num_outputs(config))
    saved.assign_to(model.named_variables(), base.fingerprint())
    file_name, convert, any_length = FORMATS[format]
    length = config["inputs"]["max_seq_length"]
    shape = [None, None if any_length else length]
    function = _concrete_function(model, kind.numeric_outputs, shape)
    outputs = sorted(function.structured_outputs)
    files = {
        TASK: _serialize(_task_values(config, file_name, outputs)),
        file_name: convert(function),
        VOCABULARY: "\n".join([*base.vocabulary.pieces, ""]).encode(),
        TOKENIZER: _serialize(_tokenizer_values(base.vocabulary, length)),
    }
    write_files(folder, files, require_free)
    return outputs


def _concrete_function(
    model: Any, outputs: Callable[[tf.Tensor], dict[str, tf.Tensor]], shape: Sequence[int | None]
) -> Any:
    @tf.function(autograph=False)
    def task(**inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        return outputs(model(inputs, training=False))

    specs = {name: tf.TensorSpec(shape, tf.int32, name=name) for name in INPUTS}
    return task.get_concrete_function(**specs)


def _task_values(config: Mapping[str, Any], file_name: str, outputs: list[str]) -> dict[str, Any]:
    """What a client needs to know about the task."""
    kind = type_of(config)
    return {
        "name": contents.name_of(config),
        "task_type": kind.name,
        "labels": list(config["labels"]),
        "texts": kind.num_texts(config["inputs"]),
        **config["inputs"],
        "model": file_name,
        "model_inputs": list(INPUTS),
        "model_outputs": outputs,
        "adapter_sha256": config.get("sha256"),
    }


def _tokenizer_values(vocabulary: Vocabulary, length: int) -> dict[str, Any]:
    """Settings of `transformers.BertTokenizer`."""
    settings = vocabulary.tokenizer
    added = {str(t.id): {"content": t.content, "normalized": t.normalized} for t in settings.added}
    return {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": settings.lower_case,
        "strip_accents": settings.strip_accents,
        "tokenize_chinese_chars": settings.split_chinese,
        "model_max_length": length,
        "max_input_chars_per_word": settings.longest_word,
        "unk_token": settings.special.unknown,
        "sep_token": settings.special.end,
        "pad_token": settings.special.pad,
        "cls_token": settings.special.start,
        "mask_token": settings.special.mask,
        **({"added_tokens_decoder": added} if added else {}),
    }


def _serialize(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, indent=2, ensure_ascii=False).encode()
