"""Development examples, drawn from the training data, that an earlier adapter was trained on."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import logging

from adapter_bert_tf.run.init_from import InitialAdapter
from adapter_bert_tf.store.combine import MIXED_SPLITS, SPLIT_KEYS
from adapter_bert_tf.store.contents import name_of
from adapter_bert_tf.store.members import Member
from adapter_bert_tf.store.multitask import config_of, is_several, names_of

if TYPE_CHECKING:
    from adapter_bert_tf.run.task_runner import TaskData

PARTLY_SEEN = "dev, some of it trained on before"


def adapter_config(
    task: "TaskData", start: InitialAdapter | None, members: Sequence[Member]
) -> dict[str, Any]:
    """What an adapter says of its task: also that it was trained on several divisions of the data.

    Args:
      task: the data that it is trained on.
      start: the saved adapter that its training begins from.
      members: of a fusion.
    """
    config = task.adapter_config()
    if not _divided_otherwise(task, start, members):
        return config
    return config | {"fold": MIXED_SPLITS, "split_seed": None}


def marked(metric: dict[str, Any] | None, config: Mapping[str, Any]) -> dict[str, Any] | None:
    """A metric on the development set of the adapter's own run, as its directory says it."""
    if metric is None or config.get("fold") != MIXED_SPLITS:
        return metric
    return metric | {"split": PARTLY_SEEN}


def warn(
    tasks: Sequence["TaskData"], start: InitialAdapter | None, members: Sequence[Member]
) -> None:
    """Warns where a development set was drawn from what an earlier adapter has seen."""
    for task in tasks:
        for what in _divided_otherwise(task, start, members):
            logging.warning(
                "The adapter %s was trained on another part of the data of %r: development "
                "examples of this run may be among its training data, and their scores too good. "
                "The same --split_seed, --folds and --fold avoid it.",
                *(what, name_of(task.adapter_config())),
            )


def _divided_otherwise(
    task: "TaskData", start: InitialAdapter | None, members: Sequence[Member]
) -> list[str]:
    """The adapters, as a message names them, that know this data, divided in another way."""
    ours = task.adapter_config()
    if not ours.get("fold") and ours.get("split_seed") is None:
        return []
    return [
        what
        for what, theirs in _earlier(start, members)
        if all(theirs.get(key) == ours.get(key) for key in ("task", "name"))
        and any(theirs.get(key) != ours.get(key) for key in SPLIT_KEYS)
    ]


def _earlier(
    start: InitialAdapter | None, members: Sequence[Member]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields what to call it, and what it says of a task, for each adapter that comes before."""
    if start is None:
        yield from ((f"{member.name!r} of --fuse", member.config) for member in members)
        return
    config, what = start.saved.config, f"in --init_from={start.folder}"
    if not is_several(config):
        yield what, config
        return
    yield from ((what, config_of(config, name)) for name in names_of(config))
