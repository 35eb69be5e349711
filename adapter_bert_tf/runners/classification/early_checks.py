"""What is wrong with the tables of a training, before seconds of importing TensorFlow."""

from collections.abc import Mapping

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.task_list import is_several
from adapter_bert_tf.data.examples import sources_of
from adapter_bert_tf.data.file_sets import split_paths
from adapter_bert_tf.data.tables.blocks import require_one_layout
from adapter_bert_tf.data.tables.columns import column_numbers
from adapter_bert_tf.data.tables.delimiters import first_rows, read_beginning
from adapter_bert_tf.data.tables.files import require_file
from adapter_bert_tf.data.tables.indicator_columns import join_columns
from adapter_bert_tf.data.tables.malformed_rows import RowFindings
from adapter_bert_tf.data.tables.stream import OBJECTS, extension_of
from adapter_bert_tf.errors import InputError, error_context
from adapter_bert_tf.retry import is_remote
from adapter_bert_tf.runners.classification.chosen_task import data_folder, task_of
from adapter_bert_tf.runners.classification.large_tables import is_stored
from adapter_bert_tf.runners.multitask.task_configs import configs_of
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.task_types import chosen_type
from adapter_bert_tf.tasks import OWN
from adapter_bert_tf.tasks.task import Source


def check_tables(config: RunConfig) -> None:
    """Requires the local tables that a run trains on, and the columns of the user's own.

    The rows are checked when they are read. Raises `InputError`.
    """
    if not config.actions.do_train or config.sweeps.sweep:
        return
    if config.device.strategy == "tpu":  # `paths.check` explains that its paths must be remote.
        return
    if not is_several(config.data.task_name):
        _check(config)
        return
    configs = configs_of(config)
    check_types(configs)
    for name, own in configs.items():
        with error_context(f"The task {name!r}"):
            _check(own, together=True)


def check_types(configs: Mapping[str, RunConfig]) -> None:
    """Raises `InputError` for tasks of types that are not trained together."""
    types = {name: chosen_type(own.values) for name, own in configs.items()}
    if other := {name: kind for name, kind in types.items() if not kind.mixes}:
        settings = [setting for kind in other.values() for setting in kind.settings]
        raise InputError(
            "Each of several tasks must have one label or one score per example. Received: "
            f"{', '.join(dict.fromkeys(settings))} of {preview(list(other))}"
        )


def _check(config: RunConfig, together: bool = False) -> None:
    if config.data.data_source == "tfds" or is_remote(config.data.data_dir or ""):
        return
    values = [str(config.value(f"{split}_file") or "") for split in ("train", "dev", "test")]
    if any(is_remote(path) for value in values for path in split_paths(value)):
        return
    task = task_of(config)
    folder, actions = data_folder(config, task), config.actions
    evaluates = actions.do_eval and not config.data.folds
    is_stored(config, task, together=together)
    needed = {"train": True, "dev": evaluates, "test": actions.do_predict}
    for source in sources_of(task, folder, [name for name in needed if needed[name]]):
        path = require_file(source, folder)
        require_one_layout(source)
        if task.name == OWN and extension_of(path) not in OBJECTS and source.has_header:
            _check_columns(source, path, folder)


def _check_columns(source: Source, path: str, folder: str) -> None:
    beginning = read_beginning(path, source.encodings[0])
    names = first_rows(beginning, source.delimiter, source.quoted)[0]
    if any(names):
        header, _ = join_columns(source, names, [], RowFindings(source.file))
        column_numbers(source, header, folder)
