"""Files of predictions: adapter-bert's `test_results.tsv` and the GLUE server's."""

import math
import os

import numpy as np

from adapter_bert_tf import storage
from adapter_bert_tf.runners.classification.result_names import raw_of
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.tasks.metrics import SURE
from adapter_bert_tf.tasks.task import BETWEEN_LABELS


def write_predictions(folder, task, split, indices, predicted, before=""):
    """Writes adapter-bert's `test_results.tsv` and the file that the GLUE server takes.

    Args:
      folder: `--output_dir`.
      task: `Task`.
      split: `test`, or another test split, whose name then follows `test_results`.
      indices: the examples' names.
      predicted: float `[examples, labels]` probabilities, or `[examples]` scores.
      before: what the name of the former begins with.
    """
    rows = predicted.reshape(len(predicted), -1).tolist()
    raw = os.path.join(folder, f"{before}{raw_of(split)}.tsv")
    storage.write_text(raw, "".join("\t".join(map(str, row)) + "\n" for row in rows))
    lines = [
        f"{i}\t{printable(label)}"
        for i, label in zip(indices, _written(task, predicted), strict=True)
    ]
    path = os.path.join(folder, f"{task.submission(split)}.tsv")
    storage.write_text(path, "\n".join(["index\tprediction", *lines]) + "\n")
    print(
        f"Predictions: {path}, {'scores' if task.regression else 'probabilities'}: {raw}",
        flush=True,
    )


def _written(task, predicted):
    """Predictions as GLUE wants them: label strings, or scores within their range."""
    if task.regression:
        # GLUE's; where the scores may be of any size, those that float32 has.
        digits = ".3f" if math.isfinite(task.score_range[1]) else ".7g"
        return [format(score, digits) for score in task.clip(predicted)]
    if task.multi_label:
        return [
            BETWEEN_LABELS.join(task.labels[i] for i in np.flatnonzero(row >= SURE))
            for row in predicted
        ]
    return [task.labels[i] for i in predicted.argmax(-1)]


def print_predictions(task, examples, predicted, rows=6):
    """Prints the first few predictions."""
    written = _written(task, predicted[:rows])
    for label, row, texts in zip(written, predicted, examples.texts(), strict=False):
        sure = "" if task.regression or task.multi_label else f" ({row.max():.2f})"
        print(printable(f"  {label}{sure}  {' | '.join(text[:200] for text in texts)}"))
