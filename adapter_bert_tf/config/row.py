"""One row of the table of flags."""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Literal, get_args

from adapter_bert_tf.config.roles import Role

Value = str | int | float | bool | None
ValueKind = Literal["string", "integer", "real", "boolean", "choice"]
PathUse = Literal["read", "written", "either"]


class Command(enum.Enum):
    """The commands, by the names of their scripts."""

    CLASSIFIER = "run_classifier"
    SQUAD = "run_squad"


@dataclasses.dataclass(frozen=True)
class Row:
    """A flag.

    Args:
      name: as on the command line, without the dashes.
      kind: of its values.
      default: its value when it is not given.
      help: one sentence or two for `--help`.
      role: what it is for.
      commands: those that have it.
      defaults: the defaults of commands that have another one.
      lowest, highest: of an integer or a real, both inclusive.
      choices: of a choice.
      only_with: another flag, and those of its values beside which this one has an effect; no
        values: beside any.
      earlier: its default, if that was another, in versions whose records may not name it.
      several: whether it names several, with commas between, each with `NAME=` before it or not.
      path: whether it names what a run reads or writes, or either: reads, but writes in training.

    Raises:
      ValueError: for a row without a role, or whose parts do not fit each other.
    """

    name: str
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
    only_with: tuple[str, tuple[Value, ...]] | None = None

    def __post_init__(self) -> None:
        self._require(isinstance(self.role, Role), "needs a role")
        self._require(self.kind in get_args(ValueKind), "is of no known kind")
        self._require(bool(self.choices) == (self.kind == "choice"), "needs choices, or no choice")
        numeric = self.kind in ("integer", "real")
        self._require(numeric or self.lowest is self.highest is None, "has bounds, but no numbers")
        self._require(self.path is None or self.kind == "string", "is a path, but no string")

    def _require(self, fits: bool, what: str) -> None:
        if not fits:
            raise ValueError(f"The row of --{self.name} {what}: {self}")

    def default_of(self, command: Command) -> Value:
        """The value in a command when the flag is not given."""
        return self.defaults.get(command, self.default)
