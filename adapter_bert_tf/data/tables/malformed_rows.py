"""Rows with too few or too many cells: refused by line, or skipped and counted."""

from collections.abc import Collection, Mapping, Sequence

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

    A row has at least `width` cells, and in a strict source at most as many as the header. With
    `every_row` a malformed row becomes one without texts, because predictions for a test file have
    one row for each of its rows. Raises `InputError`, with all line numbers, if none may be
    skipped.
    """
    most = len(header) if source.strict and header else None
    well_formed: Rows = []
    malformed: Rows = []
    places_by_reason: dict[str, list[Place]] = {}
    for place, cells in rows:
        is_short = len(cells) < width
        if not is_short and not (most and len(cells) > most):
            well_formed.append((place, cells))
            continue
        malformed.append((place, cells))
        places_by_reason.setdefault(SHORT if is_short else LONG, []).append(place)
        if every_row:
            well_formed.append((place, [""] * width))
    if malformed and not source.skip_bad_rows:
        raise _error(source, header, malformed, width)
    if hint := _quotes_hint_of(source, malformed):
        logging.warning(f"{source.file}: {len(malformed)} rows are malformed.{hint}")
    if malformed and every_row:
        lines = _lines([place for place, _ in malformed])
        logging.warning(
            f"{source.file}: {len(malformed)} of {len(rows)} rows are answered as if they had no "
            f"text: {' or '.join(places_by_reason)} ({lines})."
        )
        return well_formed, {}
    return well_formed, places_by_reason


def warn_of_skipped(file: str, skipped: Mapping[str, Sequence[Place]], count: int) -> None:
    """Warns of the skipped rows of a file of `count` rows, by reason."""
    for reason, places in skipped.items():
        logging.warning(
            f"{file}: left out {len(places)} of {count} rows: {reason} ({_lines(places)})."
        )


def quotes_hint(cells: Sequence[str]) -> str:
    """A sentence about a malformed row in which a quoted cell begins or ends; else ""."""
    halves = [c for c in cells if c.count('"') % 2 and (c.startswith('"') or c.endswith('"'))]
    if not halves:
        return ""
    return f" If cells are quoted, as {truncate(preview(halves[0]), 60)} may be, pass quoted=True."


def _quotes_hint_of(source: Source, malformed: Rows) -> str:
    cells = [cell for _, row in malformed for cell in row]
    return "" if source.quoted or not source.strict else quotes_hint(cells)


def warn_of_doubled_quotes(source: Source, rows: Rows, columns: Collection[int]) -> None:
    """Warns of cells that look quoted in a table that is read without regard to quotes."""
    if source.quoted or not source.strict:
        return
    places = [p for p, cells in rows if any(_has_doubled_quotes(cells[i]) for i in columns)]
    if places:
        logging.warning(
            f"{source.file}: {len(places)} rows have a cell that looks quoted, with doubled "
            f"quotation marks in it ({_lines(places)}). If they are: quoted=True."
        )


def _has_doubled_quotes(cell: str) -> bool:
    """Whether a cell is one of RFC 4180 that holds a quotation mark."""
    inner = cell[1:-1]
    is_quoted = len(cell) > 3 and cell[0] == cell[-1] == '"'
    return is_quoted and '""' in inner and '"' not in inner.replace('""', "")


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


def _error(source: Source, header: Sequence[str] | None, malformed: Rows, width: int) -> InputError:
    (path, line), cells = malformed[0]
    message = f"{path}, line {line}: {_fault(source, header, cells, width)}"
    if malformed[1:]:
        lines = _lines([place for place, _ in malformed])
        message += f" {len(malformed)} rows are malformed: {lines}."
    message += _quotes_hint_of(source, malformed)
    if not source.strict:  # A publisher's file, which no flag describes.
        return InputError(message)
    return InputError(
        f"{message} Correct this, or pass skip_bad_rows=True to leave such rows out.",
        "skip_bad_rows=True",
        "quoted=True",
    )


def _lines(places: Sequence[Place]) -> str:
    return format_lines([line for _, line in places])
