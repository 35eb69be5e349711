"""Flags of a command, which absl parses, and the configuration that they give."""

from absl import flags

from adapter_bert_tf.config.parsing import parser_of
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command, Setting
from adapter_bert_tf.config.settings import SETTINGS, settings_of

flags.disclaim_key_flags()  # They count as the command's own, and `--help` lists them.


def define_flags(command: Command, flag_values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines all flags of a command; its script calls this at import."""
    for row in settings_of(command):
        _define(row, command, flag_values)


def _define(row: Setting, command: Command, flag_values: flags.FlagValues) -> None:
    default = row.default_of(command)
    match row.kind:
        case "boolean":
            flags.DEFINE_bool(row.name, default, row.help, flag_values)
        case "choice":
            flags.DEFINE_enum(row.name, default, row.choices, row.help, flag_values)
        case _:
            flags.DEFINE(
                parser_of(row), row.name, default, row.help, flag_values, flags.ArgumentSerializer()
            )


def command_of(defined: flags.FlagValues) -> Command:
    """Returns the command whose flags are defined."""
    names = {row.name for row in SETTINGS if row.name in defined}
    return next(c for c in Command if {row.name for row in settings_of(c)} == names)


def config_of(parsed: flags.FlagValues) -> RunConfig:
    """Returns the configuration of parsed flags, which are those of one command."""
    command = command_of(parsed)
    rows = settings_of(command)
    given = [row.name for row in rows if parsed[row.name].present]
    return RunConfig.from_values(command, {r.name: parsed[r.name].value for r in rows}, given)
