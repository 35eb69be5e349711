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
WRITE_LOCK = threading.Lock()  # Concurrent runs may end at the same time.
CODE_KEY = "training_code"  # In a row: the digest of the code that it was measured with.
OLD_CODE_MARK = "†"  # Marks results that were measured with older code.

Row = dict
Rows = dict[Hashable, Row]


@dataclasses.dataclass(frozen=True)
class Ledger:
    """Rows in the `.jsonl` files of a folder, and the page that shows them.

    Args:
      folder: folder of the files.
      page: Markdown file with tables between `<!-- NAME -->` and `<!-- end of NAME -->`.
      key: function from a row to its case; the last row of a case counts.
    """

    folder: pathlib.Path
    page: pathlib.Path
    key: Callable[[Row], Hashable]

    def rows(self) -> Rows:
        """Returns a dict from key to row."""
        return {self.key(row): row for row in self._all()}

    def _all(self, file: str = "*") -> list[Row]:
        text = "".join(path.read_text() for path in sorted(self.folder.glob(f"{file}.jsonl")))
        return [json.loads(line) for line in text.splitlines()]

    def missing(self, keys: Iterable[Hashable], code: str | None = None) -> list[Hashable]:
        """Returns the keys without a row, in their order.

        Args:
          keys: keys of all cases.
          code: digest of the current code; rows of code that trains differently count as missing.
            None to accept all rows.
        """
        rows_by_key = self.rows()
        if code is not None:
            codes = training_code.equivalent_codes(code)
            rows_by_key = {
                key: row for key, row in rows_by_key.items() if row.get(CODE_KEY) in codes
            }
        return [key for key in keys if key not in rows_by_key]

    def newest_code(self, file: str) -> str | None:
        """The code of the newest row of a file that records its code."""
        rows = reversed(self._all(file))
        return next((row[CODE_KEY] for row in rows if CODE_KEY in row), None)

    def mark(self, file: str, rows: Iterable[Row]) -> str:
        """` †` if the code of any row may train differently from the file's newest.

        A row without its code is older than this record.
        """
        newest = training_code.equivalent_codes(self.newest_code(file)) - {None}
        return "" if all(row.get(CODE_KEY) in newest for row in rows) else f" {OLD_CODE_MARK}"

    def add(self, file: str, rows: Iterable[Row]) -> None:
        """Appends rows to a file of the folder; they replace earlier rows of the same results.

        Args:
          file: without `.jsonl`.
          rows: of it.
        """
        new = {self.key(row): row for row in rows}
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{file}.jsonl"
        temporary = path.with_suffix(".tmp")
        with WRITE_LOCK:
            rows_by_key = {self.key(row): row for row in self._all(file)}
            remaining = {key: row for key, row in rows_by_key.items() if key not in new}
            temporary.write_text(
                "".join(json.dumps(row) + "\n" for row in (remaining | new).values())
            )
            temporary.replace(path)

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
