"""Spelling of settings in messages: flags in commands, arguments in Python."""

import re
from collections.abc import Collection

from adapter_bert_tf.config.settings import BY_NAME

FLAGS = frozenset(BY_NAME)
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
    """Returns the message of an error with flags instead of the arguments that it names.

    Arguments in paths and quotes are the user's own text and stay. An argument alone in brackets,
    ` (adapter_dir)`, is removed if the command has no such flag.
    """
    arguments = sorted(getattr(error, "arguments", ()), key=len, reverse=True)
    if not arguments:
        return str(error)
    any_argument = "|".join(map(re.escape, arguments))
    alone = rf"(?<![\w.'\"/=-])({any_argument})(?![\w'\"/-]|\.\w)"
    message = re.sub(
        rf" \(({any_argument})\)",
        lambda match: "" if _flag(match[1], flags) == match[1] else match[0],
        str(error),
    )
    return re.sub(alone, lambda match: _flag(match[0], flags), message)


def spell_for_python(message: str) -> str:
    """Returns a message of the commands with arguments instead of the flags that it names."""
    flag = r"(?<![\w-])--(\w+)(?![\w-])"
    return re.sub(flag, lambda match: _argument(match[1]) or match[0], message)


def _argument(flag: str) -> str | None:
    """Returns `top_k` for `top_k`, `header=False` for `noheader`; None for an unknown flag."""
    if flag in FLAGS:
        return flag
    name = flag.removeprefix("no")
    return f"{name}=False" if name in FLAGS else None


def _flag(argument: str, flags: Collection[str]) -> str:
    """Returns `--top_k`, `--learning_rate=0.1`, `--noheader`; else the argument itself."""
    name, equals, value = argument.partition("=")
    flag = RENAMED.get(name, name)
    if flag not in flags:
        return argument
    if value in ("True", "False"):
        return f"--{'' if value == 'True' else 'no'}{flag}"
    return f"--{flag}{equals}" + value.strip("'\"")
