"""Whether a saved adapter may be applied to a task: its labels, texts and division of the data."""

from absl import logging

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.store.combine import MIXED_SPLITS
from adapter_bert_tf.task_types import table_type, type_of


def check_task(saved, task, split_seed=0):
    """A saved adapter must have been trained for the task and its labels. Raises `InputError`."""
    _check_type(type_of(saved.config), table_type(task.task_type), task.name)
    theirs = (saved.config["task"], saved.config["labels"])
    ours = (task.adapter_of or task.name, list(task.labels or theirs[1]))
    if theirs != ours:
        raise InputError(
            f"The saved adapter was trained for the task {theirs[0]!r} with labels {theirs[1]}. "
            f"Received: {ours[0]!r} with labels {ours[1]}."
        )
    _check_texts(saved.config["inputs"]["texts"], task)
    divided = saved.config.get("split_seed")
    if divided not in (None, split_seed):
        raise InputError(
            f"The saved adapter was trained with --split_seed={divided}. With "
            f"{split_seed} the development set would hold its training data."
        )


def _check_type(theirs, ours, task):
    """An adapter applies to tasks of its own type. Raises `InputError`."""
    if theirs is ours:
        return
    raise InputError(
        f"The saved adapter predicts {theirs.predicts}. Received: the task {task!r}, of "
        f"{ours.predicts}. {_hint(theirs, ours)}"
    )


def _hint(theirs, ours):
    """How the settings change to those of an adapter's type."""
    script = theirs.command.split()[0]
    if script != ours.command.split()[0]:
        return f"{script} applies it."
    added = [f"Add --{name}." for name in theirs.settings]
    return " ".join([*added, *(f"Leave out --{name}." for name in ours.settings)])


def check_fold(saved, config, task):
    """An adapter of cross-validation is evaluated on what it was not trained on.

    Raises `InputError`.
    """
    check_divisions(saved, task, bool(config.data.folds))
    trained = saved.config.get("fold")
    asked = [
        config.data.folds,
        config.data.fold if config.data.folds else None,
        config.data.split_seed,
    ]
    theirs = [trained.get("count"), trained.get("number"), trained.get("seed")] if trained else []
    if trained and (config.data.folds or task.is_divided()) and asked != theirs:
        raise InputError(
            f"The saved adapter was trained with --folds={theirs[0]} --fold={theirs[1]} "
            f"--split_seed={theirs[2]}. With others the development set would hold its training "
            "data."
        )
    if config.data.folds and not trained:
        raise InputError(
            "--folds divides the training data, and the saved adapter was trained on all of it. "
            "Leave it out."
        )


def check_divisions(saved, task, in_folds=False):
    """What was trained on several divisions has seen any part of the training data.

    Raises `InputError`.
    """
    if saved.config.get("fold") == MIXED_SPLITS and (in_folds or task.is_divided()):
        raise InputError(
            "The saved adapter comes from several divisions of the training data, by a mean of "
            "adapters, by --init_from or by --fuse: any part of it was trained on. Evaluate it on "
            "a file of its own (dev), or begin from adapters of one division."
        )


def _check_texts(trained_on, task):
    """Pairs cannot be answered by one text; two, where one is said, may be what was meant."""
    if trained_on > task.num_texts:
        raise InputError(
            "The saved adapter was trained on pairs of texts. Received: single ones. Add "
            "--text_b_column, or choose another adapter."
        )
    if trained_on < task.num_texts:
        logging.warning(
            "The saved adapter says that it was trained on single texts, and gets pairs. If that "
            "is not so, save it again with texts=2."
        )
