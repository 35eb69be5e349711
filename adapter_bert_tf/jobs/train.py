"""`train`: the command for a table of one's own, as one call in Python."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags as absl_flags

from adapter_bert_tf import storage
from adapter_bert_tf.config import checks, table
from adapter_bert_tf.config.absl_flags import define_flags
from adapter_bert_tf.config.ineffective_flags import warn_of_ineffective_flags
from adapter_bert_tf.config.messages import spell_for_command, spell_for_python
from adapter_bert_tf.config.row import Command
from adapter_bert_tf.config.run_flags import RunFlags
from adapter_bert_tf.config.user_paths import expand_user
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.jobs import classification, python_tables
from adapter_bert_tf.output import run_dir
from adapter_bert_tf.output.records import read_record
from adapter_bert_tf.predict import frames
from adapter_bert_tf.predict.predictor import Predictor
from adapter_bert_tf.run.checks import paths
from adapter_bert_tf.sanitize import preview, truncate
from adapter_bert_tf.serving.export import export_task
from adapter_bert_tf.serving.saved_model_dir import SavedModelDir

# What the texts decide, or `TrainedTask` does.
DECIDED = ("task_name", "data_dir", "label_column", "do_predict", "do_export", "adapter_dir")
# What only a command line can mean, and what leaves no one adapter.
NOT_HERE = ("config", "dry_run", "folds", "fold", "export_dir")


class TrainedTask(Predictor):
    """A task that `train` has trained: it predicts, is saved and exported.

    Attributes:
      output_dir: all that the training left, as `run_classifier.py` leaves it.
      results: of the dev set, such as `{"eval_accuracy": 0.9, ...}`; of several seeds or settings
        those of the best one's runs: median, `_min` and `_max`.
    """

    def __init__(self, output_dir: str, base: str | None) -> None:
        super().__init__(os.path.join(output_dir, "adapter"), base=base)
        self.output_dir = output_dir
        record = read_record(os.path.join(output_dir, "run.json")) or {}
        self.results: dict[str, float] = record.get("eval") or _of_several(output_dir)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the adapter directory. Raises `InputError` if another adapter is there."""
        self.model.save_adapter(self.adapters[0], folder)

    def export(self, folder: str | os.PathLike[str]) -> None:
        """Writes a SavedModel that takes texts. Raises `InputError` if something else is there."""
        name, path = self.adapters[0], storage.path_of(folder)
        SavedModelDir(path).require_not_a_result(own=self.output_dir)
        config, vocabulary = self.model.config(name), self.model.base.vocabulary
        export_task(path, self.model.model(name), config, vocabulary)


def _of_several(output_dir: str) -> dict[str, float]:
    """The results of a sweep, as it leaves them."""
    lines = storage.read_bytes(os.path.join(output_dir, run_dir.EVALUATION)).decode().splitlines()
    return {name: float(value) for name, _, value in (line.partition(" = ") for line in lines)}


def train(
    texts: Any,
    labels: Any,
    others: Sequence[str] | None = None,
    *,
    dev: Any = None,
    text_a_column: str | None = None,
    text_b_column: str | None = None,
    output_dir: str | os.PathLike[str] | None = None,
    base_model: str | None = None,
    **flags: Any,
) -> TrainedTask:
    """Trains an adapter on texts and labels, with all that `run_classifier.py` does for a table.

        task = abt.train(texts, labels, num_train_epochs=5)
        task(["It never arrived."])  # [{"label": "bad", "probabilities": {...}}]
        task.save("adapters/reviews")

    The texts are written as a table below `output_dir`, where all is left that the command leaves:
    the same call again goes on where it was interrupted, or finds itself done.

    Args:
      texts: a list of texts or of pairs of texts, or a pandas DataFrame.
      labels: a label for each: a text, or a number, which counts as its text, or as a score with
        `regression=True`; with `multi_label=True` a list of labels. Of a DataFrame the name of
        the labels' column.
      others: the second text of each, for pairs.
      dev: what is evaluated: `(texts, labels)`, of pairs `(texts, labels, others)`, or a DataFrame
        with the same columns. None: a seeded tenth of the training data.
      text_a_column, text_b_column: of DataFrames.
      output_dir: None for a folder that goes with the process.
      base_model: as of `load_base`.
      **flags: of `run_classifier.py`: `learning_rate=1e-3`, `tuning="full"`, `adapter_size=8`,
        `eval_every_steps=50`, `keep="best"`, `seed=1`, `overwrite=True`, ...

    Returns:
      `TrainedTask`, a `Predictor`.

    Raises:
      InputError: for whatever can be mended, before training.
    """
    columns, sets = (text_a_column, text_b_column), bool(flags.get("multi_label"))
    frames.check_arguments(texts, others, *columns)
    tables = {"train": python_tables.given(texts, labels, others, columns, sets)}
    if dev is not None:
        tables["dev"] = _given_dev(dev, labels, columns, sets)
    _require_same_columns(tables)
    folder = _folder(output_dir)
    files = python_tables.files_of(tables, folder)
    data = _of_data(tables["train"][0], os.path.dirname(next(iter(files))))
    values = _parsed(flags, **data, output_dir=folder, base_model=base_model)
    try:
        checks.check(RunFlags.of(values))
        warn_of_ineffective_flags(RunFlags.of(values), spell_for_python)
        paths.check_writable(f"--output_dir={folder}", folder)
        for path, content in files.items():
            storage.write_bytes(path, content)
        classification.run(values)
    except InputError as error:
        raise type(error)(spell_for_python(spell_for_command(error))) from error
    return TrainedTask(folder, base_model)


