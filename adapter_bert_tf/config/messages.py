"""Messages, as the commands say them, a flag for each argument; and the other way round."""

import re
from collections.abc import Collection

from adapter_bert_tf.config import table

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
    "base": "base_model",
}


def spell_for_command(error: Exception, flags: Collection[str] = FLAGS) -> str:
    """The message of an error, with flags instead of the arguments that it names.

    An argument is left alone in a path or in quotes: there it is something of the user's. One in
    brackets by itself, ` (adapter_dir)`, says where to give something: it is left out where the
    command has no such flag.

    Args:
      error: the arguments are those of an `InputError`.
      flags: names of the flags that the command has.
    """
    arguments = sorted(getattr(error, "arguments", ()), key=len, reverse=True)
    if not arguments:
        return str(error)
    either = "|".join(map(re.escape, arguments))
    alone = rf"(?<![\w.'\"/=-])({either})(?![\w'\"/-]|\.\w)"
    said = re.sub(
        rf" \(({either})\)",
        lambda found: "" if _flag(found[1], flags) == found[1] else found[0],
        str(error),
    )
    return re.sub(alone, lambda found: _flag(found[0], flags), said)


def spell_for_python(message: str) -> str:
    """A message of the commands with arguments instead of the flags that it names."""
    flag = r"(?<![\w-])--(\w+)(?![\w-])"
    return re.sub(flag, lambda found: _argument(found[1]) or found[0], message)


def _argument(flag: str) -> str | None:
    """`top_k` of `top_k`, `header=False` of `noheader`; None if there is no such flag."""
    if flag in FLAGS:
        return flag
    name = flag.removeprefix("no")
    return f"{name}=False" if name in FLAGS else None


def _flag(argument: str, flags: Collection[str]) -> str:
    """`--top_k`, `--learning_rate=0.1`, `--header` or `--noheader`; the argument if none."""
    name, equals, value = argument.partition("=")
    flag = RENAMED.get(name, name)
    if flag not in flags:
        return argument
    if value in ("True", "False"):
        return f"--{'' if value == 'True' else 'no'}{flag}"
    return f"--{flag}{equals}" + value.strip("'\"")
