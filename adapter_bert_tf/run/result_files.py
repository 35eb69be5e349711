"""Files of metrics and details of a run, and its report."""

import json
import os
from collections.abc import Mapping
from typing import Any

from absl import logging

from adapter_bert_tf import report, storage
from adapter_bert_tf.output.run_dir import EVALUATION
from adapter_bert_tf.sanitize import printable


def write_eval_results(folder: str, results: Mapping[str, float]) -> None:
    """Writes `eval_results.txt` and prints the block that adapter-bert prints."""
    write_metrics(folder, EVALUATION, "Eval results", results)


def write_metrics(folder: str, file: str, title: str, results: Mapping[str, float]) -> None:
    """Writes one metric per line, and prints them under a title."""
    lines = [f"{name} = {value}" for name, value in sorted(results.items())]
    storage.write_text(os.path.join(folder, file), "\n".join(lines) + "\n")
    print("\n".join([f"***** {title} *****", *(f"  {line}" for line in lines)]), flush=True)


def write_details_file(
    folder: str, name: str, task: str, split: str, content: dict[str, Any]
) -> None:
    """Writes `NAME.json`; escaped, because texts may hold what no UTF-8 file can."""
    content = {"task": task, "split": split, **content}
    storage.write_text(os.path.join(folder, f"{name}.json"), json.dumps(content, indent=1) + "\n")


def write_report(folder: str) -> None:
    """Writes `report.html` and prints its path, as the last line of a run.

    An error is only a warning: the run is finished, and all its results are written.
    """
    try:
        print(printable(f"Report: {report.write(folder)}"), flush=True)
    except Exception as error:
        logging.warning(
            "The report could not be drawn (%s: %.300s). All other results are written; "
            "`adapter-bert analyze report --output_dir=%s` draws it again.",
            type(error).__name__,
            printable(str(error)),
            printable(folder),
        )


def has_report(folder: str) -> bool:
    """Whether a folder has a report."""
    return bool(storage.exists(os.path.join(folder, report.FILE)))
