"""Makes the flags of a command known to absl, which parses them and prints `--help`."""

from typing import Any

from absl import flags

from adapter_bert_tf.config import table
from adapter_bert_tf.config.row import Command, Row
from adapter_bert_tf.config.user_paths import PathParser

flags.disclaim_key_flags()  # They count as the command's own, and `--help` lists them.


def define_flags(command: Command, flag_values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines all flags of a command; its script calls this when it is imported."""
    for row in table.rows_of(command):
        _define(row, row.default_of(command), flag_values=flag_values)


def _define(row: Row, default: Any, **where: flags.FlagValues) -> None:
    match row.kind:
        case "string" if row.path is not None:
            serializer = flags.ArgumentSerializer()
            flags.DEFINE(PathParser(), row.name, default, row.help, serializer=serializer, **where)
        case "string":
            flags.DEFINE_string(row.name, default, row.help, **where)
        case "boolean":
            flags.DEFINE_bool(row.name, default, row.help, **where)
        case "choice":
            flags.DEFINE_enum(row.name, default, row.choices, row.help, **where)
        case "integer":
            flags.DEFINE_integer(row.name, default, row.help, row.lowest, row.highest, **where)
        case "real":
            flags.DEFINE_float(row.name, default, row.help, row.lowest, row.highest, **where)
