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

    `file` is its name in the data folder; `NAME.gz` is read if NAME is missing. With a final slash
    it is a folder with one folder a label and one text a file, columns 0 and 1. An empty
    name stands for no file.
    """

    file: str
    columns: Columns
    header: bool | None = None  # Whether the first row names the columns. None: if they are names.
    delimiter: str = "\t"
    quoted: bool = False  # Whether cells may be quoted as in RFC 4180 and then hold line ends.
    escaped: bool = False  # Whether backslash, tab, line ends are written `\\`, `\t`, `\n`, `\r`.
    encodings: tuple[str, ...] = ("utf-8",)  # Tried in this order.
    replace: tuple[tuple[str, str], ...] = ()  # Pairs (old, new), in texts.
    drop_empty: bool = False  # Whether to leave out rows without a text; those without a label are.
    strict: bool = False  # Whether a row with more cells than the header is malformed.
    optional_label: bool = False  # Whether the label's column may be missing.
    skip_bad_rows: bool = False  # Whether malformed rows are skipped with a warning, or an error.
    submission: str | None = None  # The GLUE server's name of this split; None: the task's title.
    files: tuple[str, ...] = ()  # Paths of the files that the user named by `file`, of one layout.

    @property
    def has_header(self) -> bool:
        """Whether the first row names the columns."""
        return isinstance(self.columns.text_a, str) if self.header is None else self.header

    @property
    def extension(self) -> str:
        """`csv` for `train.csv` and `a.CSV.gz`."""
        first = self.files[0] if self.files else self.file
        return first.removesuffix(".gz").rpartition(".")[2].lower()

    def location(self, folder: str) -> str:
        """The file for messages, with the data folder unless the user named it."""
        return self.file if self.files else f"{folder}/{self.file}"


@dataclasses.dataclass(frozen=True)
class Task:
    """A task whose examples are rows of tables.

    `layouts` are the forms in which the task is distributed, each a dict from split to `Source`;
    the first whose files exist is read. A split's role is what precedes the underscore: `train`,
    `dev`, `test` (`dev_mismatched` is a second development set), or `all`: sources that are
    concatenated and split at random.
    """

    name: str  # Lower case, for `find_task`.
    title: str  # As its publishers write it; names the submission file.
    metrics: tuple[str, ...]  # Names, the first to compare by; none for those of its type.
    layouts: tuple[dict[str, Source], ...]
    task_type: str = "classification"  # A key of `task_types.TASK_TYPES`.
    labels: tuple[str, ...] | None = None  # By id. None: the sorted ones of the training data.
    relabel: Callable[[str], str | None] | None = None  # To the label meant; None skips the row.
    score_range: tuple[float, float] | None = None  # The least and the largest score.
    folder: str | None = None  # Where the files are, if they ship with this package.
    tfds: tuple[str, ...] | None = None  # Config of TensorFlow Datasets' `glue`, text features.
    adapter_of: str | None = None  # The task whose adapter predicts this one, without training.
    dev_share: float | None = None  # Of the training data, for a development set without a file.
    test_rows: dict[str, int] = dataclasses.field(default_factory=dict)  # For GLUE, by split.

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
