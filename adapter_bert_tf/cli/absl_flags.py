"""The flags of a command: defined for absl, which parses them, and read as a configuration."""

from absl import flags

from adapter_bert_tf.config.parsing import parser_of
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command, Setting
from adapter_bert_tf.config.settings import settings_of

flags.disclaim_key_flags()  # They count as the command's own, and `--help` lists them.


def define_flags(command: Command, flag_values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines all flags of a command; its script calls this when it is imported."""
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


def config_of(parsed: flags.FlagValues) -> RunConfig:
    """The configuration that parsed flags give.

    Args:
      parsed: `absl.flags.FLAGS`, with the flags of one command.
    """
    command = Command.SQUAD if "train_file" in parsed else Command.CLASSIFIER
    rows = settings_of(command)
    given = [row.name for row in rows if parsed[row.name].present]
    return RunConfig.from_values(command, {r.name: parsed[r.name].value for r in rows}, given)
