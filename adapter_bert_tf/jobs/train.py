"""`train`: the commands that train, as one call in Python."""

import atexit
import dataclasses
import importlib
import inspect
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import Unpack

from adapter_bert_tf import storage
from adapter_bert_tf.base import Base
from adapter_bert_tf.config import checks
from adapter_bert_tf.config.ineffective_flags import warn_of_ineffective_flags
from adapter_bert_tf.config.messages import spell_for_command, spell_for_python
from adapter_bert_tf.config.parsing import expand_user, parse_value
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.sections.model import MULTITASK_TUNINGS, BaseConfig
from adapter_bert_tf.config.setting import Command, Value, load
from adapter_bert_tf.config.settings import BY_NAME, python_options
from adapter_bert_tf.config.train_options import TrainOptions
from adapter_bert_tf.errors import Conflict, InputError, Missing, Unsupported
from adapter_bert_tf.jobs.python_data import Given, configuration_files
from adapter_bert_tf.output import run_dir
from adapter_bert_tf.output.records import read_record
from adapter_bert_tf.predict import frames
from adapter_bert_tf.predict.predictor import Predictor
from adapter_bert_tf.run.checks import paths
from adapter_bert_tf.run.run_cache import RunCache
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.serving.export import export_task
from adapter_bert_tf.serving.merged import merged_model
from adapter_bert_tf.serving.saved_model_dir import SavedModelDir
from adapter_bert_tf.store.base_match import FULL_METHODS
from adapter_bert_tf.sweeps.run_list import RunList
from adapter_bert_tf.task_types import TASK_TYPES


