"""From settings to the data of a task whose training rows are on the disk."""

import collections
import dataclasses
import functools
import os
import time

from absl import logging

from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data import checks
from adapter_bert_tf.data.batches import tokenize
from adapter_bert_tf.data.examples import Examples, read_examples
from adapter_bert_tf.data.file_sets import digest
from adapter_bert_tf.data.on_disk import dev_rows
from adapter_bert_tf.data.on_disk.dev_rows import DevRows
from adapter_bert_tf.data.on_disk.stored_table import Facts, StoredTable, cached_table
from adapter_bert_tf.data.on_disk.table_pass import TablePass
from adapter_bert_tf.data.tables.files import require_file
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.runners.classification.chosen_task import data_folder
from adapter_bert_tf.runners.classification.reading import (
    adapter_name,
    warn_of_files,
    warn_of_split_seed,
    with_labels,
)
from adapter_bert_tf.runners.classification.task_data import ClassificationData, StoredRows
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.task_types import TableType, table_type
from adapter_bert_tf.task_types.table_type import choose_metrics
from adapter_bert_tf.tasks import Task
from adapter_bert_tf.training.progress import RowProgress


def read_stored(
    config: RunConfig,
    task: Task,
    encoder: TextEncoder,
    vocabulary: Vocabulary,
    saved: SavedAdapter | None = None,
) -> ClassificationData:
    """Reads, checks and tokenizes the data of a run as `read_task` does, the training rows once.

    They are not in memory. A development set without a file is drawn from them by a hash of
    `--split_seed` and the texts. Raises `InputError`.
    """
    actions, task_type = config.actions, table_type(task.task_type)
    others = _other_splits(config, task, task_type, task.is_divided())
    table = _stored_table(config, task, encoder, vocabulary)
    drawn, examples = table.facts.dev_examples(), {"train": table.facts.label_examples()}
    if drawn is not None and actions.do_eval:
        examples["dev"] = drawn
    task, examples = with_labels(config, task, examples | others, saved, drawn is not None)
    metrics = choose_metrics(config.evaluation.metric, task, task_type)
    task = dataclasses.replace(task, metrics=metrics)
    labels = {
        split: None if part.labels is None else task_type.encode(task, part)
        for split, part in examples.items()
    }
    cells, encoded = examples.pop("train"), labels.pop("train")
    assert encoded is not None
    if actions.do_train:
        task_type.check_training(task, encoded)
    features = {split: tokenize(part, encoder, labels[split]) for split, part in examples.items()}
    data = ClassificationData(
        task,
        examples,
        labels,
        features,
        config.data.split_seed if task.is_divided() else None,
        config.data.max_seq_length,
        adapter_name=adapter_name(config),
        stored=StoredRows(table, encoded) if actions.do_train else None,
    )
    _report(data, table, cells, encoder)
    if not task.is_divided():
        warn_of_split_seed(config)
    return data


def _stored_table(
    config: RunConfig,
    task: Task,
    encoder: TextEncoder,
    vocabulary: Vocabulary,
) -> StoredTable:
    """The rows to train on, from the cache or by a pass over the files; prints where they are."""
    folder, source = data_folder(config, task), task.layouts[0]["train"]
    share = task.dev_share
    task_type = table_type(task.task_type)
    key = {
        "files": digest(source.files or (require_file(source, folder),)),
        "source": repr(dataclasses.replace(source, file="", files=())),
        "type": task_type.name,
        "dev": share and [share, config.data.split_seed, dev_rows.MOST],
        "vocabulary": vocabulary.sha256,
        "lower_case": vocabulary.lower_case,
        "tokenizer": vocabulary.tokenizer.differences(),
        "length": encoder.max_seq_length,
    }
    progress = RowProgress("train rows")
    one_pass = TablePass(
        task,
        source,
        folder,
        task_type,
        functools.partial(task_type.encode, task) if task_type.is_score else None,
        encoder,
        DevRows(share, config.data.split_seed) if share else None,
        progress.add,
    )
    features = config.questions.features_dir or ""
    table = cached_table(features, key, len(vocabulary), one_pass.write)
    seconds = time.monotonic() - progress.start
    made = f"read in {seconds:.0f} s" if progress.done else "from an earlier run"
    where = os.path.dirname(table.index_path)
    print(printable(f"{len(table):,} training rows, {made}: {where}, {table.size / 1e6:,.1f} MB"))
    return table


def _other_splits(
    config: RunConfig, task: Task, task_type: TableType, is_drawn: bool
) -> dict[str, Examples]:
    """Reads the splits that are in memory, and warns of what looks wrong about the files."""
    actions, folder = config.actions, data_folder(config, task)
    roles = {"train": True, "dev": actions.do_eval, "test": actions.do_predict}
    warn_of_files(config, task, folder, [role for role in roles if roles[role]])
    roles = {"dev": actions.do_eval and not is_drawn, "test": actions.do_predict}
    undivided = dataclasses.replace(task, dev_share=None)
    needed = [role for role in roles if roles[role]]
    splits: dict[str, Examples] = {}
    if needed:
        splits = read_examples(undivided, folder, needed, cells=task_type)
    return splits


def _report(
    data: ClassificationData, table: StoredTable, cells: Examples, encoder: TextEncoder
) -> None:
    """Prints what the data holds, and warns of what is odd about it."""
    facts, task_type = table.facts, data.task_type
    rows = [
        checks.split_row(split, data.examples[split], part, task_type)
        for split, part in data.features.items()
    ]
    if data.stored:
        mean, cut = facts.pieces / facts.count, facts.cut / facts.count
        labels = _summary(facts, task_type, cells)
        rows.insert(0, ("train", facts.count, mean, facts.longest, cut, labels))
    print(checks.format_report(data.adapter_name or data.task.title, rows), flush=True)
    for sentence in facts.warnings if data.stored else ():
        logging.warning("%s", sentence)
    if data.stored:
        checks.warn_of_shares("train", facts.unknown / facts.pieces, cut, encoder)
    checks.warn(data.examples, data.features, encoder, task_type)
    if data.stored:
        checks.warn_of_missing_labels({"train": cells, **data.examples}, task_type)


def _summary(facts: Facts, task_type: TableType, cells: Examples) -> str:
    """Labels and how often each occurs, or the range of scores."""
    if facts.scores:
        scores = facts.scores
        return f"{scores.lowest:g} to {scores.highest:g}, mean {scores.mean:g}"
    counts: collections.Counter[str] = collections.Counter()
    for cell, count in zip(cells.labels or (), facts.label_counts, strict=True):
        counts[str(cell)] += count
    return task_type.summary_of_counts(counts)
