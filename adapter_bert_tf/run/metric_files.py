"""Files with one metric per line, which are also printed."""

import os
from collections.abc import Mapping

from adapter_bert_tf import storage
from adapter_bert_tf.output.run_dir import EVALUATION


def write_eval_results(folder: str, results: Mapping[str, float]) -> None:
    """Writes `eval_results.txt` and prints the block that adapter-bert prints."""
    write_metrics(folder, EVALUATION, "Eval results", results)


def write_metrics(folder: str, file: str, title: str, results: Mapping[str, float]) -> None:
    """Writes one metric per line, and prints them under a title."""
    lines = [f"{name} = {value}" for name, value in sorted(results.items())]
    storage.write_text(os.path.join(folder, file), "\n".join(lines) + "\n")
    print("\n".join([f"***** {title} *****", *(f"  {line}" for line in lines)]), flush=True)
