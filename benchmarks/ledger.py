"""Ledgers of results: a JSON line for each result, and tables of them in a page.

A result with a line is not measured again, so an interrupted command resumes. Rows are those of
this repository, or of a folder that ADAPTER_BERT_RESULTS names: results of another machine are not
mixed with the committed ones, and their tables are printed.
"""

import dataclasses
import json
import os
import pathlib
import threading
from collections.abc import Callable, Hashable, Iterable

from benchmarks import training_code

COMMITTED = pathlib.Path(__file__).resolve().parent / "results"
RESULTS = pathlib.Path(os.environ.get("ADAPTER_BERT_RESULTS") or COMMITTED)
ADDING = threading.Lock()  # Runs side by side end at the same time.
CODE = "training_code"  # In a row: the digest of the code that made it.
OLDER = "†"  # After the name of what was measured with older code than other rows.

Row = dict
Rows = dict[Hashable, Row]


@dataclasses.dataclass(frozen=True)
class Ledger:
    """Rows in the `.jsonl` files of a folder, and the page that shows them.

    Args:
      folder: of the files.
      page: Markdown file; a table stands between `<!-- NAME -->` and `<!-- end of NAME -->`.
      key: function from a row to what it is the result of; of several rows the last one counts.
    """

    folder: pathlib.Path
    page: pathlib.Path
    key: Callable[[Row], Hashable]

    def rows(self) -> Rows:
        """Dict from a key to its row."""
        return {self.key(row): row for row in self._all()}

    def _all(self, file: str = "*") -> list[Row]:
        text = "".join(path.read_text() for path in sorted(self.folder.glob(f"{file}.jsonl")))
        return [json.loads(line) for line in text.splitlines()]

    def missing(self, keys: Iterable[Hashable], code: str | None = None) -> list[Hashable]:
        """The keys without a row, in their order.

        Args:
          keys: of the rows that are wanted.
          code: digest of the code of today; rows of code that trains otherwise count as missing.
            None: all count.
        """
        there = self.rows()
        if code is not None:
            codes = training_code.alike(code)
            there = {key: row for key, row in there.items() if row.get(CODE) in codes}
        return [key for key in keys if key not in there]

    def newest_code(self, file: str) -> str | None:
        """The code of the newest row of a file that records its code."""
        rows = reversed(self._all(file))
        return next((row[CODE] for row in rows if CODE in row), None)

    def mark(self, file: str, rows: Iterable[Row]) -> str:
        """` †` if the code of any row may train differently from the file's newest.

        A row without its code is older than this record.
        """
        newest = training_code.alike(self.newest_code(file)) - {None}
        return "" if all(row.get(CODE) in newest for row in rows) else f" {OLDER}"

    def add(self, file: str, rows: Iterable[Row]) -> None:
        """Appends rows to a file of the folder; they replace earlier rows of the same results.

        Args:
          file: without `.jsonl`.
          rows: of it.
        """
        new = {self.key(row): row for row in rows}
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{file}.jsonl"
        beside = path.with_suffix(".tmp")
        with ADDING:
            there = {self.key(row): row for row in self._all(file)}
            kept = {key: row for key, row in there.items() if key not in new}
            beside.write_text("".join(json.dumps(row) + "\n" for row in (kept | new).values()))
            beside.replace(path)

    def write_tables(self, *tables: Callable[[Rows], list[str]]) -> None:
        """Replaces the tables in the page; prints them if the rows come from another folder.

        Args:
          *tables: functions from the rows to Markdown lines; a function's name is its table's.
        """
        rows, text = self.rows(), self.page.read_text()
        if RESULTS != COMMITTED:
            print(*("\n".join(table(rows)) for table in tables), sep="\n\n", flush=True)
            return
        for table in tables:
            begin, end = f"<!-- {table.__name__} -->", f"<!-- end of {table.__name__} -->"
            before, _, rest = text.partition(begin)
            text = "\n".join([before + begin, *table(rows), end]) + rest.partition(end)[2]
        self.page.write_text(text)
