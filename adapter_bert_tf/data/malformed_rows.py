"""Rows with too few or too many cells: refused by line, or skipped and counted."""

from collections.abc import Mapping, Sequence

from absl import logging

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import format_lines, preview, truncate
from adapter_bert_tf.tasks.task import Source

Place = tuple[str, int]  # Path and line.
Rows = list[tuple[Place, list[str]]]
SHORT, LONG = "too few cells", "too many cells"


def skip_malformed(
    source: Source, header: Sequence[str] | None, rows: Rows, width: int, every_row: bool
) -> tuple[Rows, dict[str, list[Place]]]:
    """Returns the well-formed rows, and the places of the others by what is wrong with them.

    Args:
      source: has whether malformed rows are skipped.
      header: cells, or None. In a strict source no row is longer.
      rows: pairs of place and cells.
      width: the fewest cells.
      every_row: whether a malformed row becomes one without texts, because predictions for a test
        file have one row for each of its rows.

    Raises:
      InputError: for a row that may not be skipped, with the numbers of all such lines.
    """
    most = len(header) if source.strict and header else None

    def reason_of(cells: list[str]) -> str | None:
        if len(cells) < width:
            return SHORT
        return LONG if most and len(cells) > most else None

    malformed: dict[str, list[Place]] = {}
    for place, cells in rows:
        if reason := reason_of(cells):
            malformed.setdefault(reason, []).append(place)
    if not malformed:
        return rows, {}
    places = [place for place, cells in rows if reason_of(cells)]
    if not source.skip_bad_rows:
        place, cells = next(row for row in rows if reason_of(row[1]))
        more = f" {len(places)} rows are malformed: {_lines(places)}." if places[1:] else ""
        raise _error(
            source, f"{place[0]}, line {place[1]}: {_fault(source, header, cells, width)}{more}"
        )
    if not every_row:
        return [row for row in rows if not reason_of(row[1])], malformed
    logging.warning(
        "%s: %d of %d rows are answered as if they had no text: %s (%s).",
        *(source.file, len(places), len(rows), " or ".join(malformed), _lines(places)),
    )
    return [(place, [""] * width if reason_of(cells) else cells) for place, cells in rows], {}


def warn_of_skipped(file: str, skipped: Mapping[str, Sequence[Place]], count: int) -> None:
    """Warns of the skipped rows of a file of `count` rows, by reason."""
    for reason, places in skipped.items():
        logging.warning(
            "%s: left out %d of %d rows: %s (%s).",
            *(file, len(places), count, reason, _lines(places)),
        )


def _fault(source: Source, header: Sequence[str] | None, cells: list[str], width: int) -> str:
    if header and len(cells) >= width:
        return (
            f"{len(cells)} cells under a header of {len(header)}. Is a {source.delimiter!r} in a "
            "text not quoted?"
        )
    received = truncate(preview(source.delimiter.join(cells)), 100)
    return (
        f"expected at least {width} columns, separated by {source.delimiter!r}. Received "
        f"{len(cells)}: {received}"
    )


def _error(source: Source, message: str) -> InputError:
    if not source.strict:  # A publisher's file, which no flag describes.
        return InputError(message)
    return InputError(
        f"{message} Correct this, or pass skip_bad_rows=True to leave such rows out.",
        "skip_bad_rows=True",
    )


def _lines(places: Sequence[Place]) -> str:
    return format_lines([line for _, line in places])
