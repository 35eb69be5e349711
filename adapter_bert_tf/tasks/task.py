"""A task as a value: where its texts and labels are, its labels, its metrics."""

import dataclasses
import math
from collections.abc import Callable, Iterable

BETWEEN_LABELS = "|"  # Of several of one example.


@dataclasses.dataclass(frozen=True)
class Columns:
    """Columns of a table, by the names of its header line or by numbers from 0."""

    text_a: str | int
    text_b: str | int | None = None
    label: str | int | None = None
    index: str | int | None = None


@dataclasses.dataclass(frozen=True)
class Source:
    """A file of a task, and how to read it.

    Args:
      file: its name in the data folder; `NAME.gz` is read where NAME is not there. With a final
        slash: a folder with one folder a label and one text a file, columns 0 and 1.
      columns: of the text, the label and the index.
      header: whether the first row names the columns. None: if `columns` are names.
      delimiter: one character.
      quoted: whether cells may be quoted as in RFC 4180 and then hold line ends.
      escaped: whether backslash, tab and line ends are written as `\\\\`, `\\t`, `\\n`, `\\r`.
      encodings: tried in this order.
      replace: pairs (what, by what), in texts.
      drop_empty: whether rows without a text are left out. Rows without a label always are.
      strict: whether a row with more cells than the header is an error.
      optional_label: whether the label's column may be missing.
      skip_bad_rows: whether rows with too few cells, or too many, are skipped, with a warning, or
        an error.
      submission: name of the GLUE server's file for this split; None for the task's title.
    """

    file: str
    columns: Columns
    header: bool | None = None
    delimiter: str = "\t"
    quoted: bool = False
    escaped: bool = False
    encodings: tuple[str, ...] = ("utf-8",)
    replace: tuple[tuple[str, str], ...] = ()
    drop_empty: bool = False
    strict: bool = False
    optional_label: bool = False
    skip_bad_rows: bool = False
    submission: str | None = None

    @property
    def has_header(self) -> bool:
        """Whether the first row names the columns."""
        return isinstance(self.columns.text_a, str) if self.header is None else self.header


@dataclasses.dataclass(frozen=True)
class Task:
    """A task whose examples are rows of tables.

    Args:
      name: by which `find_task` finds it, lower case.
      title: as its publishers write it; the submission file is called so.
      metrics: names of metrics, the first of which is the one to compare by; none for those of
        its type.
      layouts: the forms in which the task is distributed, the first whose files are there is read.
        Each a dict from split to `Source`. A split's role is what precedes the underscore: `train`,
        `dev`, `test` (`dev_mismatched` is a second development set), or `all`: sources that are put
        together and divided at random.
      task_type: name of its type, a key of `task_types.TASK_TYPES`.
      labels: label strings as in the files; a label's id is its place. None: the sorted strings of
        the training data, if tasks of its type have labels.
      relabel: function from a label in the files to the label meant, or None to leave the row out.
      score_range: the least and the largest score, or None.
      folder: where the files are, if they ship with us; else None.
      tfds: (config of TensorFlow Datasets' `glue`, feature of text_a[, of text_b]).
      adapter_of: the task whose adapter predicts this one, which has no training data.
      dev_share: share of the training data that becomes the development set if it has no file.
      test_rows: number of rows that the GLUE server expects, by split.
    """

    name: str
    title: str
    metrics: tuple[str, ...]
    layouts: tuple[dict[str, Source], ...]
    task_type: str = "classification"
    labels: tuple[str, ...] | None = None
    relabel: Callable[[str], str | None] | None = None
    score_range: tuple[float, float] | None = None
    folder: str | None = None
    tfds: tuple[str, ...] | None = None
    adapter_of: str | None = None
    dev_share: float | None = None
    test_rows: dict[str, int] = dataclasses.field(default_factory=dict)

    @property
    def num_texts(self) -> int:
        """1, or 2 for pairs."""
        first = next(iter(self.layouts[0].values()))
        return 1 if first.columns.text_b is None else 2

    def is_divided(self) -> bool:
        """Whether the development set may have been cut from the training data at random."""
        return bool(self.dev_share) or any(role(s) == "all" for s in self.layouts[0])

    def with_labels(self, labels: Iterable[str]) -> "Task":
        """The same task with its labels known."""
        return dataclasses.replace(self, labels=tuple(labels))

    def submission(self, split: str) -> str:
        """Name of the GLUE server's file for a test split, without `.tsv`."""
        source = self.layouts[0].get(split)
        return (source and source.submission) or self.title

    def clip(self, scores: Iterable[float]) -> list[float]:
        """Scores within `score_range`."""
        low, high = self.score_range or ANY_SCORE
        return [min(max(float(score), low), high) for score in scores]


ANY_SCORE = (-math.inf, math.inf)


def role(split: str) -> str:
    """`train`, `dev`, `test` or `all`: what a split is for."""
    return split.partition("_")[0]
