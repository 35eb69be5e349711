"""Labels as the cells of a table hold them, and the order of their ids."""

import collections
import re
from collections.abc import Collection, Iterable, Sequence

from absl import logging

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview

MOST_COUNTED = 4  # Labels in one line of a report.


class LabelCells:
    """How the cells of a label column are read; here each cell is one label."""

    several = False  # Whether a cell may hold several labels.
    may_be_empty = False  # Whether an empty cell is a known label; otherwise its row is left out.
    stratified = True  # Whether folds have equal shares of every cell's text.

    def labels_in(self, cell: str) -> tuple[str, ...]:
        """Label strings in a cell; none where cells hold numbers."""
        return (cell,)

    def stratum(self, cell: str) -> str:
        """Rows of one stratum keep their share in a subset of the examples."""
        return cell

    def looks_like_a_label(self, cell: str, others: Collection[str]) -> bool:
        """Whether a header's cell is a label of the column, so that the header is missing."""
        return cell in others

    def summary(self, cells: Sequence[str]) -> str:
        """Labels and how often each occurs, for a line of the data report."""
        label_sets = [self.labels_in(cell) for cell in cells]
        counts = collections.Counter(label for labels in label_sets for label in labels)
        text = ", ".join(f"{label} {count:,}" for label, count in counts.most_common(MOST_COUNTED))
        if len(counts) > MOST_COUNTED:
            text += f" and {len(counts) - MOST_COUNTED} more"
        without = sum(not labels for labels in label_sets)
        return text + (f", {without:,} without any" if without else "")


ONE_LABEL = LabelCells()


def infer_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Sorted distinct label strings; numbers in numeric order."""
    distinct = sorted(set(labels))
    _warn_of_twins(distinct)
    if all(re.fullmatch("-?[0-9]{1,18}", label) for label in distinct):
        return tuple(sorted(distinct, key=int))
    return tuple(distinct)


def require_one_line(labels: Iterable[str], places: Iterable[tuple[str, int]]) -> None:
    """Raises `InputError`, with its file and line, for a label with a tab or a line end."""
    for label, (path, line) in zip(labels, places, strict=True):
        if "\n" in label or "\t" in label:
            raise InputError(
                f"{path}, line {line}: a label must not hold a tab or a line end. Received: "
                f"{preview(label)}"
            )


def _warn_of_twins(labels: Iterable[str]) -> None:
    """Warns of labels that differ only in case or spaces: they are most likely one."""
    by_text: dict[str, list[str]] = {}
    for label in labels:
        by_text.setdefault("".join(label.split()).casefold(), []).append(label)
    for twins in by_text.values():
        if len(twins) > 1:
            names = " and ".join(repr(label[:80]) for label in twins[:5])
            logging.warning(
                f"{names} are different labels, though they differ only in case or spaces. If "
                "they are one, write them alike."
            )
