"""Writes the SavedModel of one task."""

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads import head_of
from adapter_bert_tf.heads.serving_texts import Pieces
from adapter_bert_tf.store.folders import replacing

# Of a SavedModel, besides `saved_model.pb`, without which it is none.
PARTS = {"assets", "variables", "fingerprint.pb"}


def export_task(folder, model, config, vocabulary):
    """Writes a SavedModel that takes raw strings; everything it needs is inside.

    A client needs only `tensorflow` and `tensorflow_text`.

    Args:
      folder: path; a SavedModel that is there is replaced.
      model: `Classifier` or `SpanLabeler`.
      config: of the adapter.
      vocabulary: `Vocabulary` of the base.

    Raises:
      InputError: when `folder` holds something else.
    """
    run = tf.function(lambda inputs: model(inputs, training=False))
    module = tf.Module()
    module.parameters = model.variables  # Of the model only these: its layers need tf_keras.
    pieces = Pieces(TextEncoder(vocabulary, model.encoder.config["max_sequence_length"]))
    head = head_of(config)
    write(
        folder,
        module,
        {
            "serving_default": head.serve_texts(run, config, pieces),
            "ids": head.serve_ids(run, config),
        },
    )


def write(folder, module, signatures):
    """Saves a module under a temporary name, then renames it. Raises `InputError`."""
    require_export_place(folder)
    with replacing(folder, last="saved_model.pb") as temporary:
        tf.saved_model.save(module, temporary, signatures=signatures)


def require_export_place(folder):
    """A SavedModel may be written where nothing is, or a SavedModel. Raises `InputError`."""
    if not storage.exists(folder) or storage.exists(f"{folder}/saved_model.pb"):
        return
    names = storage.listdir(folder) if storage.isdir(folder) else [""]
    # A copy to a bucket that was cut short leaves parts, and may be replaced.
    if not names or not {name.rstrip("/") for name in names} <= PARTS:
        raise InputError(
            f"{folder!r} is no SavedModel and will not be replaced. Choose another folder."
        )
