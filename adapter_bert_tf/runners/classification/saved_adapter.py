"""Whether a saved adapter may be applied to a task: its type, labels, texts and split."""

from absl import logging

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.errors import Mismatch
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.store.combining.combine import MIXED_SPLITS
from adapter_bert_tf.task_types import table_type, type_of
from adapter_bert_tf.task_types.task_type import TaskType
from adapter_bert_tf.tasks import OWN, Task
from adapter_bert_tf.tasks.own import DEV_SHARE


def check_task(saved: SavedAdapter, task: Task, split_seed: int = 0) -> None:
    """Raises `InputError` if a saved adapter was trained for another task or other labels."""
    saved_type, own_type = type_of(saved.config), table_type(task.task_type)
    if saved_type is not own_type:
        raise Mismatch(
            f"The saved adapter predicts {saved_type.predicts}. Received: the task {task.name!r}, "
            f"which needs {own_type.predicts}. {_hint(saved_type, own_type)}"
        )
    trained, labels = saved.config["task"], saved.config["labels"]
    own, own_labels = task.adapter_of or task.name, list(task.labels or labels)
    if (trained, labels) != (own, own_labels):
        raise Mismatch(
            f"The saved adapter was trained for the task {trained!r} with labels {labels}. "
            f"Received: {own!r} with labels {own_labels}."
        )
    _check_texts(saved.config["inputs"]["texts"], task)
    trained_share = saved.config.get("dev_share", DEV_SHARE)
    if task.name == OWN and task.dev_share not in (None, trained_share):
        raise Mismatch(
            f"The saved adapter was trained with --dev_share={trained_share:g}. With "
            f"{task.dev_share:g} the development set could hold its training data."
        )
    trained_seed = saved.config.get("split_seed")
    if task.is_divided() and trained_seed not in (None, split_seed):
        raise Mismatch(
            f"The saved adapter was trained with --split_seed={trained_seed}. With "
            f"{split_seed} the development set would hold its training data."
        )


def _hint(trained: TaskType, own: TaskType) -> str:
    """Returns how the settings change to those of an adapter's type."""
    script = trained.command.split()[0]
    if script != own.command.split()[0]:
        return f"{script} applies it."
    added = [f"Add --{name}." for name in trained.settings]
    return " ".join([*added, *(f"Leave out --{name}." for name in own.settings)])


def _check_texts(trained: int, task: Task) -> None:
    if trained > task.num_texts:
        raise Mismatch(
            "The saved adapter was trained on pairs of texts. Received: single texts. Add "
            "--text_b_column, or choose another adapter."
        )
    if trained < task.num_texts:  # Imported adapters may have been trained on pairs.
        logging.warning(
            "According to its configuration, the saved adapter was trained on single texts. "
            "Received: pairs. If it was trained on pairs, save it again with texts=2."
        )


def check_fold(saved: SavedAdapter, config: RunConfig, task: Task) -> None:
    """Raises `InputError` if an adapter would be evaluated on its training data."""
    data = config.data
    check_mixed_splits(saved, task, bool(data.folds))
    fold = saved.config.get("fold")
    if data.folds and not fold:
        raise Mismatch("The saved adapter was trained on all training data. Leave out --folds.")
    if not fold:
        return
    received = [data.folds, data.fold if data.folds else None, data.split_seed]
    trained = [fold.get("count"), fold.get("number"), fold.get("seed")]
    if (data.folds or task.is_divided()) and received != trained:
        raise Mismatch(
            f"The saved adapter was trained with --folds={trained[0]} --fold={trained[1]} "
            f"--split_seed={trained[2]}. With other values the development set would hold its "
            "training data."
        )


def check_mixed_splits(saved: SavedAdapter, task: Task, in_folds: bool = False) -> None:
    """Raises `InputError` if an adapter has seen several splits of the training data."""
    if saved.config.get("fold") == MIXED_SPLITS and (in_folds or task.is_divided()):
        raise Mismatch(
            "The saved adapter comes from several splits of the training data (by a mean of "
            "adapters, --init_from or --fuse), so it may have seen all of it. Evaluate it on a "
            "separate dev file, or start from adapters of one split."
        )
