"""How far a long reading is, for people who wait."""

import time

from adapter_bert_tf.training.progress import format_minutes


class RowProgress:
    """Says every few seconds how many rows are done, at which rate, and how long the rest takes.

    Args:
      name: of what is read.
      every_seconds: between two lines.
    """

    def __init__(self, name: str, every_seconds: float = 5.0) -> None:
        self.name, self.every_seconds = name, every_seconds
        self.rows = 0
        self.began = self.shown_at = time.monotonic()

    def add(self, rows: int, share: float) -> None:
        """Counts rows.

        Args:
          rows: that are done.
          share: of the file that is read, from 0 to 1; the time left is told by it.
        """
        self.rows += rows
        now = time.monotonic()
        if now - self.shown_at < self.every_seconds:
            return
        self.shown_at, gone = now, now - self.began
        left = format_minutes(gone * (1 - share) / share) if share else "?"
        print(
            f"{self.name}: {self.rows:,} rows  {self.rows / gone:.0f} rows/s  ETA {left}",
            flush=True,
        )
