"""The data report before training: sizes, labels, and warnings of what is odd."""

import collections

from absl import logging

from adapter_bert_tf.data.labels import ONE_LABEL
from adapter_bert_tf.tasks import role

WORTH_A_WARNING = 0.05  # Of the word pieces or inputs.
FEW_LABELS = 10  # Each of which a development set should have.


def report(task, examples, features, called=None, cells=ONE_LABEL):
    """Formats the table of splits: examples, lengths, how many are cut, labels."""
    rows = [split_row(split, examples[split], part, cells) for split, part in features.items()]
    return format_report(called or task.title, rows)


def split_row(split, examples, features, cells=ONE_LABEL):
    """Returns the row of a split in `format_report`."""
    labels = [cell for cell in examples.labels or () if cell is not None]
    summary = "none" if examples.labels is None else cells.summary(labels)
    lengths = features.lengths
    return split, len(features), lengths.mean(), lengths.max(), features.cut.mean(), summary


def format_report(title, rows):
    """Formats rows of split, examples, mean and longest length, share that is cut, labels."""
    lines = [f"  {'split':<16}{'examples':>10}{'pieces':>8}{'longest':>9}{'cut':>8}  labels"]
    for split, count, mean, longest, cut, summary in rows:
        lines.append(f"  {split:<16}{count:>10,}{mean:>8.0f}{longest:>9}{cut:>8.1%}  {summary}")
    return "\n".join([f"What {title} holds:", *lines])


def warn(examples, features, encoder, cells=ONE_LABEL):
    """Logs a warning for each thing that is odd about the data."""
    known_texts = set(examples["train"].texts()) if "train" in examples else set()
    for split, part in examples.items():
        texts = part.texts()
        empty = [i for i, row in enumerate(texts) if not all(text.strip() for text in row)]
        _warn_of_examples(split, part, empty, "have an empty text")
        ambiguous = _with_several_labels(part, texts, cells)
        _warn_of_examples(split, part, ambiguous, "have the text of another one with another label")
        unknown, cut = encoder.unknown_share(features[split].ids), features[split].cut.mean()
        warn_of_shares(split, unknown, cut, encoder)
        if role(split) in ("dev", "test"):
            seen = [i for i, row in enumerate(texts) if row in known_texts]
            _warn_of_examples(split, part, seen, "are in the training data too")
    warn_of_missing_labels(examples, cells)


def warn_of_shares(split, unknown, cut, encoder):
    """Logs a warning of many [UNK] among the word pieces, and of many inputs that are cut."""
    if unknown > WORTH_A_WARNING:
        logging.warning(
            f"{unknown:.0%} of the word pieces of {split} are [UNK]: does the vocabulary fit "
            "the text?"
        )
    if cut > WORTH_A_WARNING:
        logging.warning(
            f"{cut:.0%} of the inputs of {split} are longer than {encoder.max_seq_length} word "
            "pieces (max_seq_length), and cut."
        )


def _with_several_labels(examples, texts, cells):
    """Returns the numbers of examples whose text occurs with different labels."""
    labels_of = collections.defaultdict(set)
    for text, cell in zip(texts, examples.labels or (), strict=False):
        if cell is not None:
            labels_of[text].add(frozenset(cells.labels_in(cell)))
    return [i for i, text in enumerate(texts) if len(labels_of.get(text, ())) > 1]


def _warn_of_examples(split, examples, numbers, fault):
    if numbers:
        path, line = examples.places[numbers[0]]
        logging.warning(
            f"{len(numbers)} of {len(examples)} examples of {split} {fault}; the first is in "
            f"{path}, line {line}."
        )


def warn_of_missing_labels(examples, cells):
    """Warns of labels without a development example: metrics say little about them."""
    labels = {}
    for split, part in examples.items():
        known_cells = [cell for cell in part.labels or () if cell is not None]
        labels[split] = {label for cell in known_cells for label in cells.labels_in(cell)}
    if not 2 <= len(labels.get("train", ())) <= FEW_LABELS:
        return
    for split in (split for split in labels if role(split) == "dev"):
        if missing := sorted(labels["train"] - labels[split]):
            names = ", ".join(label[:40] for label in missing[:5])
            logging.warning(f"{split} has no example of {names}.")
