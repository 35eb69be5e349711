"""The configuration of a run: nested frozen dataclasses, built once at the door."""

import dataclasses
import functools
from collections.abc import Collection, Iterable, Mapping

from adapter_bert_tf.config.parsing import parse_value
from adapter_bert_tf.config.section_list import Sections
from adapter_bert_tf.config.setting import Command, Value
from adapter_bert_tf.config.settings import BY_NAME, settings_of
from adapter_bert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class RunConfig(Sections):
    """All settings of one run, by section; equal if all values are.

    Args:
      command: whose settings these are.
      given: names of the settings that the user gave. Not compared.
    """

    command: Command = dataclasses.field(kw_only=True)
    given: frozenset[str] = dataclasses.field(default=frozenset(), compare=False)

    @classmethod
    def from_values(
        cls, command: Command, values: Mapping[str, Value], given: Iterable[str] = ()
    ) -> "RunConfig":
        """Returns a configuration with these values; the others have the command's defaults."""
        defaults = {row.name: row.default_of(command) for row in settings_of(command)}
        return cls(command=command)._with(defaults | dict(values), given)

    @property
    def answers_questions(self) -> bool:
        """Whether the command's task is question answering."""
        return self.command is Command.SQUAD

    @property
    def keeps_features(self) -> bool:
        """Whether the command keeps what it makes of its files in `features_dir`."""
        return "features_dir" in self.values

    @property
    def names_task(self) -> bool:
        """Whether `--task_name` names the command's task, or several."""
        return self.command.names_task

    @functools.cached_property
    def values(self) -> dict[str, Value]:
        """Dict from name to value of the command's settings."""
        return {row.name: self.value(row.name) for row in settings_of(self.command)}

    def value(self, name: str) -> Value:
        """Returns the value of a setting."""
        value: Value = getattr(getattr(self, BY_NAME[name].section), name)
        return value

    def values_of(self, names: Iterable[str]) -> dict[str, Value]:
        """Returns a dict from name to value of those settings that the command has."""
        return {name: self.values[name] for name in names if name in self.values}

    @functools.cached_property
    def defaults(self) -> dict[str, Value]:
        """Dict from name to default of the command's settings."""
        return {row.name: row.default_of(self.command) for row in settings_of(self.command)}

    def changed(self, **changes: Value) -> "RunConfig":
        """Returns the configuration with other values, which count as given.

        Raises `InputError` for an unknown setting or an invalid value.
        """
        for name in changes:
            if name not in self.values:
                raise InputError(f"Unknown setting {name!r}.")
        parsed = {name: parse_value(BY_NAME[name], value) for name, value in changes.items()}
        return self._with(parsed, self.given | set(changes))

    def with_defaults(self, **values: Value) -> "RunConfig":
        """Returns the configuration with other values, which do not count as given."""
        return self._with(values, self.given)

    def not_given(self, names: Iterable[str]) -> "RunConfig":
        """Returns the configuration in which these settings do not count as given."""
        return dataclasses.replace(self, given=self.given - set(names))

    def only(self, names: Collection[str]) -> "RunConfig":
        """Returns a configuration of these settings; the others have their defaults."""
        return self.from_values(self.command, self.values_of(names), self.given & set(names))

    def _with(self, values: Mapping[str, Value], given: Iterable[str]) -> "RunConfig":
        changes: dict[str, dict[str, Value]] = {}
        for name, value in values.items():
            changes.setdefault(BY_NAME[name].section, {})[name] = value
        sections = {
            section: dataclasses.replace(getattr(self, section), **of_section)
            for section, of_section in changes.items()
        }
        return dataclasses.replace(self, given=frozenset(given), **sections)
