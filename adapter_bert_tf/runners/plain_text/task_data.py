"""From settings to packed sequences of plain text."""

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.base.vocabulary import Vocabulary
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.checks import WORTH_A_WARNING
from adapter_bert_tf.data.file_sets import digest
from adapter_bert_tf.data.plain_text.batches import Sequences, spread
from adapter_bert_tf.data.plain_text.files import Unit, read_texts
from adapter_bert_tf.data.plain_text.masking import Masking, masking_of
from adapter_bert_tf.data.plain_text.packed_file import PackedFile, cached_sequences
from adapter_bert_tf.data.plain_text.packing import Counts, pack
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.errors import InputError, Mismatch
from adapter_bert_tf.report_blocks import format_count
from adapter_bert_tf.runners.plain_text.files import (
    adapter_name,
    dev_files,
    text_files,
    uses_text_files,
)
from adapter_bert_tf.sanitize import preview, printable
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.contents import name_of
from adapter_bert_tf.task_types import type_of
from adapter_bert_tf.task_types.masked_words import MASKED_WORDS, MaskedWords
from adapter_bert_tf.training.progress import RowProgress

MOST_DEV = 2000  # Sequences of --dev_share.


@dataclasses.dataclass(frozen=True)
class PlainTextData:
    """Sequences to train on and to evaluate; see `TaskData`.

    Args:
      training: sequences to train on; None without training.
      dev_file: of the sequences to evaluate; None if there are none.
      dev_rows: int `[sequences]`, their numbers in it.
      masking: how pieces are masked.
      max_seq_length: of a sequence.
      adapter_name: of the text, for the adapter.
      metric_name: of the metric to choose by.
      digests: dict from split to the digest of its text.
      dev_share: of the text, that is the dev set; None with files for it.
    """

    training: Sequences | None
    dev_file: PackedFile | None
    dev_rows: np.ndarray
    masking: Masking
    max_seq_length: int
    adapter_name: str
    metric_name: str
    digests: Mapping[str, str]
    dev_share: float | None

    name: ClassVar[str] = MASKED_WORDS.name
    task_type: ClassVar[MaskedWords] = MASKED_WORDS
    labels_in_order: ClassVar[tuple[str, ...]] = ()

    @property
    def metric(self) -> str:
        """Key, in the results, of the metric to choose by."""
        return f"eval_{self.metric_name}"

    @property
    def count(self) -> int:
        """Number of training sequences."""
        return len(self.training) if self.training else 0

    def adapter_config(self) -> dict[str, Any]:
        """Returns the description of the task in a saved adapter."""
        return {
            "task": self.name,
            "labels": [],
            **MASKED_WORDS.file_fields(),
            "inputs": {"max_seq_length": self.max_seq_length},
            **({"name": self.adapter_name} if self.adapter_name != self.name else {}),
            **({} if self.dev_share is None else {"dev_share": self.dev_share}),
        }

    def with_dev_subset(self, most: int, seed: int) -> "PlainTextData":
        """Returns the data with at most `most` sequences to evaluate, at equal distances."""
        if most >= len(self.dev_rows):
            return self
        rows = self.dev_rows[spread(len(self.dev_rows), most)]
        return dataclasses.replace(self, dev_rows=rows)

    def record(self) -> dict[str, Any]:
        """Returns the description of the data in `run.json`."""
        examples = {"train": self.count, "dev": len(self.dev_rows)}
        return {
            "labels": [],
            "data_sha256": dict(self.digests),
            "examples": {split: count for split, count in examples.items() if count},
        }


def check_saved(saved: SavedAdapter) -> None:
    """Raises `InputError` if a saved adapter does not predict masked words."""
    task_type = type_of(saved.config)
    if task_type is not MASKED_WORDS:
        raise Mismatch(
            f"The saved adapter was trained for the task {preview(saved.config['task'])}. "
            f"Received: masked words. {task_type.command.split()[0]} applies it."
        )


