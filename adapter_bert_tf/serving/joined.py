"""One SavedModel for many tasks: the base once, and the small weights of all tasks in banks."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.adapters.ops import ROWS
from adapter_bert_tf.base import Base
from adapter_bert_tf.data.tokenization import TextEncoder, pad_inputs, require_equal_lengths
from adapter_bert_tf.errors import Conflict, InputError
from adapter_bert_tf.heads.serving_texts import Pieces, id_specs, text_signature
from adapter_bert_tf.multi_adapter.mixed import group_key, stack_weights
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.serving.export import write
from adapter_bert_tf.serving.saved_model_dir import SavedModelDir
from adapter_bert_tf.store import contents
from adapter_bert_tf.store.base_match import check_base
from adapter_bert_tf.store.directory import SavedAdapter, load_adapter, parse_named_folder
from adapter_bert_tf.store.multitask import require_one_task
from adapter_bert_tf.task_types import TableType, type_of

ALL = "tasks"  # The signature that takes a task's name with each row.
NO_LABEL = -1e9  # Logit of a label that a task does not have: after softmax exactly 0.


def join(folders, base, output):
    """Writes one SavedModel for many adapter directories; returns the names of its signatures.

    There is a signature for each task, named after it (`NAME=FOLDER` in `folders` gives another
    name), and, if there are classification tasks, the signature `tasks`, which takes `task`,
    `text_a` and `text_b`. The loaded object also has a function `answers[NAME]` for each task that
    is answered with ragged tensors. An earlier SavedModel of this program at `output` is replaced.

    Raises:
      InputError: when an adapter is damaged or of another base, two have the same task, or one
        changes the base (full and top-k tuning), or something else is at `output`.
    """
    output = storage.path_of(output)
    SavedModelDir(output).require_replaceable()
    SavedModelDir(output).require_not_a_result()
    groups: dict[tuple[str, ...], dict[str, SavedAdapter]] = {}
    tasks, base = _load(folders, base)
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
            signatures[name] = kind.serve_texts(run, saved.config, pieces)
            if answer := kind.ragged_answer(signatures[name]):
                module.answers[name] = answer
    mixed = [bank for bank in banks if all(map(mixes_as, bank.configs.values()))]
    if mixed:
        signatures[ALL] = all_tasks(mixed, pieces)
    write(output, module, signatures)
    return list(signatures)


def _load(folders: Sequence[str], base: Base) -> tuple[dict[str, SavedAdapter], Base]:
    """Dict from signature name to `SavedAdapter`, and their base."""
    tasks: dict[str, SavedAdapter] = {}
    for folder in folders:
        other_name, path = parse_named_folder(folder)
        saved = load_adapter(path)
        require_one_task(saved.config, path)
        if other_name:
            config = contents.named(saved.config, other_name)
            saved = dataclasses.replace(saved, config=config)
        base = base if tasks else base.for_adapter(saved.config["base"])
        check_base(saved.config, base.fingerprint())
        task_name = contents.name_of(saved.config)
        name = signature_name(task_name)
        if name in tasks or name in (ALL, "") or name.startswith("__"):
            raise InputError(
                f"Each task needs its own name, other than {ALL!r}, that does not begin with two "
                f"underscores. Received: {task_name!r} in {folder}"
            )
        if contents.tuning_of(saved.config).changes_base:
            command = type_of(saved.config).command.format(task=saved.config["task"])
            raise Conflict(
                f"{folder} changes the base ({saved.config['method']}), and can only be exported "
                f"alone: {command} --adapter_dir={path} --do_export."
            )
        tasks[name] = saved
    return tasks, base


def signature_name(task: str) -> str:
    """The name of a task's signature: `_` replaces what a signature's name cannot hold."""
    return re.sub(r"\W", "_", task)


class Served:
    """Tasks that one pass computes.

    `run_rows` maps encoder inputs and int32 `[batch]`, each row's index in `configs`, to logits
    `[batch, labels]`.
    """

    labels: int  # The most outputs of a task.
    run_rows: Callable[..., tf.Tensor]
    configs: dict[str, Any]  # Of each task's adapter, by name.


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


def all_tasks(banks, pieces):
    """The signature that takes a task's name with each row.

    It returns `label` and `classes`, strings, `probabilities` and `logits`, `[batch, most labels]`;
    a task with fewer has "" there, 0 and `NO_LABEL`. `score` is the output of a task of scores, 0
    for others, and `label` is "" for such a task. All numbers are finite, as JSON needs it.
    """
    return text_signature(("task", "text_a", "text_b"), Table(banks, pieces).answer)


def mixes_as(config):
    """How a task is answered among others in one batch: as classes, as a score, or not (None)."""
    kind = type_of(config)
    return kind.mixes_as if isinstance(kind, TableType) else None


class Table:
    """The tasks of all banks, `Served`, that one batch may hold, in one list."""

    def __init__(self, banks, pieces):
        self.banks, self.pieces = banks, pieces
        configs = [config for bank in banks for config in bank.configs.values()]
        self.names = [contents.name_of(config) for config in configs]
        self.bank_of = [i for i, bank in enumerate(banks) for _ in bank.configs]
        self.place_of = [place for bank in banks for place in range(len(bank.configs))]
        self.width = max(bank.labels for bank in banks)
        labels = [config["labels"] for config in configs]
        self.classes = [names + [""] * (self.width - len(names)) for names in labels]
        self.is_score = [mixes_as(config) == "score" for config in configs]
        # How a row's texts become pieces: every length that occurs, with one text or two.
        inputs = [config["inputs"] for config in configs]
        ways = [(values["texts"], values["max_seq_length"]) for values in inputs]
        self.ways = sorted(set(ways))
        self.way_of = [self.ways.index(way) for way in ways]

    def answer(self, task, text_a, text_b):
        """See `all_tasks`."""
        task, text_a, text_b = require_equal_lengths([task, text_a, text_b])
        which = self._find(task)
        logits = self._logits(self._inputs(which, text_a, text_b), which)
        logits = tf.maximum(logits, NO_LABEL)
        classes = tf.gather(tf.constant(self.classes), which)
        is_score = tf.gather(tf.constant(self.is_score), which)
        best = tf.argmax(logits, -1, tf.int32)
        return {
            "label": tf.gather(classes, best, batch_dims=1),
            "classes": classes,
            "logits": logits,
            "probabilities": tf.where(is_score[:, tf.newaxis], 0.0, tf.nn.softmax(logits)),
            "score": tf.where(is_score, logits[:, 0], 0.0),
        }

    def _find(self, task):
        """int32 `[batch]`, places in `names`. Fails, with the known names, for another one."""
        matches = tf.equal(task[:, tf.newaxis], tf.constant(self.names))
        known = tf.reduce_all(tf.reduce_any(matches, -1))
        names = printable(", ".join(self.names))
        message = ["Unknown task. Known:", names, "Received:", task]
        with tf.control_dependencies([tf.debugging.Assert(known, message)]):
            return tf.argmax(matches, -1, tf.int32)

    def _inputs(self, which, text_a, text_b):
        """Encoder inputs, each row made as its task makes them."""
        made = [self.pieces(length, *(text_a, text_b)[:number]) for number, length in self.ways]
        batch = tf.shape(which)[0]
        rows = tf.gather(tf.constant(self.way_of), which) * batch + tf.range(batch)
        ids, types = (tf.gather(tf.concat(parts, 0), rows) for parts in zip(*made, strict=True))
        return pad_inputs(ids, types)

    def _logits(self, inputs, which):
        """float32 `[batch, width]`: each bank computes its own rows."""
        bank_of, place_of = tf.constant(self.bank_of), tf.constant(self.place_of)
        rows, parts = [], []
        for number, bank in enumerate(self.banks):
            own = tf.where(tf.gather(bank_of, which) == number)[:, 0]
            own_inputs = {name: tf.gather(value, own) for name, value in inputs.items()}
            logits = bank.run_rows(own_inputs, tf.gather(place_of, tf.gather(which, own)))
            padding = [[0, 0], [0, self.width - bank.labels]]
            parts.append(tf.pad(logits, padding, constant_values=float("-inf")))
            rows.append(own)
        return tf.gather(tf.concat(parts, 0), tf.argsort(tf.concat(rows, 0)))
