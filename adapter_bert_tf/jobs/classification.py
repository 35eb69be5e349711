"""Runs `run_classifier.py`: one task, or several together."""

import contextlib
import os

from adapter_bert_tf.config.run_config import RunConfig
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


def run(config: RunConfig) -> None:
    """Runs the command. Raises `InputError` for anything that the user can fix."""
    together = is_several(config.data.task_name) or config.method.tuning in MULTITASK_METHODS
    together = together or (not config.actions.do_train and _applies_several(config))
    sweep.run(MultitaskRunner() if together else ClassificationRunner(), config)


def _applies_several(config: RunConfig) -> bool:
    """Whether the adapter to apply has several tasks; a damaged one is refused later."""
    folder = config.output.adapter_folder
    with contextlib.suppress(InputError):
        if adapter_exists(folder):
            return multitask.is_several(read_config(os.path.join(folder, CONFIG)))
    return False
