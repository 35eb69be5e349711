"""Which tables are too large for memory; without TensorFlow."""

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.data.tables.blocks import unpacked_size
from adapter_bert_tf.data.tables.files import find_file
from adapter_bert_tf.errors import Conflict
from adapter_bert_tf.runners.classification.chosen_task import data_folder
from adapter_bert_tf.store import SavedAdapter
from adapter_bert_tf.tasks import OWN, Task


def is_stored(
    config: RunConfig, task: Task, saved: SavedAdapter | None = None, together: bool = False
) -> bool:
    """Whether the training rows are kept on the disk.

    Without training that counts only for a dev set that was drawn from them. Some settings need all
    rows in memory, and so do several tasks that are trained `together`: then they stay there,
    unless the user has set the limit.

    Raises:
      InputError: for missing files, or for such a setting together with a limit.
    """
    if task.name != OWN or config.data.data_source == "tfds":
        return False
    folder, layout = data_folder(config, task), task.layouts[0]
    if not config.actions.do_train:
        is_drawn = bool(saved and saved.config.get("dev_by_hash"))
        return is_drawn and config.actions.do_eval and not find_file(layout["dev"], folder)
    limit = config.table.in_memory_mb
    if unpacked_size(layout["train"], folder) <= limit * 1_000_000:
        return False
    needing = _needing_memory(config, together)
    if needing and "in_memory_mb" in config.given:
        raise Conflict(
            f"{needing} needs all training rows in memory, and there are more than "
            f"--in_memory_mb={limit} MB of them. Increase it, or train on a part of the rows, such "
            "as some of the files or a random sample of their lines."
        )
    return not needing


def _needing_memory(config: RunConfig, together: bool) -> str | None:
    """Returns what needs all rows in memory, or None."""
    settings = {
        "folds": config.data.folds,
        "max_train_examples": config.data.max_train_examples,
        "cache_frozen": config.training.cache_frozen,
    }
    names = [f"--{name}" for name, value in settings.items() if value]
    return "Training several tasks together" if together else next(iter(names), None)
