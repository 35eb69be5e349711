"""What a practitioner wants to know of the data before training: sizes, labels, and what is odd."""

from absl import logging

from adapter_bert_tf.data.labels import ONE_LABEL
from adapter_bert_tf.tasks import role

WORTH_A_WARNING = 0.05  # Of the word pieces or inputs.
FEW_LABELS = 10  # Each of which a development set should have.


def report(task, examples, features, called=None, cells=ONE_LABEL):
    """Lines that say what was read: examples, lengths, how many are cut, labels."""
    lines = [f"  {'split':<16}{'examples':>10}{'pieces':>8}{'longest':>9}{'cut':>8}  labels"]
    for split, part in features.items():
        lines.append(
            f"  {split:<16}{len(part):>10,}{part.lengths.mean():>8.0f}{part.lengths.max():>9}"
            f"{part.cut.mean():>8.1%}  {_labels(examples[split], cells)}"
        )
    return "\n".join([f"What {called or task.title} holds:", *lines])


def _labels(examples, cells):
    if examples.labels is None:
        return "none"
    return cells.summary([cell for cell in examples.labels if cell is not None])


def warn(examples, features, encoder, cells=ONE_LABEL):
    """Logs a warning for each thing that is odd about the data."""
    for split, part in examples.items():
        _warn_of_empty_texts(split, part)
        unknown = encoder.unknown_share(features[split].ids)
        if unknown > WORTH_A_WARNING:
            logging.warning(
                "%.0f%% of the word pieces of %s are [UNK]: does the vocabulary fit the text?",
                100 * unknown,
                split,
            )
        cut = features[split].cut.mean()
        if cut > WORTH_A_WARNING:
            logging.warning(
                "%.0f%% of the inputs of %s are longer than %d word pieces (max_seq_length), "
                "and cut.",
                100 * cut,
                split,
                encoder.max_seq_length,
            )
    _warn_of_overlap(examples)
    _warn_of_missing_labels(examples, cells)


def _warn_of_empty_texts(split, examples):
    empty = [i for i, texts in enumerate(examples.texts()) if not all(t.strip() for t in texts)]
    if empty:
        path, line = examples.places[empty[0]]
        logging.warning(
            "%d of %d examples of %s have an empty text; the first is in %s, line %d.",
            len(empty),
            len(examples),
            split,
            path,
            line,
        )


def _warn_of_overlap(examples):
    if "train" not in examples:
        return
    known = set(examples["train"].texts())
    for split, part in examples.items():
        if role(split) in ("dev", "test"):
            seen = [i for i, texts in enumerate(part.texts()) if texts in known]
            if seen:
                path, line = part.places[seen[0]]
                logging.warning(
                    "%d of %d examples of %s are in the training data too; the first "
                    "is in %s, line %d.",
                    len(seen),
                    len(part),
                    split,
                    path,
                    line,
                )


def _warn_of_missing_labels(examples, cells):
    """A few development examples may all be of some classes; what they say then says little."""
    known = {name: _labels_there(part, cells) for name, part in examples.items()}
    if not 2 <= len(known.get("train", ())) <= FEW_LABELS:
        return
    for split in (name for name in known if role(name) == "dev"):
        if missing := sorted(known["train"] - known[split]):
            logging.warning(
                "%s has no example of %s.", split, ", ".join(label[:40] for label in missing[:5])
            )


def _labels_there(part, cells):
    known = [cell for cell in part.labels or () if cell is not None]
    return {label for cell in known for label in cells.labels_in(cell)}
