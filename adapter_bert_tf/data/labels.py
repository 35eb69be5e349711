"""Labels as the cells of a table hold them, and the order of their ids."""

import collections
import decimal
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from absl import logging

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview

WHOLE = re.compile("-?[0-9]{1,18}")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
LONGEST_NUMBER = 40  # Characters.
MOST_COUNTED = 4  # Labels in one line of a report.


class LabelCells:
    """How the cells of a label column are read; here each cell is one label."""

    several = False  # Whether a cell may hold several labels.
    may_be_empty = False  # Whether an empty cell is a known label; otherwise its row is left out.
    stratified = True  # Whether folds have equal shares of every cell's text.

    def labels_in(self, cell: str) -> tuple[str, ...]:
        """Label strings in a cell; none where cells hold numbers."""
        return (cell,)

    def renamed(self, cell: str, rename: Callable[[str], str]) -> str:
        """A cell with other names of its labels."""
        return rename(cell)

    def stratum(self, cell: str) -> str:
        """Rows of one stratum keep their share in a subset of the examples."""
        return cell

    def looks_like_a_label(self, cell: str, others: Collection[str]) -> bool:
        """Whether a header's cell is a label of the column, so that the header is missing."""
        return cell in others

    def summary(self, cells: Sequence[str]) -> str:
        """Labels and how often each occurs, for a line of the data report."""
        return self.summary_of_counts(collections.Counter(cells))

    def summary_of_counts(self, cells: Mapping[str, int]) -> str:
        """The same for the numbers of rows with each cell."""
        counts: collections.Counter[str] = collections.Counter()
        for cell, number in cells.items():
            counts.update(dict.fromkeys(self.labels_in(cell), number))
        text = ", ".join(f"{label} {count:,}" for label, count in counts.most_common(MOST_COUNTED))
        if len(counts) > MOST_COUNTED:
            text += f" and {len(counts) - MOST_COUNTED} more"
        without = sum(number for cell, number in cells.items() if not self.labels_in(cell))
        return text + (f", {without:,} without any" if without else "")


ONE_LABEL = LabelCells()


def infer_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Sorted distinct label strings; of numbers one for each value, in numeric order."""
    distinct = sorted(set(labels))
    _warn_of_twins(distinct)
    if numbers := _numbers(distinct):
        # The simplest spelling of each value: `1` of `1`, `1.0` and `01`.
        simplest = sorted(distinct, key=lambda label: (not WHOLE.fullmatch(label), len(label)))
        distinct = sorted({numbers[label]: label for label in reversed(simplest)}.values())
    if all(WHOLE.fullmatch(label) for label in distinct):
        return tuple(sorted(distinct, key=int))
    return tuple(distinct)


def find_label(text: str, labels: Collection[str]) -> str:
    """The label that a text stands for: itself, or where all labels are numbers the equal one."""
    if text in labels:
        return text
    numbers = _numbers((text, *labels))
    return next((label for label in labels if numbers and numbers[label] == numbers[text]), text)


def _numbers(labels: Iterable[str]) -> dict[str, decimal.Decimal]:
    """Dict from label to number, if all labels are numbers; else empty."""
    numbers = {}
    for label in labels:
        if len(label) > LONGEST_NUMBER or not NUMBER.fullmatch(label):
            return {}
        numbers[label] = decimal.Decimal(label)
    return numbers


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
