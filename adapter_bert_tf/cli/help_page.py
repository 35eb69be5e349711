"""`--help` of the commands whose flags absl parses: their flags by section, and exit status 0.

absl itself lists flags in the order of the alphabet, and ends with 1, as after a mistake.
"""

import argparse
import signal
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from absl import flags

from adapter_bert_tf.cli.absl_flags import command_of
from adapter_bert_tf.config.section_list import SECTIONS
from adapter_bert_tf.config.setting import Command, Setting
from adapter_bert_tf.config.settings import BY_NAME, common_of, settings_of

# Dict from a word that asks for help to whether it asks for all flags.
HELP_WORDS = {**dict.fromkeys(("--help", "-help", "-h", "--helpshort"), False), "--helpfull": True}
VALUES = {"string": "TEXT", "integer": "INTEGER", "real": "NUMBER"}
WIDTH = 96
MANY = 6  # Choices that do not fit on the line of the flag.


def print_help_if_asked(words: Sequence[str], command: str | None = None, about: str = "") -> None:
    """Prints a command's flags and ends the process, if one of the words asks for help.

    Args:
      words: of the command line, after the command.
      command: its name; None for a script, which has its name and its description in a docstring.
      about: description of the command.
    """
    word = next((word for word in words if word in HELP_WORDS), None)
    if word is None:
        return
    about = about or sys.modules["__main__"].__doc__ or ""
    print_page("\n".join([about, *_page(command or sys.argv[0], HELP_WORDS[word])]))
    sys.exit(0)


def print_page(text: str) -> None:
    """Prints a page; a reader that has seen enough, such as `head`, ends the process."""
    if not hasattr(signal, "SIGPIPE"):  # Windows.
        print(text)
        return
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    print(text, flush=True)
    signal.signal(signal.SIGPIPE, before)


class CommandParser(argparse.ArgumentParser):
    """A parser whose help a reader may end; argparse allows this from Python 3.11 on."""

    def print_help(self, file: Any = None) -> None:
        print_page(self.format_help().rstrip("\n"))


def _page(command: str, full: bool) -> list[str]:
    """The lines of all groups of flags."""
    of = command_of(flags.FLAGS)
    rows, common = settings_of(of), common_of(of)
    lines = _further_flags(command)
    if full:
        for name, section in SECTIONS.items():
            lines += _group(f"{name}: {section.__doc__}", _in_section(name, rows), of)
        absl = [name for name in flags.FLAGS.flags_by_module_dict() if name.startswith("absl")]
        return lines + [flags.FLAGS.module_help(module) for module in absl]
    lines += _group("Common flags:", common, of)
    lines.append("More flags; --helpfull explains all of them:\n")
    for name in SECTIONS:
        others = [_spelled(row) for row in _in_section(name, rows) if row not in common]
        if others:
            text = f"{name + ':':<12}{' '.join(others)}"
            lines.append(_wrapped(text, "  ", " " * 14))
    return lines


def _in_section(name: str, rows: Iterable[Setting]) -> list[Setting]:
    return [row for row in rows if row.section == name]


def _group(title: str, rows: Iterable[Setting], command: Command) -> list[str]:
    lines = [f"{title}\n"]
    for row in rows:
        value = "" if row.kind == "boolean" else f"={_value(row)}"
        lines += [f"  {_spelled(row)}{value}", _wrapped(_help(row, command), " " * 6, " " * 6)]
    return [*lines, ""]


def _further_flags(command: str) -> list[str]:
    """The lines of flags that are no settings: those of an analysis."""
    own = [
        flag
        for module, rows in flags.FLAGS.flags_by_module_dict().items()
        for flag in rows
        if not module.startswith("absl") and flag.name not in BY_NAME
    ]
    if not own:
        return []
    lines = [f"Flags of {command} alone:\n"]
    for flag in own:
        lines += [f"  --{flag.name}=TEXT", _wrapped(str(flag.help), " " * 6, " " * 6)]
    return [*lines, ""]


def _spelled(row: Setting) -> str:
    return f"--[no]{row.name}" if row.kind == "boolean" else f"--{row.name}"


def _value(row: Setting) -> str:
    if row.kind == "choice":
        return "|".join(row.choices) if len(row.choices) < MANY else "CHOICE"
    return "PATH" if row.path else VALUES[row.kind]


def _help(row: Setting, command: Command) -> str:
    """The help of a setting, with its choices and default where nothing else names them."""
    text, default = row.help, row.default_of(command)
    if len(row.choices) >= MANY:
        text += f" One of: {', '.join(row.choices)}."
    if default is not None and default is not False and "Default:" not in text:
        text += f" Default: {str(default).lower()}."
    return text


def _wrapped(text: str, first: str, others: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
