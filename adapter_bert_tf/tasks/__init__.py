"""Tasks: a table row each, found by name."""

import difflib

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.tasks.glue import GLUE, SHIPPED
from adapter_bert_tf.tasks.own import OWN as OWN
from adapter_bert_tf.tasks.own import own_task as own_task
from adapter_bert_tf.tasks.task import Columns as Columns
from adapter_bert_tf.tasks.task import Source as Source
from adapter_bert_tf.tasks.task import Task as Task
from adapter_bert_tf.tasks.task import role as role
from adapter_bert_tf.tasks.text_classification import TEXT_CLASSIFICATION

TASKS: dict[str, Task] = {task.name: task for task in (*GLUE, *TEXT_CLASSIFICATION, *SHIPPED)}


def find_task(name: str) -> Task:
    """The task called `name`, in any case, with or without hyphens. Raises `InputError`."""
    for known, task in TASKS.items():
        if letters(known) == letters(name):
            return task
    nearest = difflib.get_close_matches(name.lower(), TASKS, n=3, cutoff=0.3) or sorted(TASKS)
    raise InputError(
        f"Unknown task {name!r}. Did you mean {' or '.join(nearest)}? "
        f"All tasks: {', '.join(sorted(TASKS))}; and tsv, for a table of your own"
    )


def letters(name: str) -> str:
    """A name as it is compared: in lower case, letters and digits alone."""
    return "".join(filter(str.isalnum, name.lower()))
