"""One SavedModel for many tasks: the base once, and the small weights of all tasks in banks."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.ops import ROWS
from adapter_bert_tf.base import Base
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.errors import Conflict, InputError, error_context
from adapter_bert_tf.heads.serving_texts import Pieces, id_specs
from adapter_bert_tf.multi_adapter.mixed import group_key, stack_weights
from adapter_bert_tf.serving.export import write
from adapter_bert_tf.serving.mixed import ALL, Served, all_tasks
from adapter_bert_tf.serving.saved_model_dir import SavedModelDir
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.combining.stacking import below_of, stack_folders, with_below
from adapter_bert_tf.store.directory import SavedAdapter, load_adapter, parse_named_folder
from adapter_bert_tf.store.multitask import require_one_task
from adapter_bert_tf.task_types import type_of


def join(folders, base, output, stack=None):
    """Writes one SavedModel for many adapter directories; returns the names of its signatures.

    There is a signature for each task, named after it (`NAME=FOLDER` in `folders` gives another
    name), and, if there are tasks of classes, scores or tags, the signature `tasks`, which takes
    `task` and the texts; see `mixed.all_tasks`. The loaded object also has a function
    `answers[NAME]` for each signature that is answered with ragged tensors. An earlier SavedModel
    of this program at `output` is replaced. `stack` is the folder of the adapter below those that
    were trained on top of one, or a dict from their names to such folders.

    Raises:
      InputError: when an adapter is damaged or of another base, two have the same task, or one
        changes the base (full and top-k tuning), or something else is at `output`.
    """
    output = storage.path_of(output)
    SavedModelDir(output).require_replaceable()
    SavedModelDir(output).require_not_a_result()
    groups: dict[tuple[Any, ...], dict[str, SavedAdapter]] = {}
    tasks, base = _load(folders, base, stack)
    for name, saved in tasks.items():
        groups.setdefault(group_key(saved.config, name), {})[name] = saved
    encoder = base.build_encoder()
    pieces = Pieces(TextEncoder(base.vocabulary, base.config.max_sequence_length))
    module = tf.Module()
    module.base = list(encoder.base_variables().values())
    module.banks = banks = [Bank(encoder, group) for group in groups.values()]
    signatures = {}
    module.answers = {}
    for bank in banks:
        for name, saved in bank.tasks.items():
            run, kind = bank.runner(name), type_of(saved.config)
            with error_context(name):
                signatures[name] = kind.serve_texts(run, saved.config, pieces)
            if answer := kind.ragged_answer(signatures[name], kind.text_names):
                module.answers[name] = answer
    if mixed := [bank for bank in banks if bank.mixes]:
        signatures[ALL], answer = all_tasks(mixed, pieces)
        if answer:
            module.answers[ALL] = answer
    write(output, module, signatures)
    return list(signatures)


def _load(folders: Sequence[str], base: Base, stack: Any) -> tuple[dict[str, SavedAdapter], Base]:
    """Dict from signature name to `SavedAdapter`, and their base."""
    tasks: dict[str, SavedAdapter] = {}
    loaded = [(folder, *_named(folder)) for folder in folders]
    configs = {contents.name_of(saved.config): saved.config for *_, saved in loaded}
    below = stack_folders(configs, stack)
    for folder, path, saved in loaded:
        (member,) = below_of(below[contents.name_of(saved.config)]) or (None,)
        saved = with_below(saved, member, repr(path))
        base = base if tasks else base.for_adapter(saved.config["base"])
        with error_context(folder):
            check_base(saved.config, base.fingerprint())
        task_name = contents.name_of(saved.config)
        name = signature_name(task_name)
        if name in tasks or name in (ALL, "") or name.startswith("__"):
            raise InputError(
                f"Each task needs its own name, other than {ALL!r}, that does not begin with two "
                f"underscores. Received: {task_name!r} in {folder}. NAME={path} gives it another."
            )
        if contents.tuning_of(saved.config).changes_base:
            command = type_of(saved.config).command.format(task=saved.config["task"])
            raise Conflict(
                f"{folder} changes the base ({saved.config['method']}), and can only be exported "
                f"alone: {command} --adapter_dir={path} --do_export."
            )
        tasks[name] = saved
    return tasks, base


def _named(folder: str) -> tuple[str, SavedAdapter]:
    """The path and the adapter of `[NAME=]FOLDER`, with that name."""
    name, path = parse_named_folder(folder)
    saved = load_adapter(path)
    require_one_task(saved.config, path)
    if name:
        saved = dataclasses.replace(saved, config=contents.named(saved.config, name))
    return path, saved


def signature_name(task: str) -> str:
    """The name of a task's signature: `_` replaces what a signature's name cannot hold."""
    return re.sub(r"\W", "_", task)


class Bank(tf.Module, Served):
    """The stacked weights of tasks that one pass can compute, and the passes that use them."""

    def __init__(self, encoder, tasks):
        super().__init__()
        first = next(iter(tasks.values())).config
        self.tasks = tasks
        self.labels = max(contents.num_outputs(saved.config) for saved in tasks.values())
        adapter, kind = contents.adapter_of(first), type_of(first)
        base, weights = encoder.base_variables(), [saved.weights for saved in tasks.values()]
        self.weights = {
            name: tf.Variable(value, trainable=False)
            for name, value in stack_weights(weights, base).items()
        }

        def run(inputs, which):
            stacked = ROWS if which.shape.rank and len(tasks) > 1 else None
            # Of one task there is nothing to choose, and some parts cannot be chosen by the row.
            place = which if stacked or not which.shape.rank else tf.constant(0)
            values = {name: tf.gather(bank, place) for name, bank in self.weights.items()}
            return kind.logits_of(encoder, inputs, adapter, values, stacked)

        ids = id_specs()
        # Two passes, shared by all signatures: one task for all rows, and one for each.
        one, rows = tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.int32)
        self.run_one = tf.function(run, autograph=False).get_concrete_function(ids, one)
        self.run_rows = tf.function(run, autograph=False).get_concrete_function(ids, rows)

    @property
    def configs(self):  # type: ignore[override]  # A `tf.Module` would save an attribute.
        return {name: saved.config for name, saved in self.tasks.items()}

    def runner(self, name):
        """Function of encoder inputs to the logits of one task."""
        place = list(self.tasks).index(name)
        config = self.tasks[name].config
        kind, outputs = type_of(config), contents.num_outputs(config)
        return lambda inputs: kind.own_logits(self.run_one(inputs, tf.constant(place)), outputs)
