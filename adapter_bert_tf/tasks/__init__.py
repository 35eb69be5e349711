"""What is learned: one table row a task, the head, and the metrics."""

import difflib

from adapter_bert_tf.errors import InputError
from adapter_bert_tf.tasks.glue import GLUE
from adapter_bert_tf.tasks.shipped import SHIPPED
from adapter_bert_tf.tasks.task import Columns, Task

TASKS = {task.name: task for task in (*GLUE, *SHIPPED)}

__all__ = ["TASKS", "Columns", "Task", "find_task"]


def find_task(name):
    """The task called `name`, in any case. Raises `InputError` with the nearest names."""
    task = TASKS.get(name.lower())
    if task is None:
        nearest = difflib.get_close_matches(name.lower(), TASKS, n=3, cutoff=0.3) or sorted(TASKS)
        raise InputError(f"Unknown task {name!r}. Did you mean {' or '.join(nearest)}? "
                         f"All tasks: {', '.join(sorted(TASKS))}")
    return task
