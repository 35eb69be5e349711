"""The flags of one run as a value: what a sweep changes from run to run."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from absl import flags as absl_flags

from adapter_bert_tf.config.row import Value
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import truncate


@dataclasses.dataclass(frozen=True)
class Part:
    """Some of the flags of a run, for those who need no others; equal if all values are.

    Args:
      items: pairs of name and value; the values are read as attributes.
    """

    items: tuple[tuple[str, Value], ...]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "items":
            raise AttributeError(name)
        values = dict(self.items)
        if name not in values:
            raise AttributeError(f"--{name} is not among {list(values)}")
        return values[name]


class RunFlags:
    """Flag values that do not change; read as attributes.

    Args:
      definitions: dict from name to absl's flag, which knows how to parse it.
      values: dict from name to value.
      given: names that the user gave, on the command line or in a file.
    """

    def __init__(
        self,
        definitions: Mapping[str, absl_flags.Flag],
        values: Mapping[str, Value],
        given: Iterable[str],
    ) -> None:
        self.definitions, self.values, self.given = definitions, dict(values), frozenset(given)

    @classmethod
    def of(cls, parsed: absl_flags.FlagValues) -> "RunFlags":
        """The flags of a command, from parsed `absl.flags.FLAGS`."""
        module = parsed.find_module_defining_flag("output_dir")
        definitions = {flag.name: flag for flag in parsed.get_key_flags_for_module(module)}
        given = [name for name, flag in definitions.items() if flag.present]
        return cls(definitions, {n: flag.value for n, flag in definitions.items()}, given)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.values:
            raise AttributeError(name)
        return self.values[name]

    def part(self, names: Iterable[str]) -> Part:
        """Those of the flags that this command has."""
        return Part(tuple((name, self.values[name]) for name in names if name in self.values))

    def completed(self, recorded: Mapping[str, Value]) -> dict[str, Value]:
        """What a file says of another run's flags; one that it does not name had its default."""
        return {name: flag.default for name, flag in self.definitions.items()} | dict(recorded)

    def changed(self, **changes: Value) -> "RunFlags":
        """The same flags with other values; text is parsed as on the command line.

        Raises:
          InputError: for an unknown flag, or a value that it does not take.
        """
        parsed = {name: self._parse(name, value) for name, value in changes.items()}
        return RunFlags(self.definitions, self.values | parsed, self.given | set(changes))

    def with_defaults(self, **values: Value) -> "RunFlags":
        """The same flags with values that the user did not give."""
        return RunFlags(self.definitions, self.values | values, self.given)

    def as_default(self, names: Iterable[str]) -> "RunFlags":
        """The same flags, of which these count as not given."""
        return RunFlags(self.definitions, self.values, self.given - set(names))

    def _parse(self, name: str, value: Value) -> Value:
        if name not in self.definitions:
            raise InputError(f"Unknown flag {name!r}.")
        if value is None:
            return None
        text = str(value)
        try:
            given = value if isinstance(value, bool) else text
            parsed: Value = self.definitions[name].parser.parse(given)
        except (ValueError, TypeError, absl_flags.IllegalFlagValueError) as error:
            why = truncate(str(error.args[0]), 400)
            raise InputError(f"--{name}={truncate(text, 200)}: {why}") from error
        return parsed
