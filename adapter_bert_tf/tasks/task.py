"""A task as a value: where its columns are, its labels, its metrics."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Columns:
    """Columns of a tab-separated file: names of its header line, or numbers from 0 without one."""

    text_a: str | int
    text_b: str | int | None = None
    label: str | int | None = None
    index: str | int | None = None

    @property
    def has_header(self):
        """Whether the file's first line names the columns."""
        return isinstance(self.text_a, str)


@dataclasses.dataclass(frozen=True)
class Task:
    """A classification task.

    Args:
      name: what `--task_name` says, lower case.
      title: as its publishers write it; the submission file is called so.
      labels: label strings as in the files; a label's id is its place.
      metrics: names in `metrics.METRICS`; the first is the one to compare by.
      columns: of the training and development files.
      test_columns: of the unlabelled test file.
      files: file name of each split.
      folder: where the files are if `--data_dir` is not given; None if they do not ship with us.
    """

    name: str
    title: str
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    columns: Columns
    test_columns: Columns
    files: tuple[tuple[str, str], ...] = (
        ("train", "train.tsv"), ("dev", "dev.tsv"), ("test", "test.tsv"))
    folder: str | None = None

    def file_name(self, split):
        """Name of the file that holds `split`: train, dev or test."""
        return dict(self.files)[split]
