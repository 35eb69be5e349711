"""The job of `run_classifier.py`: one task, or several together."""

import os

from adapter_bert_tf.config.task_list import is_several
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.runners.classification.multitask_runner import MultitaskRunner
from adapter_bert_tf.runners.classification.runner import ClassificationRunner
from adapter_bert_tf.store import multitask
from adapter_bert_tf.store.directory import adapter_exists
from adapter_bert_tf.store.file_names import CONFIG
from adapter_bert_tf.store.files import read_config
from adapter_bert_tf.sweeps import sweep
from adapter_bert_tf.training.tuning import MULTITASK_METHODS


def run(flags):
    """Runs the command. Raises `InputError` for what the user can mend, before training.

    Args:
      flags: `absl.flags.FLAGS`, parsed.
    """
    together = is_several(flags.task_name) or flags.tuning in MULTITASK_METHODS
    together = together or (not flags.do_train and _applies_several(flags))
    sweep.run(MultitaskRunner() if together else ClassificationRunner(), flags)


def _applies_several(flags):
    """Whether the adapter to apply is of several tasks; one that is damaged is refused later."""
    folder = flags.adapter_dir or os.path.join(flags.output_dir or "", "adapter")
    try:
        return adapter_exists(folder) and multitask.is_several(
            read_config(os.path.join(folder, CONFIG))
        )
    except InputError:
        return False
