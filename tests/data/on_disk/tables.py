"""Tables of random words, in memory and on the disk."""

import dataclasses
import functools

import numpy as np

from adapter_bert_tf.data.batches import tokenize
from adapter_bert_tf.data.examples import read_source
from adapter_bert_tf.data.on_disk.batches import TrainingRows
from adapter_bert_tf.data.on_disk.stored_table import cached_table
from adapter_bert_tf.data.on_disk.table_pass import TablePass
from adapter_bert_tf.task_types import table_type
from adapter_bert_tf.tasks import own_task
from tests.runs import sentence

LABELS = {
    "classification": lambda i: ("no", "yes", "perhaps")[i % 3],
    "multi_label": lambda i: ("", "a", "b|a")[i % 3],
    "regression": lambda i: f"{i % 7 - 2.5}",
}


def write(folder, rows=40, kind="classification", pairs=True, first=0):
    """Writes `train.tsv` in a folder, and returns its task."""
    rng = np.random.default_rng(first)
    names = ["a", "b", "label"] if pairs else ["a", "label"]
    lines = ["\t".join(names)]
    for i in range(first, first + rows):
        texts = [f"{sentence(rng)} {'red ' * (i % 5)}".strip() for _ in names[1:]]
        lines.append("\t".join([*texts, LABELS[kind](i)]))
    (folder / "train.tsv").write_text("\n".join(lines) + "\n")
    return own_task("a", "b" if pairs else None, "label", task_type=kind)


def in_memory(folder, task, encoder):
    """`Features` of the training rows, and the task with its labels."""
    kind = table_type(task.task_type)
    examples = read_source(task, task.layouts[0]["train"], str(folder), kind)
    cells = [label for cell in examples.labels for label in kind.labels_in(cell)]
    task = dataclasses.replace(task, labels=tuple(dict.fromkeys(cells)))
    return tokenize(examples, encoder, kind.encode(task, examples)), task


def stored(folder, task, encoder, cache, dev=None, key=()):
    """The `StoredTable` of the training rows."""
    kind = table_type(task.task_type)
    scores = functools.partial(kind.encode, task) if kind.is_score else None
    source = task.layouts[0]["train"]
    run = TablePass(task, source, str(folder), kind, scores, encoder, dev, lambda *_: None)
    return cached_table(str(cache), {"key": key}, len(encoder.pieces), run.write)


def training_rows(table, task):
    """`TrainingRows` with the labels of a task."""
    if table.facts.scores:
        return TrainingRows(table, lambda bits: bits.view("<f4"))
    encoded = table_type(task.task_type).encode(task, table.facts.label_examples())
    return TrainingRows(table, lambda numbers: encoded[numbers])


def counted(batches):
    """Rows of batches as a sorted list of word ids, types and label, without padding."""
    rows = []
    for inputs, labels in batches:
        arrays = [inputs[f"input_{name}"].numpy() for name in ("word_ids", "type_ids", "mask")]
        for ids, types, mask, label in zip(*arrays, labels.numpy(), strict=True):
            size = mask.sum()
            assert mask[:size].all() and not ids[size:].any() and not types[size:].any()
            rows.append((ids[:size].tolist(), types[:size].tolist(), np.ravel(label).tolist()))
    return sorted(rows)
