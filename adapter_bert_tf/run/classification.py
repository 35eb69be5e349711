"""The job of `run_classifier.py`: one task, or several together."""

import os

from adapter_bert_tf.command.task_list import is_several
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.run import sweep
from adapter_bert_tf.run.one_task import Classification
from adapter_bert_tf.run.several_tasks import SeveralTasks
from adapter_bert_tf.store import several
from adapter_bert_tf.store.directory import adapter_exists
from adapter_bert_tf.store.files import read_config
from adapter_bert_tf.store.place import CONFIG
from adapter_bert_tf.training.trained import SEVERAL_TASKS


def run(flags):
    """Runs the command. Raises `InputError` for what the user can mend, before training.

    Args:
      flags: `absl.flags.FLAGS`, parsed.
    """
    together = is_several(flags.task_name) or flags.tuning in SEVERAL_TASKS
    together = together or (not flags.do_train and _applies_several(flags))
    sweep.run(SeveralTasks() if together else Classification(), flags)


def _applies_several(flags):
    """Whether the adapter to apply is of several tasks; one that is damaged is refused later."""
    folder = flags.adapter_dir or os.path.join(flags.output_dir or "", "adapter")
    try:
        return adapter_exists(folder) and several.is_several(
            read_config(os.path.join(folder, CONFIG))
        )
    except InputError:
        return False
