"""Writes the SavedModel of several tasks that were trained together."""

import tensorflow as tf

from adapter_bert_tf.adapters.methods.multitask import TASK_IDS
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.serving_texts import Pieces, id_specs
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.serving.export import write
from adapter_bert_tf.serving.joined import signature_name
from adapter_bert_tf.serving.mixed import ALL, Served, all_tasks
from adapter_bert_tf.store.multitask import config_of, names_of
from adapter_bert_tf.task_types import type_of


def export_together(folder, model, config, vocabulary):
    """Writes a SavedModel of a `MixedModel`, with the signatures and answers of `joined.join`.

    `config` is the adapter's. A SavedModel of this program in `folder` is replaced. Raises
    `InputError` for other content, or two tasks with one signature.
    """
    module = tf.Module()
    module.parameters = model.variables  # Of the model only these: its layers need tf_keras.
    pieces = Pieces(TextEncoder(vocabulary, model.encoder.config["max_sequence_length"]))
    bank = Together(model, config)
    signatures, answers = {}, {}
    for name, signature in signature_names(bank.configs).items():
        task_config, run = bank.configs[name], bank.runner(name)
        kind = type_of(task_config)
        made = signatures[signature] = kind.serve_texts(run, task_config, pieces)
        answers[signature] = kind.ragged_answer(made, kind.text_names)
    signatures[ALL], answers[ALL] = all_tasks([bank], pieces)
    if answers := {name: answer for name, answer in answers.items() if answer}:
        module.answers = answers
    write(folder, module, signatures)


def signature_names(tasks):
    """Dict from task to signature. Raises `InputError` if two tasks have one, or `tasks`."""
    names = {task: signature_name(task) for task in tasks}
    if len({*names.values()}) < len(names) or ALL in names.values():
        raise InputError(
            f"Each task needs its own signature, other than {ALL!r}, with '_' for '-' and '.'. "
            f"Received: {preview(list(tasks))}. Rename one in a YAML file of tasks."
        )
    return names


class Together(Served):
    """The tasks of a `MixedModel`, which computes them all."""

    def __init__(self, model, config):
        self.model = model
        self.configs = {name: config_of(config, name) for name in names_of(config)}
        self.columns = [model.columns(name) for name in self.configs]
        self.labels = max(columns.stop - columns.start for columns in self.columns)
        ids = id_specs()
        compute = tf.function(self._compute, autograph=False)
        self.run_rows = compute.get_concrete_function(ids, tf.TensorSpec([None], tf.int32))

    def _compute(self, inputs, which):
        """Logits `[batch, (seq,) labels]` of each row's task, minus infinity beyond its own."""
        outputs = self.model({**inputs, TASK_IDS: which}, training=False)
        padding = [*[[0, 0]] * (len(outputs.shape) - 1), [0, 1]]
        outputs = tf.pad(outputs, padding, constant_values=float("-inf"))
        places = [list(range(columns.start, columns.stop)) for columns in self.columns]
        nothing = sum(len(own) for own in places)
        table = [own + [nothing] * (self.labels - len(own)) for own in places]
        return tf.gather(outputs, tf.gather(tf.constant(table), which), axis=-1, batch_dims=1)

    def runner(self, name):
        """Function of encoder inputs to the logits of one task."""
        number, columns = list(self.configs).index(name), self.columns
        width = columns[number].stop - columns[number].start

        def run(inputs):
            rows = tf.fill([tf.shape(inputs["input_word_ids"])[0]], number)
            return self.run_rows(inputs, rows)[..., :width]

        return run
