"""`--help` of the commands whose flags absl parses: their flags, and exit status 0.

absl itself ends with 1, as after a mistake, and lists only the flags of the script that runs.
"""

import sys
from collections.abc import Sequence

from absl import app, flags

# Dict from a word that asks for help to whether only the command's own flags are listed.
HELP_WORDS = {"--help": True, "-help": True, "-h": True, "--helpshort": True, "--helpfull": False}
ROOMS = "adapter_bert_tf."


def print_help_if_asked(words: Sequence[str], command: str | None = None, about: str = "") -> None:
    """Prints a command's flags and ends the process, if one of the words asks for help.

    Args:
      words: of the command line, after the command.
      command: its name; None for a script, whose docstring and flags absl finds.
      about: description of the command.
    """
    word = next((word for word in words if word in HELP_WORDS), None)
    if word is None:
        return
    if command:
        sys.argv[0], sys.modules["__main__"].__doc__ = command, about
        of_script = flags.FLAGS.find_module_defining_flag("output_dir")
        for module, rows in list(flags.FLAGS.flags_by_module_dict().items()):
            for row in rows if module == of_script or module.startswith(ROOMS) else ():
                flags.FLAGS.register_key_flag_for_module(command, row)
    app.define_help_flags()
    app.usage(shorthelp=HELP_WORDS[word], writeto_stdout=True, exitcode=0)
