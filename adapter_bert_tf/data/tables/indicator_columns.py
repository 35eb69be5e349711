"""Several labels of a row: columns of 0 and 1, lists, and lists of 0 and 1 that are not labels."""

from collections.abc import Sequence, Set
from typing import Any

from adapter_bert_tf.data.tables.columns import column_number
from adapter_bert_tf.data.tables.malformed_rows import RowFindings, Rows
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.tasks.task import BETWEEN_LABELS, Source

HAS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False, "": False}
# Part of errors about what `is_indicators` finds, and about arrays of numbers.
INDICATORS = "Several labels are a list of those that apply, not a number for each label."
HIDDEN = "-1"  # In every column: the labels of the row are not known.


def is_indicators(value: Any) -> bool:
    """Whether a value is a list of 0 and 1, one of them repeated: a number for each label."""
    if not isinstance(value, list):
        return False
    values = [str(number).lower() for number in value]
    return len(set(values)) < len(values) and set(values) <= HAS.keys() - {""}


def problem_of_labels(value: Any) -> str | None:
    """Why a list is not the labels of a row, as a sentence; None for one that may be."""
    if is_indicators(value):
        return INDICATORS
    if isinstance(value, list) and any(BETWEEN_LABELS in str(label) for label in value):
        return f"A label of several must not hold {BETWEEN_LABELS!r}."
    return None


def is_several(value: Any) -> bool:
    """Whether a value is a list, set or array of labels. Raises `InputError` for numbers."""
    is_array = bool(getattr(value, "ndim", 0))
    if is_array and value.dtype.kind in "biuf":
        raise InputError(f"{INDICATORS} Received: {preview(value)}")
    return isinstance(value, list | tuple | Set) or is_array


def join_columns(
    source: Source, header: list[str] | None, rows: Rows, findings: RowFindings
) -> tuple[list[str] | None, Rows]:
    """The table with one more column, named by the setting `a,b,c`, that holds all labels of a row.

    Other tables are returned as they are: those with a column of this very name, and test files
    without these columns. Raises `InputError` for a column that is missing, or a cell that is
    neither 0 nor 1.
    """
    setting = str(source.columns.label)
    if header is None or "," not in setting or setting in header:
        return header, rows
    parts = [part.strip() for part in setting.split(",")]
    names = [name.strip() for name in header]
    if source.optional_label and not set(parts) <= set(names):
        return header, rows
    numbers = [column_number(part, names, f"{source.file}, line 1") for part in parts]
    labels = [names[number] for number in numbers]
    if wrong := [label for label in labels if not label or BETWEEN_LABELS in label]:
        raise InputError(
            f"{source.file}: the name of a label must not be empty or hold {BETWEEN_LABELS!r}. "
            f"Received: {preview(wrong[0])}"
        )
    joined: Rows = []
    for place, cells in rows:
        is_short = len(cells) <= max(numbers)  # `skip_malformed` handles such rows.
        more = [] if is_short else [_labels([cells[i] for i in numbers], labels, place)]
        joined.append((place, [*cells, *more]))
    if joined:
        findings.label_columns = labels
        findings.labels_used.update(
            label for _, cells in joined for label in cells[-1].split(BETWEEN_LABELS)
        )
    return [*header, setting], joined


def _labels(cells: Sequence[str], labels: Sequence[str], place: tuple[str, int]) -> str:
    values = [cell.strip().lower() for cell in cells]
    if set(values) <= {HIDDEN, f"{HIDDEN}.0"}:
        return HIDDEN
    if wrong := [i for i, value in enumerate(values) if value not in HAS]:
        path, line = place
        raise InputError(
            f"{path}, line {line}: the column of a label holds 0 or 1. Received in "
            f"{preview(labels[wrong[0]])}: {preview(cells[wrong[0]])}"
        )
    return BETWEEN_LABELS.join(
        label for label, value in zip(labels, values, strict=True) if HAS[value]
    )