class TrainedTask(Predictor):
    """A trained task: it predicts, is saved and exported.

    Attributes:
      output_dir: everything that the training wrote, as `run_classifier.py` writes it.
      results: on the dev set, such as `{"eval_accuracy": 0.9, ...}`; for several seeds or settings
        those of the best setting's runs: median, `_min` and `_max`. Empty without a dev set.
    """

    def __init__(self, output_dir: str, stack: str | None = None) -> None:
        record = _record(output_dir)
        base = _base_of(_record(os.path.join(output_dir, record.get("best", ""))))
        super().__init__(os.path.join(output_dir, "adapter"), base=base, stack=stack)
        self.output_dir = output_dir
        self.results: dict[str, float] = record.get("eval") or _sweep_results(output_dir)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the adapter directory. Raises `InputError` if another adapter is there."""
        self.model.save_adapter(self.adapters[0], folder)

    def export(self, folder: str | os.PathLike[str], merge: bool = False) -> None:
        """Writes a SavedModel that takes texts.

        With `merge` the base's weights take in those of LoRA or (IA)^3, and the SavedModel is as
        fast as the base alone. Raises `InputError` if something else is in the folder, or for
        another method with `merge`.
        """
        name, path = self.adapters[0], storage.path_of(folder)
        SavedModelDir(path).require_not_a_result(own=self.output_dir)
        config, vocabulary = self.model.config(name), self.model.base.vocabulary
        model = self.model.model(name)
        export_task(path, merged_model(model, config) if merge else model, config, vocabulary)


def _record(folder: str) -> dict[str, Any]:
    return read_record(os.path.join(folder, "run.json")) or {}


def _base_of(record: Mapping[str, Any]) -> Base:
    """Returns the base that the settings of a run name."""
    settings, names = record.get("flags", {}), dataclasses.fields(BaseConfig)
    return RunCache().base(BaseConfig(**{row.name: settings.get(row.name) for row in names}))


def _sweep_results(output_dir: str) -> dict[str, float]:
    path = os.path.join(output_dir, run_dir.EVALUATION)
    text = storage.read_bytes(path).decode() if storage.exists(path) else ""
    pairs = (line.partition(" = ") for line in text.splitlines())
    return {name: float(value) for name, _, value in pairs}


def train(
    texts: Any = None,
    labels: Any = None,
    others: Sequence[str] | None = None,
    *,
    task: str | None = None,
    dev: Any = None,
    text_a_column: str | int | None = None,
    text_b_column: str | int | None = None,
    output_dir: str | os.PathLike[str] | None = None,
    base_model: str | None = None,
    **options: Unpack[TrainOptions],
) -> TrainedTask:
    """Trains an adapter on texts and labels, or on plain text, with all that the commands do.

        task = abt.train(texts, labels, num_train_epochs=5)
        task(["It never arrived."])  # [{"label": "bad", "probabilities": {...}}]
        task.save("adapters/reviews")

    The texts are written as a file below `output_dir`, together with everything that the command
    writes: the same call again continues where it was interrupted, or finds itself finished.

    Args:
      texts: a list of texts or of pairs of texts, a pandas DataFrame, or the path of a table of any
        size, as `--train_file`. Taggers: lists of words. Masked words: a list of texts, or None
        with `text_files`.
      labels: a label for each: a text, or a number, which counts as its text, or as a score with
        `regression=True`; with `multi_label=True` a list of labels. Taggers: lists of tags. For a
        DataFrame or a file the name of the column of labels. Masked words have none.
      others: the second text of each, for pairs.
      task: type of the task, a key of `TASK_TYPES`. None: classification, or what the options say.
      dev: evaluation data: `(texts, labels)`, for pairs `(texts, labels, others)`, or a DataFrame
        or a file with the same columns. None: a seeded tenth of the training data, or `dev_share`
        of it; `dev_share=0` trains on all of it, without a dev set. Taggers: None is without one.
        Masked words: a list of texts; None: `dev_files`, or `dev_share` of the sequences.
      text_a_column, text_b_column: columns of DataFrames, by name, and of files, also by number.
      output_dir: None for a folder that is removed when the process ends.
      base_model: as for `load_base`.
      **options: settings of `run_classifier.py`, or of the command that trains the task:
        `learning_rate=1e-3`, `tuning="full"`, ...

    Returns:
      `TrainedTask`, a `Predictor`.

    Raises:
      InputError: for anything that the user can fix, before training.
    """
    if not isinstance(texts, str | os.PathLike):
        frames.check_arguments(texts, others, text_a_column, text_b_column)
    columns = (text_a_column, text_b_column)
    names = tuple(None if column is None else str(column) for column in columns)
    given = Given(texts, labels, others, dev, names)
    return _train(given, task, dict(options), output_dir, base_model)


def _train(
    given: Given,
    task: str | None,
    options: dict[str, Any],
    output_dir: str | os.PathLike[str] | None,
    base_model: str | None,
) -> TrainedTask:
    command, keywords = _command_of(task, options)
    data = load(str(command.python_data))(given, keywords)
    configurations = configuration_files(keywords)
    folder = _folder(output_dir)
    own = data.folder_in(folder)
    files = {os.path.join(own, name): content for name, content in data.files.items()}
    for setting, (name, content) in configurations.items():
        keywords = {**keywords, setting: os.path.join(folder, name)}
        files[os.path.join(folder, name)] = content
    decided: dict[str, Value] = {
        **data.settings,
        **{setting: os.path.join(own, name) for setting, name in data.paths.items()},
        "do_train": True,
        "output_dir": folder,
        "base_model": base_model,
    }
    try:
        config = _config(command, keywords, decided)
        checks.check(config)
        if not config.sweeps.sweep:
            _check_loads_again(config)
        warn_of_ineffective_flags(config, spell_for_python)
        paths.check_writable(f"--output_dir={folder}", folder)
        for path, content in files.items():
            storage.write_bytes(path, content)
        if config.sweeps.sweep:  # Its runs may differ, and any of them may be the best.
            for run_config in RunList(config, score=lambda results: 0.0).checked:
                _check_loads_again(run_config)
        importlib.import_module(command.job).run(config)
    except InputError as error:
        raise type(error)(spell_for_python(spell_for_command(error))) from error
    return TrainedTask(folder, options.get("stack"))


def _check_loads_again(config: RunConfig) -> None:
    """Raises `InputError` for a training whose result a `TrainedTask` cannot load."""
    tuning, base = config.method.tuning, config.base
    if tuning in MULTITASK_TUNINGS:
        raise Conflict(
            f"--tuning={tuning} trains several tasks together, and train has one. Leave it out."
        )
    has_weights = base.base_model or base.init_checkpoint
    is_random = base.vocab_file and base.bert_config_file and not has_weights
    if is_random and tuning not in FULL_METHODS:
        raise Missing(
            f"With --vocab_file and --bert_config_file alone the base has random weights, which "
            f"are not stored with --tuning={tuning}. Add --init_checkpoint or --base_model, or use "
            "--tuning=full."
        )


def _command_of(task: str | None, options: dict[str, Any]) -> tuple[Command, dict[str, Any]]:
    """The command that trains a type of task, and the options with the type. Raises `InputError`.

    Args:
      task: name of a type; None for a table, whose type the options choose.
      options: those of the user.
    """
    if task is None:
        return Command.CLASSIFIER, options
    kind = TASK_TYPES.get(task)
    if kind is None:
        message = f"task must be one of {list(TASK_TYPES)}. Received: {preview(task)}"
        raise InputError(message, "task")
    command = Command(kind.command.split()[0].removesuffix(".py"))
    if command.python_data is None:
        raise Unsupported(f"train has no task {task!r}: use {command.value}.py.", "task")
    takes_type = any(row.name == "task_type" for row in python_options(command))
    return command, options | ({"task_type": task} if takes_type else {})


def _folder(output_dir: str | os.PathLike[str] | None) -> str:
    if output_dir is not None:
        return expand_user(storage.path_of(output_dir))
    folder = tempfile.mkdtemp(prefix="adapter_bert_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _config(
    command: Command, options: Mapping[str, Any], decided: Mapping[str, Value]
) -> RunConfig:
    rows = python_options(command)
    known = {row.name for row in rows}
    if unknown := [name for name in options if name not in known]:
        raise InputError(f"train has no arguments {preview(unknown)} for this task.")
    for row in rows:
        if row.path and not row.several and isinstance(options.get(row.name), Mapping):
            raise InputError(
                f"{row.name} names a file or folder. Received: {preview(options[row.name])}",
                row.name,
            )
    given = {name: value for name, value in {**decided, **options}.items() if value is not None}
    values: dict[str, Value] = {
        name: parse_value(BY_NAME[name], value) for name, value in given.items()
    }
    return RunConfig.from_values(command, values, values)


def _signature() -> inspect.Signature:
    """Returns the signature of `train` with a keyword for each option."""
    own = inspect.signature(train)
    named = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    options = [
        inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=row.default)
        for row in python_options()
    ]
    return own.replace(parameters=[*named, *options])


# Completion in notebooks shows the options by name.
train.__signature__ = _signature()  # type: ignore[attr-defined]
