"""Analyses at the terminal.

python -m adapter_bert_tf.analysis fusion --adapter_dir=DIR --output_dir=OUT --task_name=... \
    --data_dir=...            # whom a fusion listens to, over the dev set: CSV and heat map
python -m adapter_bert_tf.analysis fusion_map --output_dir=OUT A.csv B.csv    # several in one map
python -m adapter_bert_tf.analysis embeddings --adapter_dir=DIR --output_dir=OUT
                              # of a HyperFormer: task embeddings, how alike they are, a plot

`fusion` takes the flags of run_classifier.py that say which data to read; for an adapter that
answers questions those of run_squad.py (--predict_file=...).
"""

import sys
from collections.abc import Sequence

from absl import app

from adapter_bert_tf.command.definitions import define_flags
from adapter_bert_tf.command.main import run_job
from adapter_bert_tf.command.row import Command

JOBS = {
    (Command.CLASSIFIER, "fusion"): "adapter_bert_tf.analysis.fusion_classes",
    (Command.SQUAD, "fusion"): "adapter_bert_tf.analysis.fusion_spans",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs an analysis; returns the exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    name, rest = (words[0] if words else ""), words[1:]
    if name == "fusion_map":
        from adapter_bert_tf.analysis import heat_map

        return heat_map.main(rest)
    if name == "embeddings":
        from adapter_bert_tf.analysis import embeddings

        return embeddings.main(rest)
    if name != "fusion":
        print(__doc__)
        return 0 if name in ("--help", "-h", "help") else 2
    squad = any(word.lstrip("-").startswith("predict_file") for word in rest)
    command = Command.SQUAD if squad else Command.CLASSIFIER
    define_flags(command)
    app.run(
        lambda words: run_job(JOBS[command, name], words), [f"analysis {name}", "--do_eval", *rest]
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
