"""Analyses at the terminal.

adapter-bert analyze ablation --adapter_dir=DIR --output_dir=OUT --data_dir=...
                              # the metric without the adapters of each span of layers
adapter-bert analyze influence ...    # how much each adapter changes; same flags
adapter-bert analyze compare --adapters=DIR,DIR --output_dir=OUT --data_dir=...
                              # intervals, McNemar's test, the examples on which they differ
adapter-bert analyze init_scale|size|variants --output_dir=OUT --task_name=... \
    --data_dir=...            # train adapters of several initial scales, sizes or kinds
adapter-bert analyze size_map --output_dir=OUT size.csv ...    # of several tasks
adapter-bert analyze fusion --adapter_dir=DIR --output_dir=OUT --data_dir=...
                              # attention of a fusion to its members: CSV and heat map
adapter-bert analyze fusion_map --output_dir=OUT A.csv B.csv    # several in one map
adapter-bert analyze embeddings --adapter_dir=DIR --output_dir=OUT
                              # task embeddings of a HyperFormer, their similarity, a plot
adapter-bert analyze report --output_dir=OUT    # draws a folder's report.html again

Analyses of a task take the flags of the script that trains it, such as run_classifier.py or
run_squad.py. An adapter knows its task, its columns and its base.
"""

import contextlib
import dataclasses
import importlib
import itertools
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from absl import app, flags

from adapter_bert_tf.cli import help_page
from adapter_bert_tf.cli.absl_flags import define_flags
from adapter_bert_tf.cli.config_file import settings_in_file
from adapter_bert_tf.cli.error_handling import program_name, run_guarded
from adapter_bert_tf.cli.run_job import run_job
from adapter_bert_tf.config.parsing import expand_user
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.config.settings import BY_NAME, settings_of
from adapter_bert_tf.errors import InputError


@dataclasses.dataclass(frozen=True)
class TaskAnalysis:
    """An analysis with the flags of the command whose task it is.

    Args:
      module: whose `run(config)`, or `run(config, options)`, does the analysis.
      options: dict from its further flags to their default and help.
      first: flags before those of the user, which override them.
    """

    module: str
    options: Mapping[str, tuple[str | None, str]] = dataclasses.field(default_factory=dict)
    first: tuple[str, ...] = ()


_TRAINING = ("--do_train", "--num_trials=3")
_SUBLAYERS = "Sublayers whose adapters are removed, with commas: both, attention, feed_forward."
_ADAPTERS = "Adapter directories or output folders, with commas between; NAME=DIR gives a name."
_STACKS = "Adapters below those of --adapters, NAME=DIR with commas between; --stack is for all."
_ROWS = "JSON lines of earlier runs, with commas between, which are not repeated."
TASK_ANALYSES = {
    "ablation": TaskAnalysis(
        "adapter_bert_tf.analysis.layers.ablation", {"sublayers": ("both", _SUBLAYERS)}
    ),
    "influence": TaskAnalysis("adapter_bert_tf.analysis.layers.influence"),
    "compare": TaskAnalysis(
        "adapter_bert_tf.analysis.compare",
        {"adapters": (None, _ADAPTERS), "stacks": (None, _STACKS)},
    ),
    "init_scale": TaskAnalysis(
        "adapter_bert_tf.analysis.sweeps.init_scale",
        {"scales": (None, "Standard deviations to try (default: 1e-7 to 1).")},
        (*_TRAINING, "--adapter=adapter_bert"),  # Draws both of its kernels.
    ),
    "size": TaskAnalysis(
        "adapter_bert_tf.analysis.sweeps.size",
        {
            "sizes": (None, "Bottleneck sizes to try (default: 2 to 256)."),
            "tops": (None, "How many upper layers top-k tuning trains (default: all numbers)."),
            "rows": (None, _ROWS),
        },
        _TRAINING,
    ),
    "variants": TaskAnalysis("adapter_bert_tf.analysis.sweeps.variants", first=_TRAINING),
    "fusion": TaskAnalysis("adapter_bert_tf.analysis.composition.fusion"),
}
# Analyses that read no data of a task, with their modules and arguments of argparse.
_FOLDER = {"required": True, "type": expand_user}
_OUTPUT = ("--output_dir", {**_FOLDER, "help": "for the table and the pictures"})
STANDALONE: dict[str, tuple[str, tuple[tuple[str, dict[str, Any]], ...]]] = {
    "fusion_map": (
        "adapter_bert_tf.analysis.composition.heat_map",
        (("tables", {"nargs": "+", "metavar": "CSV", "help": "of `analyze fusion`"}), _OUTPUT),
    ),
    "size_map": (
        "adapter_bert_tf.analysis.sweeps.size_map",
        (
            ("tables", {"nargs": "+", "metavar": "FILE", "help": "size.csv, or a ledger .jsonl"}),
            ("--tasks", {"help": "only these, with commas between"}),
            _OUTPUT,
        ),
    ),
    "embeddings": (
        "adapter_bert_tf.analysis.composition.embeddings",
        (("--adapter_dir", {**_FOLDER, "help": "of a complete HyperFormer"}), _OUTPUT),
    ),
    "report": (
        "adapter_bert_tf.report.page",
        (("--output_dir", {**_FOLDER, "help": "of a run, a sweep or an analysis"}),),
    ),
}
CONFIG, ADAPTERS = "config", ("adapter_dir", "adapters")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs an analysis; returns the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    name, rest = (words[0] if words else ""), words[1:]
    if name in STANDALONE:
        return _run_standalone(name, rest)
    if name in ("--help", "-h", "help"):
        help_page.print_page(__doc__ or "")
        return 0
    if name not in TASK_ANALYSES:
        names = ", ".join([*TASK_ANALYSES, *STANDALONE])
        print(f"error: give one of the analyses {names}. Received: {name!r}", file=sys.stderr)
        return 2
    define_flags(command_for(rest))
    define_options(name)
    about = f"Flags of `analyze {name}`; `analyze --help` describes all analyses.\n"
    help_page.print_help_if_asked(rest, f"analyze {name}", about)
    analysis = TASK_ANALYSES[name]
    app.run(
        lambda words: run_job(analysis.module, words, option_names(name)),
        [f"analysis {name}", "--do_eval", *analysis.first, *rest],
    )
    return 0


