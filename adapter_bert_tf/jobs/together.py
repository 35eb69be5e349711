"""Whether a command works with several tasks together."""

import contextlib
import os

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.task_list import is_several
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.store import multitask
from adapter_bert_tf.store.file_names import CONFIG
from adapter_bert_tf.store.files import adapter_exists, read_config
from adapter_bert_tf.training.tuning import MULTITASK_METHODS


def are_together(config: RunConfig) -> bool:
    """Whether the tasks of a command are trained together, or have been."""
    if is_several(config.data.task_name) or config.method.tuning in MULTITASK_METHODS:
        return True
    return not config.actions.do_train and _applies_several(config)


def _applies_several(config: RunConfig) -> bool:
    """Whether the adapter to apply has several tasks; a damaged one is refused later."""
    folder = config.output.adapter_folder
    with contextlib.suppress(InputError):
        if adapter_exists(folder):
            return multitask.is_several(read_config(os.path.join(folder, CONFIG)))
    return False
