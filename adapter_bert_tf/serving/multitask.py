"""Writes the SavedModel of several tasks that were trained together."""

import re

import tensorflow as tf

from adapter_bert_tf.adapters.methods.multitask import TASK_IDS
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.serving_texts import Pieces, id_specs
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.serving.export import write
from adapter_bert_tf.serving.joined import ALL, Served, all_tasks
from adapter_bert_tf.store.multitask import config_of, names_of
from adapter_bert_tf.task_types import type_of


def export_together(folder, model, config, vocabulary):
    """Writes a SavedModel with the encoder once and a signature for each task.

    The signatures are those of `many.join`: one named after each task, and `tasks`, which takes a
    task's name with each row.

    Args:
      folder: path; a SavedModel of ours that is there is replaced.
      model: `MixedClassifier`.
      config: of the adapter.
      vocabulary: `Vocabulary` of the base.

    Raises:
      InputError: when `folder` holds something else, or two tasks would have one signature.
    """
    module = tf.Module()
    module.parameters = model.variables  # Of the model only these: its layers need tf_keras.
    pieces = Pieces(TextEncoder(vocabulary, model.encoder.config["max_sequence_length"]))
    bank = Together(model, config)
    signatures = {
        signature: type_of(of_one).serve_texts(bank.runner(name), of_one, pieces)
        for signature, (name, of_one) in zip(
            signatures_of(bank.configs), bank.configs.items(), strict=True
        )
    }
    write(folder, module, signatures | {ALL: all_tasks([bank], pieces)})


def signatures_of(names):
    """Names of the tasks' signatures. Raises `InputError` if two would have one, or `tasks`."""
    found = [re.sub(r"\W", "_", name) for name in names]
    if len(set(found)) < len(found) or ALL in found:
        raise InputError(
            f"Each task needs a signature of its own, other than {ALL!r}, with '_' for '-' and "
            f"'.'. Received: {preview(list(names))}. Rename one, in a YAML file of tasks."
        )
    return found


class Together(Served):
    """The tasks of a model that computes them all.

    Args:
      model: `MixedClassifier`.
      config: of its adapter.
    """

    def __init__(self, model, config):
        self.model = model
        self.own = {name: config_of(config, name) for name in names_of(config)}
        self.columns = [model.columns(name) for name in self.own]
        self.labels = max(columns.stop - columns.start for columns in self.columns)
        ids = id_specs()
        compute = tf.function(self._compute, autograph=False)
        self.run_rows = compute.get_concrete_function(ids, tf.TensorSpec([None], tf.int32))

    @property
    def configs(self):
        return self.own

    def _compute(self, inputs, which):
        """Logits `[batch, labels]` of each row's task, minus infinity where it has no more."""
        outputs = self.model({**inputs, TASK_IDS: which}, training=False)
        outputs = tf.pad(outputs, [[0, 0], [0, 1]], constant_values=float("-inf"))
        places = [list(range(columns.start, columns.stop)) for columns in self.columns]
        nothing = sum(len(own) for own in places)
        table = [own + [nothing] * (self.labels - len(own)) for own in places]
        return tf.gather(outputs, tf.gather(tf.constant(table), which), batch_dims=1)

    def runner(self, name):
        """Function of encoder inputs to the logits of one task."""
        number, columns = list(self.configs).index(name), self.columns
        width = columns[number].stop - columns[number].start

        def run(inputs):
            rows = tf.fill([tf.shape(inputs["input_word_ids"])[0]], number)
            return self.run_rows(inputs, rows)[:, :width]

        return run
