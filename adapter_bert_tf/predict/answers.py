"""What an adapter answers, made of its logits."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adapter_bert_tf.heads import head_of
from adapter_bert_tf.tasks.metrics import SURE


def of_classes(rows: Sequence[np.ndarray], config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Answers of classes, of any number of labels, or of scores.

    Args:
      rows: logits of each, float32 `[outputs]`; those after the adapter's own are another's.
      config: of the adapter.
    """
    if config["regression"]:
        return [{"score": float(row[0])} for row in rows]
    logits = np.stack([row[: len(config["labels"])] for row in rows])
    return [_answer(row, config) for row in head_of(config).shares(logits).numpy().tolist()]


def _answer(shares: Sequence[float], config: Mapping[str, Any]) -> dict[str, Any]:
    probabilities = dict(zip(config["labels"], shares, strict=True))
    if config["head"] == "multi_label":
        sure = [label for label, share in probabilities.items() if share >= SURE]
        return {"labels": sure, "probabilities": probabilities}
    return {
        "label": max(probabilities, key=probabilities.__getitem__),
        "probabilities": probabilities,
    }
