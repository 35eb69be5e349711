"""Which tables are too large for memory, and what then does not work; without TensorFlow."""

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.tables.blocks import unpacked_size
from adapter_bert_tf.data.tables.files import find_file
from adapter_bert_tf.errors import Conflict
from adapter_bert_tf.runners.classification.chosen_task import data_folder
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.tasks import OWN, Task

NEEDS_MEMORY = (
    "needs all training rows in memory, and there are more MB of them than --in_memory_mb. Train "
    "on a part of the rows, such as some of the files or a random sample of their lines, or "
    "increase --in_memory_mb."
)


def is_stored(config: RunConfig, task: Task, saved: SavedAdapter | None = None) -> bool:
    """Whether the training rows are kept on the disk. Raises `InputError` for missing files.

    Without training that counts only for a dev set that was drawn from them.
    """
    if task.name != OWN or config.data.data_source == "tfds":
        return False
    folder, layout = data_folder(config, task), task.layouts[0]
    if not config.actions.do_train:
        is_drawn = bool(saved and saved.config.get("dev_by_hash"))
        return is_drawn and config.actions.do_eval and not find_file(layout["dev"], folder)
    return unpacked_size(layout["train"], folder) > config.table.in_memory_mb * 1_000_000


def require_supported(config: RunConfig, together: bool = False) -> None:
    """Raises `Conflict` for settings that need all rows in memory, or tasks trained `together`."""
    if together:
        raise Conflict(f"Training several tasks together {NEEDS_MEMORY}")
    settings = {
        "folds": config.data.folds,
        "max_train_examples": config.data.max_train_examples,
        "cache_frozen": config.training.cache_frozen,
    }
    for name, value in settings.items():
        if value:
            raise Conflict(f"--{name} {NEEDS_MEMORY}")