def read(config: RunConfig, vocabulary: Vocabulary, saved: SavedAdapter | None) -> PlainTextData:
    """Packs the text of a run, and prints what it is. Raises `InputError` for wrong files."""
    encoder = TextEncoder(vocabulary, config.data.max_seq_length)
    plain_text, share = config.plain_text, config.table.dev_share
    masking = masking_of(
        vocabulary, encoder.mask_id(), plain_text.mask_share, plain_text.whole_word_masking
    )
    metric = _metric(config)
    texts = {"train": text_files(config) if uses_text_files(config) else []}
    texts["dev"] = dev_files(config) if config.actions.do_eval else []
    _warn_of_seen(texts)
    packed, digests = {}, {}
    for split, paths in texts.items():
        if paths:
            digests[split] = digest(paths)
            packed[split] = _packed(config, split, paths, digests[split], encoder, vocabulary)
    whole, dev_file = packed.get("train"), packed.get("dev")
    dev_rows = np.arange(dev_file.count if dev_file else 0)
    takes_share = not dev_file and config.actions.do_eval and share > 0
    if takes_share and whole:
        dev_file, dev_rows = whole, _shared_rows(whole, share)
        digests["dev"] = _digest([digests["train"], "share", share])
        digests["train"] = _digest([digests["train"], "without share", share])
    training = None
    if whole and config.actions.do_train:
        training = Sequences(whole, dev_rows if takes_share else np.zeros(0, np.int64))
    else:
        digests.pop("train", None)
    data = PlainTextData(
        training,
        dev_file,
        dev_rows,
        masking,
        config.data.max_seq_length,
        name_of(saved.config) if saved else adapter_name(config),
        metric,
        digests,
        share if takes_share else None,
    )
    print(printable(_summary(data, packed)), flush=True)
    return data


def _warn_of_seen(texts: Mapping[str, list[str]]) -> None:
    """Warns of files to evaluate on that are also trained on."""
    seen = {*map(storage.real, texts["train"])} & {*map(storage.real, texts["dev"])}
    if seen:
        logging.warning(
            "--dev_files has %s, which --text_files has too: the dev set was trained on.",
            preview(sorted(seen)),
        )


def _packed(
    config: RunConfig,
    split: str,
    paths: list[str],
    sha256: str,
    encoder: TextEncoder,
    vocabulary: Vocabulary,
) -> PackedFile:
    unit: Unit = config.plain_text.text_unit
    key = {
        "text": sha256,
        "unit": unit,
        "vocabulary": vocabulary.sha256,
        "lower_case": vocabulary.lower_case,
        "tokenizer": vocabulary.tokenizer.differences(),
    }
    progress = RowProgress(f"{split} sequences")

    def make(counts: Counts) -> Iterator[np.ndarray]:
        for rows in pack(read_texts(paths, unit), encoder, counts):
            progress.add(len(rows))
            yield rows

    length = config.data.max_seq_length
    folder = config.questions.features_dir or ""
    packed = cached_sequences(folder, key, len(vocabulary), length, make)
    unknown = packed.counts.unknown / max(packed.counts.pieces, 1)
    if unknown > WORTH_A_WARNING:
        logging.warning(
            "%.0f%% of the word pieces of the %s text are %s: the base's vocabulary does not fit.",
            *(100 * unknown, split, vocabulary.tokenizer.special.unknown),
        )
    return packed


def _shared_rows(whole: PackedFile, share: float) -> np.ndarray:
    """Numbers of the sequences that become the dev set. Raises `InputError` for too little text."""
    if whole.count < 2:
        raise InputError(
            f"The text makes {whole.count} sequence of {whole.length} word pieces, and two are "
            "needed: one to train on, one to evaluate. Give more text, a shorter --max_seq_length, "
            "or --dev_files."
        )
    chosen = min(max(round(share * whole.count), 1), MOST_DEV, whole.count - 1)
    return spread(whole.count, chosen)


def _metric(config: RunConfig) -> str:
    known, metric = MASKED_WORDS.metrics, config.evaluation.metric
    if metric not in (None, *known):
        raise InputError(
            f"--metric must be one of {list(known)} for masked words. Received: {preview(metric)}"
        )
    return metric or known[0]


def _digest(values: list[Any]) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()


def _summary(data: PlainTextData, packed: Mapping[str, PackedFile]) -> str:
    """One line about the texts and the splits."""
    parts = [
        f"{format_count(file.counts.texts, 'text')}, "
        f"{format_count(file.counts.pieces, 'word piece')}"
        for file in packed.values()
    ]
    counts = {"train": data.count, "dev": len(data.dev_rows)}
    splits = [f"{split}: {format_count(n, 'sequence')}" for split, n in counts.items() if n]
    length = f"of {data.max_seq_length}"
    return f"Text: {'; '.join(parts)}; packed to {', '.join(splits)}, {length}"
