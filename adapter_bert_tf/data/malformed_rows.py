"""Rows with too few cells or too many: refused by line, or left out and counted."""

from collections.abc import Mapping, Sequence

from absl import logging

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import format_lines, preview, truncate
from adapter_bert_tf.tasks.task import Source

Place = tuple[str, int]  # Path and line.
Rows = list[tuple[Place, list[str]]]
SHORT, LONG = "too few cells", "too many cells"


def whole_rows(
    source: Source, header: Sequence[str] | None, rows: Rows, width: int, every_row: bool
) -> tuple[Rows, dict[str, list[Place]]]:
    """The rows that have the cells they should, and the places of the others by what is wrong.

    Args:
      source: which says whether others are skipped.
      header: cells, or None; where the source is strict a row has no more than it.
      rows: pairs of place and cells.
      width: the fewest cells.
      every_row: whether a skipped row stays, as one without texts: a test file is answered row by
        row.

    Raises:
      InputError: for a row that may not be skipped, with the numbers of all such lines.
    """
    most = len(header) if source.strict and header else None
    kept: Rows = []
    ragged: dict[str, list[Place]] = {}
    first = None
    for place, cells in rows:
        fault = SHORT if len(cells) < width else LONG if most and len(cells) > most else None
        if fault is None:
            kept.append((place, cells))
            continue
        first = first or (place, cells, fault)
        ragged.setdefault(fault, []).append(place)
        if every_row:
            kept.append((place, [""] * width))
    if first and not source.skip_bad_rows:
        what = _refusal(source, header, width, first, ragged)
        if not source.strict:  # A publisher's file, which no flag describes.
            raise InputError(what)
        raise InputError(
            f"{what} Mend this, or say skip_bad_rows=True to leave such rows out.",
            "skip_bad_rows=True",
        )
    if ragged and every_row:
        places = _all_places(ragged)
        logging.warning(
            "%s: %d of %d rows are answered as if they had no text: %s (%s).",
            *(source.file, len(places), len(rows), " or ".join(ragged), _lines(places)),
        )
    return kept, {} if every_row else ragged


def say_left_out(file: str, left_out: Mapping[str, Sequence[Place]], count: int) -> None:
    """Warns of the rows of a file that were left out, by reason."""
    for reason, places in left_out.items():
        logging.warning(
            "%s: left out %d of %d rows: %s (%s).",
            *(file, len(places), count, reason, _lines(places)),
        )


def _refusal(source, header, width, first, ragged):
    (path, line), cells, fault = first
    what = (
        f"expected at least {width} columns, separated by {source.delimiter!r}. Received "
        f"{len(cells)}: {truncate(preview(source.delimiter.join(cells)), 100)}"
        if fault == SHORT
        else f"{len(cells)} cells under a header of {len(header)}. Is a {source.delimiter!r} in a "
        "text not quoted?"
    )
    places = _all_places(ragged)
    more = f" {len(places)} rows are so: {_lines(places)}." if len(places) > 1 else ""
    return f"{path}, line {line}: {what}{more}"


def _lines(places):
    return format_lines([line for _, line in places])


def _all_places(ragged):
    return sorted(place for found in ragged.values() for place in found)
