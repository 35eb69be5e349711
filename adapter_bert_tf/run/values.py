"""The flags of one run as a value: what a sweep changes from run to run."""

from absl import flags as absl_flags

from adapter_bert_tf.errors import InputError


class RunFlags:
    """Flag values that do not change; read as attributes.

    Args:
      definitions: dict from name to absl's flag, which knows how to parse it.
      values: dict from name to value.
      given: names that the user gave, on the command line or in a file.
    """

    def __init__(self, definitions, values, given):
        self.definitions, self.values, self.given = definitions, values, frozenset(given)

    @classmethod
    def of(cls, parsed):
        """The flags of a command, from parsed `absl.flags.FLAGS`."""
        module = parsed.find_module_defining_flag("output_dir")
        definitions = {flag.name: flag for flag in parsed.get_key_flags_for_module(module)}
        given = [name for name, flag in definitions.items() if flag.present]
        return cls(definitions, {n: flag.value for n, flag in definitions.items()}, given)

    def __getattr__(self, name):
        if name.startswith("__") or name not in self.values:
            raise AttributeError(name)
        return self.values[name]

    def changed(self, **changes):
        """The same flags with other values; text is parsed as on the command line.

        Raises:
          InputError: for an unknown flag, or a value that it does not take.
        """
        parsed = {name: self._parse(name, value) for name, value in changes.items()}
        return RunFlags(self.definitions, self.values | parsed, self.given | set(changes))

    def _parse(self, name, value):
        if name not in self.definitions:
            raise InputError(f"Unknown flag {name!r}.")
        if value is None:
            return None
        text = value if isinstance(value, bool) else str(value)
        try:
            return self.definitions[name].parser.parse(text)
        except (ValueError, TypeError, absl_flags.IllegalFlagValueError) as error:
            raise InputError(f"--{name}={value}: {error.args[0]}") from error
