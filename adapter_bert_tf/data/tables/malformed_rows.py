"""Rows with too few or too many cells: refused by line, or skipped and counted."""

import collections
from collections.abc import Collection, Iterator, Sequence

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import format_lines, preview, truncate
from adapter_bert_tf.tasks.task import Source

Place = tuple[str, int]  # Path and line.
Rows = list[tuple[Place, list[str]]]
SHORT, LONG = "too few cells", "too many cells"
_MALFORMED, _DOUBLED = "malformed", "doubled quotes"  # Kinds of findings that are no reasons.


class RowFindings:
    """What is odd about the rows of a table, read in one part or in many: counts and first lines.

    `file` names the table in messages, `count` is the number of its rows, and `labels_used` has
    those of `label_columns` that a row has.
    """

    FIRST = 11  # Places that are kept of each kind: a message lists ten.

    def __init__(self, file: str) -> None:
        self.file, self.count = file, 0
        self.label_columns: Sequence[str] = ()
        self.labels_used: set[str] = set()
        self.blank_lines: dict[str, int] = {}  # By path, where they are left out.
        self._quotes_hint = ""
        self._counts: collections.Counter[str] = collections.Counter()
        self._first: dict[str, list[Place]] = {}

    def add(self, kind: str, place: Place) -> None:
        """Counts a row of this kind."""
        self._counts[kind] += 1
        first = self._first.setdefault(kind, [])
        if len(first) < self.FIRST:
            first.append(place)

    def add_malformed(self, reason: str, place: Place, hint: str) -> None:
        """Counts a row with too few or too many cells."""
        self.add(_MALFORMED, place)
        self.add(reason, place)
        self._quotes_hint = self._quotes_hint or hint

    def sentences(self, every_row: bool = False) -> Iterator[str]:
        """Yields the warnings; with `every_row` malformed rows were kept, without their texts."""
        for path, number in self.blank_lines.items():
            yield f"{path}: left out {number} blank lines."
        if unused := [label for label in self.label_columns if label not in self.labels_used]:
            yield f"{self.file}: no row has the label {' or '.join(map(preview, unused[:5]))}."
        malformed = self._counts[_MALFORMED]
        if self._quotes_hint:
            yield f"{self.file}: {malformed} rows are malformed.{self._quotes_hint}"
        reasons = [kind for kind in self._counts if kind not in (_MALFORMED, _DOUBLED)]
        if malformed and every_row:
            yield (
                f"{self.file}: {malformed} of {self.count} rows are answered as if they had no "
                f"text: {' or '.join(reasons)} ({_lines(self._first[_MALFORMED])})."
            )
            reasons = []
        if doubled := self._counts[_DOUBLED]:
            yield (
                f"{self.file}: {doubled} rows have a cell that looks quoted, with doubled "
                f"quotation marks in it ({_lines(self._first[_DOUBLED])}). If they are: "
                "quoted=True."
            )
        for reason in reasons:
            yield (
                f"{self.file}: left out {self._counts[reason]} of {self.count} rows: {reason} "
                f"({_lines(self._first[reason])})."
            )


def skip_malformed(
    source: Source,
    header: Sequence[str] | None,
    rows: Rows,
    width: int,
    every_row: bool,
    findings: RowFindings,
) -> Rows:
    """Returns the well-formed rows; the others are `findings`.

    A row has at least `width` cells, and in a strict source at most as many as the header. With
    `every_row` a malformed row becomes one without texts, because predictions for a test file have
    one row for each of its rows. Raises `InputError`, with all line numbers, if none may be
    skipped.
    """
    most = len(header) if source.strict and header else None
    well_formed: Rows = []
    malformed: Rows = []
    findings.count += len(rows)
    for place, cells in rows:
        is_short = len(cells) < width
        if not is_short and not (most and len(cells) > most):
            well_formed.append((place, cells))
            continue
        malformed.append((place, cells))
        if source.skip_bad_rows:
            hint = _quotes_hint_of(source, [(place, cells)])
            findings.add_malformed(SHORT if is_short else LONG, place, hint)
        if every_row:
            well_formed.append((place, [""] * width))
    if malformed and not source.skip_bad_rows:
        raise _error(source, header, malformed, width)
    return well_formed


def quotes_hint(cells: Sequence[str]) -> str:
    """A sentence about a malformed row in which a quoted cell begins or ends; else ""."""
    halves = [c for c in cells if c.count('"') % 2 and (c.startswith('"') or c.endswith('"'))]
    if not halves:
        return ""
    return f" If cells are quoted, as {truncate(preview(halves[0]), 60)} may be, pass quoted=True."


def _quotes_hint_of(source: Source, malformed: Rows) -> str:
    cells = [cell for _, row in malformed for cell in row]
    return "" if source.quoted or not source.strict else quotes_hint(cells)


def find_doubled_quotes(
    source: Source, rows: Rows, columns: Collection[int], findings: RowFindings
) -> None:
    """Finds cells that look quoted in a table that is read without regard to quotes."""
    if source.quoted or not source.strict:
        return
    for place, cells in rows:
        if any(_has_doubled_quotes(cells[i]) for i in columns):
            findings.add(_DOUBLED, place)


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
    """Formats the lines of rows; of several files also the first one's path."""
    lines = format_lines([line for _, line in places])
    return lines if len({path for path, _ in places}) < 2 else f"{lines}, from {places[0][0]} on"
