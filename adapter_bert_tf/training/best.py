"""The best evaluation of a training, with the weights of then, beside the checkpoints."""

import dataclasses
import hashlib
import json
import os
import re
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
import tensorflow as tf
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import parse_json, preview

FILE = "best.json"
DAMAGED = (
    *(ValueError, LookupError, TypeError, AttributeError),
    *(safetensors.SafetensorError, tf.errors.OpError),
)
WEIGHTS = re.compile(r"best-(\d+)\.safetensors")
Results = dict[str, float]
Variables = dict[str, tf.Variable]


@dataclasses.dataclass(frozen=True)
class Best:
    """The best evaluation so far.

    Args:
      step: after which it was.
      score: of its results.
      results: dict from name to number.
      weights: dict from common name to array, of all trained variables; None if they are not kept.
    """

    step: int
    score: float
    results: Results
    weights: dict[str, np.ndarray] | None = None

    def write(self, folder: str) -> None:
        """Writes `best-STEP.safetensors`, if there are weights, and then `best.json`.

        The latter makes the former count, and replaces the best before it, whose weights go last:
        cut short at any point, the folder holds one of the two.
        """
        record: dict[str, Any] = {"step": self.step, "score": self.score, "results": self.results}
        if self.weights is not None:
            content = safetensors.numpy.save(self.weights)
            storage.write_bytes(_weights_path(folder, self.step), content)
            record["sha256"] = hashlib.sha256(content).hexdigest()
        storage.write_text(os.path.join(folder, FILE), json.dumps(record, indent=2) + "\n")
        _remove_weights(folder, self)

    @classmethod
    def read(cls, folder: str, start: int, trained: Variables | None) -> "Best | None":
        """The best of a run that goes on from step `start`; None if there is none.

        One of a later step, from before an interruption, counts as well: that step is evaluated
        again and gives the same, and what was the best until then is below it.

        Args:
          folder: of the checkpoints.
          start: number of steps done.
          trained: dict from common name to variable, of the weights to read; None for none.

        Raises:
          InputError: when it is damaged and will not be found again.
        """
        path = os.path.join(folder, FILE)
        if not storage.exists(path):
            return None
        step = 0
        try:
            record = parse_json(storage.read_bytes(path))
            step, score = _whole_step(record["step"]), float(record["score"])
            results = {str(name): float(value) for name, value in record["results"].items()}
            weights = None if trained is None else _read_weights(folder, record, trained)
            return cls(step, score, results, weights)
        except DAMAGED as error:
            if step > start:
                logging.warning("%s is damaged, and will be found again: %s", path, error)
                return None
            raise InputError(
                f"{path}, or the weights that it names, are damaged: {preview(error)}. They cannot "
                "be found again from the latest checkpoint: start the training from the beginning."
            ) from error

    @staticmethod
    def clean(folder: str, best: "Best | None") -> None:
        """Removes what is not of `best`: left by a killed process, or by an earlier run."""
        path = os.path.join(folder, FILE)
        if best is None and storage.exists(path):
            storage.remove(path)
        _remove_weights(folder, best)


def _whole_step(step: Any) -> int:
    if not isinstance(step, int) or not 0 <= step < 2**53:
        raise ValueError("its step is no number of steps")
    return step


def _weights_path(folder: str, step: int) -> str:
    return os.path.join(folder, f"best-{step}.safetensors")


def _remove_weights(folder: str, but_of: Best | None) -> None:
    """Removes the files of weights, but not those of a `Best`, if it is given."""
    for name in storage.listdir(folder) if storage.isdir(folder) else []:
        found = WEIGHTS.fullmatch(name)
        if found and not (but_of and int(found[1]) == but_of.step):
            path = os.path.join(folder, name)
            if not storage.isdir(path):  # A folder of this name is not of our making.
                storage.remove(path)


def _read_weights(folder: str, record: dict[str, Any], trained: Variables) -> dict[str, np.ndarray]:
    """Arrays by name, of the names and shapes of the variables `trained`. Raises `ValueError`."""
    content = storage.read_bytes(_weights_path(folder, record["step"]))
    if hashlib.sha256(content).hexdigest() != record["sha256"]:
        raise ValueError("the digest of the weights is another")
    weights = safetensors.numpy.load(content)
    ours = {name: tuple(variable.shape) for name, variable in trained.items()}
    if {name: array.shape for name, array in weights.items()} != ours:
        raise ValueError("the weights are of another model")
    return weights