def define_options(name: str) -> None:
    """Defines the further flags of an analysis for absl."""
    for option, (default, text) in TASK_ANALYSES[name].options.items():
        flags.DEFINE_string(option, default, text)


def option_names(name: str) -> list[str] | None:
    """Returns the names of the further flags of an analysis; None if there are none."""
    return list(TASK_ANALYSES[name].options) or None


def command_for(words: Sequence[str]) -> Command:
    """The command of the given flags, also of those in the file of `--config`.

    The command that has most of the flags; of several the one whose adapter is given, or without
    an adapter and a task the tagger, if it reads the files in --data_dir.
    """
    names = [word.lstrip("-") for word in words if word.startswith("-")]
    given = dict(name.partition("=")[::2] for name in names)
    pairs = itertools.pairwise(words)
    given |= {a.lstrip("-"): b for a, b in pairs if a.startswith("-") and "=" not in a}
    with contextlib.suppress(InputError):  # The command reads it again, and reports errors.
        given = settings_in_file(given[CONFIG]) | given if given.get(CONFIG) else given
    own = {command: {row.name for row in settings_of(command)} for command in Command}
    known = {command: len(own[command] & _flag_names(given)) for command in Command}
    likely = [command for command in Command if known[command] == max(known.values())]
    if len(likely) > 1 and (folders := next((given[n] for n in ADAPTERS if given.get(n)), None)):
        likely = [c for c in likely if c is _command_of_adapter(str(folders))] or likely
    elif len(likely) > 1 and not given.get("task_name") and _has_tags(given.get("data_dir")):
        return Command.TAGGER
    return likely[0]


def _flag_names(given: Collection[str]) -> set[str]:
    """Names of settings; `nodo_eval` is `do_eval`."""
    return {name if name in BY_NAME else name.removeprefix("no") for name in given}


def _has_tags(folder: Any) -> bool:
    """Whether a local folder has files of tagged words to train on or to evaluate on."""
    from adapter_bert_tf.retry import is_remote
    from adapter_bert_tf.runners.tagging.files import files_in

    if not folder or is_remote(str(folder)):
        return False
    with contextlib.suppress(InputError, OSError):
        return any(files_in(expand_user(str(folder)), split) for split in ("train", "dev"))
    return False


def _command_of_adapter(folders: str) -> Command | None:
    """The command of the type of the first of `[NAME=]DIR,...`; None if it cannot be read."""
    from adapter_bert_tf.store.directory import parse_named_folders
    from adapter_bert_tf.store.files import read_adapter_config
    from adapter_bert_tf.store.multitask import common_type, is_several, types_of
    from adapter_bert_tf.task_types import type_of

    with contextlib.suppress(InputError, OSError):
        for _, folder in parse_named_folders(expand_user(folders)):
            config = read_adapter_config(folder)
            kind = common_type(types_of(config)) if is_several(config) else type_of(config)
            return Command(kind.command.split()[0].removesuffix(".py"))
    return None


def _run_standalone(name: str, arguments: Sequence[str]) -> int:
    module, rows = STANDALONE[name]
    program = f"{program_name('adapter_bert_tf.analysis')} {name}"
    parser = help_page.CommandParser(prog=program)
    for argument, options in rows:
        parser.add_argument(argument, **options)
    parsed = parser.parse_args(arguments)
    command = shlex.join([*program.split(), *arguments])

    def run() -> int:
        importlib.import_module(module).run(parsed, command)
        return 0

    return run_guarded(run, vars(parsed))
