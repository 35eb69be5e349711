"""Analyses at the terminal.

python -m adapter_bert_tf.analysis ablation --adapter_dir=DIR --output_dir=OUT --task_name=... \
    --data_dir=...            # the metric without the adapters of every span of layers
python -m adapter_bert_tf.analysis influence ...    # how much each adapter changes; flags as above
python -m adapter_bert_tf.analysis compare --adapters=DIR,DIR --output_dir=OUT --task_name=... \
    --data_dir=...            # intervals, McNemar's test, the examples on which they differ
python -m adapter_bert_tf.analysis init_scale|size|variants --output_dir=OUT --task_name=... \
    --data_dir=...            # these train: by the adapters' start, by size, by kind of adapter
python -m adapter_bert_tf.analysis size_map --output_dir=OUT size.csv ...    # of several tasks
python -m adapter_bert_tf.analysis fusion --adapter_dir=DIR --output_dir=OUT --task_name=... \
    --data_dir=...            # whom a fusion listens to, over the dev set: CSV and heat map
python -m adapter_bert_tf.analysis fusion_map --output_dir=OUT A.csv B.csv    # several in one map
python -m adapter_bert_tf.analysis embeddings --adapter_dir=DIR --output_dir=OUT
                              # of a HyperFormer: task embeddings, how alike they are, a plot
python -m adapter_bert_tf.analysis report --output_dir=OUT    # draws a folder's report.html again

Those of a task take the flags of run_classifier.py; for questions those of run_squad.py
(--train_file=..., --predict_file=...).
"""

import contextlib
import itertools
import sys
from collections.abc import Sequence

from absl import app

from adapter_bert_tf.cli import analysis_flags, help_page, standalone_analyses
from adapter_bert_tf.cli.absl_flags import define_flags
from adapter_bert_tf.cli.config_file import settings_in_file
from adapter_bert_tf.cli.run_job import run_job
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.errors import InputError

# With the flags of the command whose task it is.
JOBS = {
    "ablation": "adapter_bert_tf.analysis.layers.ablation",
    "influence": "adapter_bert_tf.analysis.layers.influence",
    "compare": "adapter_bert_tf.analysis.comparison.compare",
    "init_scale": "adapter_bert_tf.analysis.sweeps.init_scale",
    "size": "adapter_bert_tf.analysis.sweeps.size",
    "variants": "adapter_bert_tf.analysis.sweeps.variants",
    "fusion": "adapter_bert_tf.analysis.composition.fusion",
}
QUESTIONS = ("predict_file", "train_file")  # Flags of which only run_squad.py knows.
CONFIG = ("--config", "-config")
# What those that train begin their command line with; what the user says comes after, and counts.
TRAINING = ("--do_train", "--num_trials=3")
FIRST = {
    "init_scale": (*TRAINING, "--adapter=adapter_bert"),  # Whose kernels are both drawn.
    "size": TRAINING,
    "variants": TRAINING,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs an analysis; returns the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    name, rest = (words[0] if words else ""), words[1:]
    if name in standalone_analyses.ALONE:
        return standalone_analyses.main(name, rest)
    if name in ("--help", "-h", "help"):
        print(__doc__)
        return 0
    if name not in JOBS:
        names = ", ".join([*JOBS, *standalone_analyses.ALONE])
        print(f"error: give one of the analyses {names}. Received: {name!r}", file=sys.stderr)
        return 2
    define_flags(Command.SQUAD if of_questions(rest) else Command.CLASSIFIER)
    analysis_flags.define(name)
    about = f"What `analyze {name}` takes; `analyze --help` says what it does.\n"
    help_page.print_help_if_asked(rest, f"analyze {name}", about)
    first = ("--do_eval", *FIRST.get(name, ()))
    options = analysis_flags.names_of(name) or None
    app.run(lambda words: run_job(JOBS[name], words, options), [f"analysis {name}", *first, *rest])
    return 0


def of_questions(words: Sequence[str]) -> bool:
    """Whether flags of questions are given, here or in the file of `--config`."""
    named = [word.lstrip("-") for word in words]
    files = [word.partition("=")[2] for word in named if word.startswith("config=")]
    files += [following for word, following in itertools.pairwise(words) if word in CONFIG]
    for file in files:
        with contextlib.suppress(InputError):  # The command reads it again, and says what is wrong.
            named += settings_in_file(file)
    return any(name.startswith(QUESTIONS) for name in named)
