"""Messages of the library, said as the commands say it: a flag for each argument."""

import re
from collections.abc import Collection

from adapter_bert_tf.command import table

FLAGS = frozenset(row.name for row in table.ROWS)
# Arguments of Python functions whose flags have another name.
RENAMED = {
    "drop_lowest": "adapter_drop",
    "train": "do_train",
    "evaluate": "do_eval",
    "predict": "do_predict",
    "export": "do_export",
    "config_path": "bert_config_file",
    "vocabulary_path": "vocab_file",
    "checkpoint": "init_checkpoint",
}


def for_command(error: Exception, flags: Collection[str] = FLAGS) -> str:
    """The message of an error, with flags instead of the arguments that it names.

    An argument is left alone in a path or in quotes: there it is something of the user's.

    Args:
      error: the arguments are those of an `InputError`.
      flags: names of the flags that the command has.
    """
    arguments = sorted(getattr(error, "arguments", ()), key=len, reverse=True)
    if not arguments:
        return str(error)
    either = "|".join(map(re.escape, arguments))
    alone = rf"(?<![\w.'\"/=-])({either})(?![\w'\"/-]|\.\w)"
    return re.sub(alone, lambda found: _flag(found[0], flags), str(error))


def _flag(argument: str, flags: Collection[str]) -> str:
    """`--top_k`, `--learning_rate=0.1`, `--header` or `--noheader`; the argument if none."""
    name, equals, value = argument.partition("=")
    flag = RENAMED.get(name, name)
    if flag not in flags:
        return argument
    if value in ("True", "False"):
        return f"--{'' if value == 'True' else 'no'}{flag}"
    return f"--{flag}{equals}" + value.strip("'\"")
