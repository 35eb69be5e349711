"""Names of the files of results that tasks of classes and scores leave in an output folder."""

import glob
from collections.abc import Collection, Iterable

from adapter_bert_tf.runners.classification.task_data import ClassificationData
from adapter_bert_tf.tasks.task import role

USUAL = ("dev", "test")  # Also of a task whose files are not divided so.


def names_of(tasks: Collection[ClassificationData], together: bool) -> list[str]:
    """The names, as patterns that match them and nothing else.

    Args:
      tasks: whose results; none of them yet for what any task leaves.
      together: whether each task's files begin with its name.
    """
    found = {"test_metrics.txt", *(() if tasks else _of_splits("", USUAL))}
    for task in tasks:
        splits = {split for layout in task.task.layouts for split in layout}
        submitted = {task.task.title, *map(task.task.submission, splits)}
        found |= {f"{name}.tsv" for name in submitted}
        found |= _of_splits(f"{task.name}_" if together else "", splits | set(USUAL))
    return sorted(map(glob.escape, found))


def after_split(stem: str, split: str) -> str:
    """`STEM`, or `STEM_mismatched` of a split `dev_mismatched`."""
    return "_".join([stem, *split.split("_")[1:]])


def raw_of(split: str) -> str:
    """Name of the file of probabilities or scores of a test split, without `.tsv`."""
    return split.replace("test", "test_results")


def _of_splits(before: str, splits: Iterable[str]) -> set[str]:
    """Names of what evaluations and predictions of splits leave."""
    found = set()
    for split in splits:
        found |= {
            f"{after_split(before + 'eval_details', split)}.json",
            f"{after_split(before + 'eval_classes', split)}.tsv",
        }
        if role(split) == "test":
            found.add(f"{before}{raw_of(split)}.tsv")
    return found
