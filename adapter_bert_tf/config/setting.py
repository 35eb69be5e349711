"""One setting: its name, type, default, help and role."""

import dataclasses
import enum
import importlib
import types
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from adapter_bert_tf.config.roles import Role

Value = str | int | float | bool | None
ValueKind = Literal["string", "integer", "real", "boolean", "choice"]
PathUse = Literal["read", "written", "either"]
Needed = tuple[str, tuple[Value, ...]]

_KINDS: dict[type, ValueKind] = {bool: "boolean", int: "integer", float: "real", str: "string"}


class Command(enum.Enum):
    """The commands, by the names of their scripts.

    Modules and their functions are named, because only a command that runs may load them.

    Attributes:
      word: its name after `adapter-bert`.
      about: one line for `adapter-bert --help`.
      job: module with `run(config)`.
      runner: `module:class` of the `TaskRunner` of one task.
      early_check: `module:function` of the configuration, which checks the data without TensorFlow.
      python_data: `module:function` that turns the lists of `abt.train` into files and settings.
      names_task: whether `--task_name` names a known task; elsewhere it only lists several tasks.
    """

    _value_: str
    word: str
    about: str
    job: str
    runner: str
    early_check: str | None
    python_data: str | None
    names_task: bool

    CLASSIFIER = (
        "run_classifier",
        "classify",
        "train, evaluate and apply an adapter for classes or scores",
        "adapter_bert_tf.jobs.classification",
        "adapter_bert_tf.runners.classification.runner:ClassificationRunner",
        "adapter_bert_tf.runners.classification.early_checks:check_tables",
        "adapter_bert_tf.jobs.python_tables:data_of",
        True,
    )
    SQUAD = (
        "run_squad",
        "squad",
        "the same for answers to questions",
        "adapter_bert_tf.jobs.questions",
        "adapter_bert_tf.runners.questions.runner:QuestionRunner",
        None,
        None,
        False,
    )
    TAGGER = (
        "run_tagger",
        "tag",
        "the same for tags of words, such as names of people",
        "adapter_bert_tf.jobs.tagging",
        "adapter_bert_tf.runners.tagging.runner:TaggingRunner",
        "adapter_bert_tf.runners.tagging.files:check_files",
        "adapter_bert_tf.jobs.python_sentences:data_of",
        False,
    )
    ADAPT = (
        "run_adapt",
        "adapt",
        "train an adapter on plain text, to predict masked words",
        "adapter_bert_tf.jobs.plain_text",
        "adapter_bert_tf.runners.plain_text.runner:PlainTextRunner",
        "adapter_bert_tf.runners.plain_text.files:check_files",
        "adapter_bert_tf.jobs.python_plain_text:data_of",
        False,
    )

    def __new__(cls, script: str, *facts: str | bool | None) -> "Command":
        """A member whose value is the name of its script."""
        member = object.__new__(cls)
        member._value_ = script
        return member

    def __init__(self, script: str, *facts: str | bool | None) -> None:
        names = ("word", "about", "job", "runner", "early_check", "python_data", "names_task")
        for name, fact in zip(names, facts, strict=True):
            setattr(self, name, fact)


def load(place: str) -> Any:
    """Imports what `module:name` names."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


@dataclasses.dataclass(frozen=True)
class Setting:
    """A row of the table of settings, made from a field of a section.

    Args:
      name: on the command line without the dashes, in YAML files and in Python.
      section: name of the section that holds it.
      kind: type of its values.
      default: value where none is given.
      help: one or two sentences for `--help` and the page of settings.
      role: purpose of the setting.
      commands: commands that have it.
      defaults: defaults of commands that differ from `default`.
      lowest, highest: inclusive bounds of an integer or a real.
      choices: values of a choice.
      only_with: another setting, and those of its values with which this one has an effect; no
        values: any value but None.
      or_in_sweep: a setting of sweeps that gives it an effect as well.
      earlier: default of earlier versions, whose records may not name the setting.
      path: whether it is a path that a run reads, writes, or either: reads, but writes in training.
      several: whether it names several paths, separated by commas, each with an optional `NAME=`.
      patterns: commands in which it names files, folders and patterns of names, separated by
        commas.
      common: whether it leads the command's `--help`.
      in_python: whether it may be a keyword of `abt.train`.
    """

    name: str
    section: str
    kind: ValueKind
    default: Value
    help: str
    role: Role
    commands: tuple[Command, ...] = tuple(Command)
    defaults: Mapping[Command, Value] = dataclasses.field(default_factory=dict)
    lowest: float | None = None
    highest: float | None = None
    choices: tuple[str, ...] = ()
    earlier: Value = None
    path: PathUse | None = None
    several: bool = False
    patterns: tuple[Command, ...] = ()
    only_with: Needed | None = None
    or_in_sweep: str = ""
    common: bool = False
    in_python: bool = True

    def __post_init__(self) -> None:
        self._require(isinstance(self.role, Role), "needs a role")
        self._require(self.kind in get_args(ValueKind), "has an unknown kind")
        self._require(bool(self.choices) == (self.kind == "choice"), "needs choices, or no choice")
        numeric = self.kind in ("integer", "real")
        self._require(numeric or self.lowest is self.highest is None, "has bounds, but no numbers")
        self._require(self.path is None or self.kind == "string", "is a path, but no string")

    def _require(self, fits: bool, problem: str) -> None:
        if not fits:
            raise ValueError(f"The setting {self.name} {problem}: {self}")

    def default_of(self, command: Command) -> Value:
        """Returns the default in a command."""
        return self.defaults.get(command, self.default)


def setting(default: Value, help: str, role: Role, **more: Any) -> Any:
    """Returns a dataclass field that is a setting, with attributes of `Setting`."""
    metadata = {"default": default, "help": help, "role": role, **more}
    return dataclasses.field(default=default, metadata=metadata)


def settings_of_section(name: str, section: type) -> list[Setting]:
    """Returns the rows of a section, a dataclass whose fields are made by `setting`."""
    rows = []
    for field in dataclasses.fields(section):
        kind, choices = _kind_of(field.type)
        rows.append(Setting(field.name, name, kind, choices=choices, **field.metadata))
    return rows


def _kind_of(annotation: Any) -> tuple[ValueKind, tuple[str, ...]]:
    """Returns the kind of an annotation such as `int | None`, and the choices of a `Literal`."""
    if isinstance(annotation, types.UnionType):
        (annotation,) = [arg for arg in get_args(annotation) if arg is not type(None)]
    if get_origin(annotation) is Literal:
        return "choice", get_args(annotation)
    return _KINDS[annotation], ()
