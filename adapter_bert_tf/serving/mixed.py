"""The signature `tasks`, which takes a task's name with each row."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from adapter_bert_tf.data.tokenization import require_equal_lengths
from adapter_bert_tf.heads.serving_texts import (
    Pieces,
    RowAnswers,
    Tensors,
    text_signature,
)
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.store import contents
from adapter_bert_tf.task_types import TaskType, type_of

ALL = "tasks"  # The name of the signature.


class Served:
    """Tasks that one pass computes.

    `run_rows` maps encoder inputs and int32 `[batch]`, each row's index in `configs`, to logits
    `[batch, labels]` or `[batch, seq, labels]`.
    """

    labels: int  # The most outputs of a task.
    run_rows: Callable[..., tf.Tensor]
    configs: dict[str, Any]  # Of each task's adapter, by name.

    @property
    def kind(self) -> TaskType:
        """The type of the tasks; those of others in it compute their outputs alike."""
        return type_of(next(iter(self.configs.values())))

    @property
    def mixes(self) -> bool:
        """Whether the signature `tasks` may have its tasks."""
        return all(type_of(config).mixes for config in self.configs.values())


def all_tasks(banks: Sequence[Served], pieces: Pieces) -> tuple[Any, Any]:
    """The signature that takes a task's name with each row, and a function for ragged answers.

    It returns the outputs of all types of its tasks (`ClassRows`, `TagRows`), each empty or 0 for
    the rows of others. The function is None where no answer is ragged.
    """
    table = MixedTasks(banks, pieces)
    names = ("task", *table.text_names)
    signature = text_signature(names, table.answer)
    ragged = (kind.ragged_answer(signature, names) for kind in table.kinds)
    return signature, next(filter(None, ragged), None)


class BankRows:
    """The logits of rows whose tasks are in several banks; each computes its own rows."""

    def __init__(self, banks: Sequence[Served]) -> None:
        self.banks = banks
        self.bank_of = [i for i, bank in enumerate(banks) for _ in bank.configs]
        self.place_of = [place for bank in banks for place in range(len(bank.configs))]
        self.width = max(bank.labels for bank in banks)

    def __call__(self, inputs: Tensors, which: tf.Tensor) -> tf.Tensor:
        """float32 `[batch, width]` or `[batch, seq, width]`; minus infinity beyond own labels."""
        bank_of, place_of = tf.constant(self.bank_of), tf.constant(self.place_of)
        rows, parts = [], []
        for number, bank in enumerate(self.banks):
            own = tf.where(tf.gather(bank_of, which) == number)[:, 0]
            own_inputs = {name: tf.gather(value, own) for name, value in inputs.items()}
            logits = bank.run_rows(own_inputs, tf.gather(place_of, tf.gather(which, own)))
            padding = [*[[0, 0]] * (len(logits.shape) - 1), [0, self.width - bank.labels]]
            parts.append(tf.pad(logits, padding, constant_values=float("-inf")))
            rows.append(own)
        return tf.gather(tf.concat(parts, 0), tf.argsort(tf.concat(rows, 0)))


class MixedTasks:
    """The tasks of all banks in one list; those whose types compute alike are one part."""

    def __init__(self, banks: Sequence[Served], pieces: Pieces) -> None:
        by_type: dict[Any, list[Served]] = {}
        for bank in banks:
            by_type.setdefault(bank.kind.logits, []).append(bank)
        groups = list(by_type.values())
        self.kinds = [group[0].kind for group in groups]
        self.names: list[str] = []
        self.part_of: list[int] = []  # In `parts`, of each task.
        self.place_of: list[int] = []  # Among the tasks of its part.
        self.parts: list[RowAnswers] = []
        for number, (kind, group) in enumerate(zip(self.kinds, groups, strict=True)):
            configs = [config for bank in group for config in bank.configs.values()]
            self.names += [contents.name_of(config) for config in configs]
            self.part_of += [number] * len(configs)
            self.place_of += range(len(configs))
            self.parts.append(kind.serve_rows(BankRows(group), configs, pieces))
        self.text_names = max((kind.text_names for kind in self.kinds), key=len)

    def answer(self, task: tf.Tensor, *texts: tf.Tensor) -> Tensors:
        """See `all_tasks`."""
        task, *equal = require_equal_lengths([task, *texts])
        which = self._find(task)
        if len(self.parts) == 1:
            return self.parts[0](which, *equal)
        answer: Tensors = {}
        for number, (kind, part) in enumerate(zip(self.kinds, self.parts, strict=True)):
            rows = tf.where(tf.gather(tf.constant(self.part_of), which) == number)[:, 0]
            places = tf.gather(tf.constant(self.place_of), tf.gather(which, rows))
            own = [tf.gather(text, rows) for text in equal[: len(kind.text_names)]]
            answer |= part.spread(part(places, *own), rows, tf.size(task))
        return answer

    def _find(self, task: tf.Tensor) -> tf.Tensor:
        """int32 `[batch]`, places in `names`. Fails, with the known names, for another one."""
        matches = tf.equal(task[:, tf.newaxis], tf.constant(self.names))
        known = tf.reduce_all(tf.reduce_any(matches, -1))
        names = printable(", ".join(self.names))
        message = ["Unknown task. Known:", names, "Received:", task]
        with tf.control_dependencies([tf.debugging.Assert(known, message)]):
            return tf.argmax(matches, -1, tf.int32)