def _of_data(names: Sequence[str], folder: str) -> dict[str, Any]:
    """The flags that say what is read, and what is done with it."""
    *texts, label = names
    columns = dict(zip(("text_a_column", "text_b_column"), texts, strict=False))
    actions = {"do_train": True, "do_eval": True}
    return {"task_name": "tsv", "data_dir": folder, **columns, "label_column": label, **actions}


def _given_dev(
    dev: Any, labels: Any, columns: Sequence[str | None], sets: bool
) -> python_tables.Given:
    """The table of the development set. Raises `InputError`, which says that it is of it."""
    try:
        return python_tables.given(*_dev(dev, labels), columns, sets)
    except InputError as error:
        raise InputError(f"dev: {error}", *error.arguments) from error


def _require_same_columns(tables: Mapping[str, python_tables.Given]) -> None:
    """What is evaluated has as many texts as what is trained on. Raises `InputError`."""
    there = {split: names for split, (names, _) in tables.items()}
    if len({*map(len, there.values())}) > 1:
        raise InputError(
            "dev is (texts, labels), of pairs (texts, labels, others), as the training data is. "
            f"Received: {' and '.join(f'{split} of {preview(n)}' for split, n in there.items())}"
        )


def _dev(dev: Any, labels: Any) -> tuple[Any, Any, Any]:
    """(texts, labels, second texts) of the development set."""
    if frames.is_frame(dev):
        return dev, labels, None
    if isinstance(dev, list | tuple) and len(dev) in (2, 3):
        return (*dev, None)[:3]
    raise InputError(
        "dev is (texts, labels), of pairs (texts, labels, others), or a DataFrame as the first. "
        f"Received: {preview(dev)}"
    )


def _folder(output_dir: str | os.PathLike[str] | None) -> str:
    if output_dir is not None:
        return expand_user(storage.path_of(output_dir))
    folder = tempfile.mkdtemp(prefix="adapter_bert_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _parsed(flags: dict[str, Any], **ours: Any) -> absl_flags.FlagValues:
    """The command's flags, parsed as on its command line. Raises `InputError`."""
    values = absl_flags.FlagValues()
    define_flags(Command.CLASSIFIER, values)
    unknown = [name for name in flags if name not in values or name in (*DECIDED, *NOT_HERE, *ours)]
    if unknown:
        raise InputError(f"train has no arguments {preview(unknown)}.")
    _require_paths(flags)
    words = [f"--{n}={_text(v)}" for n, v in (ours | flags).items() if v is not None]
    try:
        values(["train", *words])
    except absl_flags.Error as error:
        raise InputError(spell_for_python(truncate(str(error), 400))) from error
    return values


def _require_paths(flags: Mapping[str, Any]) -> None:
    """What names a file is no dict of what could be in it. Raises `InputError`."""
    paths_of_one = (row for row in table.ROWS if row.path and not row.several)
    for name in ("sweep", *(row.name for row in paths_of_one)):
        if isinstance(flags.get(name), Mapping):
            raise InputError(
                f"{name} names a file or folder. Received: {preview(flags[name])}", name
            )


def _text(value: Any) -> str:
    """A flag's value as text: `a=2,b=1` of a dict, `1,2` of a list."""
    if isinstance(value, Mapping):
        return ",".join(f"{name}={of_it}" for name, of_it in value.items())
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
