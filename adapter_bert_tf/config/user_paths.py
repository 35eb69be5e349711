"""`~/` at the start of a path: a shell leaves it alone in `--flag=~/folder`."""

import os
import re

from absl import flags


def expand_user(path: str) -> str:
    """A path with the home directory instead of a `~/` at its start.

    Args:
      path: one, or several with commas between, each with `NAME=` before it or not.
    """
    return re.sub(r"(^|[,=])(~/)", lambda found: found[1] + os.path.expanduser(found[2]), path)


class PathParser(flags.ArgumentParser):
    """Parses the flags that are paths."""

    syntactic_help = ""

    def parse(self, argument: str) -> str:
        return expand_user(argument)

    def flag_type(self) -> str:
        return "string"
