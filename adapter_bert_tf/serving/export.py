"""Writes the SavedModel of one task."""

import tensorflow as tf
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.heads.serving_texts import Pieces
from adapter_bert_tf.serving.saved_model_dir import SavedModelDir
from adapter_bert_tf.task_types import type_of


def export_task(folder, model, config, vocabulary):
    """Writes a SavedModel that takes raw strings and needs no other files.

    A client needs only `tensorflow` and `tensorflow_text`. `model` is a `TaskModel` of the type in
    the adapter's `config`. A SavedModel of this program in `folder` is replaced. Raises
    `InputError` for other content.
    """
    run = tf.function(lambda inputs: model(inputs, training=False), autograph=False)
    module = tf.Module()
    module.parameters = model.variables  # Of the model only these: its layers need tf_keras.
    pieces = Pieces(TextEncoder(vocabulary, model.encoder.config["max_sequence_length"]))
    kind = type_of(config)
    texts, ids = kind.serve_texts(run, config, pieces), kind.serve_ids(run, config)
    if answer := kind.ragged_answer(texts, kind.text_names):
        module.answer = answer
    write(folder, module, {"serving_default": texts, "ids": ids})


def write(folder, module, signatures):
    """Saves a module under a temporary name, then renames it. Raises as `export_task`."""
    target = SavedModelDir(folder)
    target.require_replaceable()
    existed = target.exists()
    if storage.is_remote(folder):
        target.mark_earlier()
    with target.replace() as temporary:
        tf.saved_model.save(module, temporary, signatures=signatures)
        SavedModelDir(temporary).mark()
    if existed:
        logging.warning(f"{folder}: the earlier SavedModel is replaced.")
