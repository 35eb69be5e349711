"""The page of a run's output folder: written last, and never at the cost of the run."""

import os

from absl import logging

from adapter_bert_tf import report, storage
from adapter_bert_tf.sanitize import printable


def write(folder: str) -> None:
    """Writes `report.html` and prints where it is, as the last line of a run.

    What goes wrong is a warning: the run is finished, and all that it found is written.
    """
    try:
        print(printable(f"Report: {report.write(folder)}"), flush=True)
    except Exception as error:
        logging.warning(
            "The report could not be drawn (%s: %.300s). All else of the run is there; "
            "`adapter-bert analyze report --output_dir=%s` draws it again.",
            type(error).__name__,
            printable(str(error)),
            printable(folder),
        )


def is_there(folder: str) -> bool:
    """Whether a folder has its page."""
    return bool(storage.exists(os.path.join(folder, report.FILE)))
