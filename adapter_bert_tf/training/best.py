"""The best evaluation of a training and its weights, stored next to the checkpoints."""

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
from adapter_bert_tf.errors import Damaged
from adapter_bert_tf.sanitize import parse_json, preview

FILE = "best.json"
READ_ERRORS = (
    *(ValueError, LookupError, TypeError, AttributeError),
    *(safetensors.SafetensorError, OSError),
)
WEIGHTS_FILE = re.compile(r"best-(\d+)\.safetensors")
Results = dict[str, float]
Variables = dict[str, tf.Variable]


@dataclasses.dataclass(frozen=True)
class BestEvaluation:
    """The best evaluation so far."""

    step: int  # Number of training steps before it.
    score: float  # Evaluations are compared by it.
    results: Results
    weights: dict[str, np.ndarray] | None = None  # Of all trained variables; None to store none.

    def write(self, folder: str) -> None:
        """Writes `best-STEP.safetensors`, if there are weights, then `best.json`.

        Only `best.json` makes the weights valid, and the previous weights are removed last: the
        folder always holds the old or the new evaluation, whenever the process dies.
        """
        record: dict[str, Any] = {"step": self.step, "score": self.score, "results": self.results}
        if self.weights is not None:
            content = safetensors.numpy.save(self.weights)
            storage.write_bytes(_weights_path(folder, self.step), content)
            record["sha256"] = hashlib.sha256(content).hexdigest()
        storage.write_text(os.path.join(folder, FILE), json.dumps(record, indent=2) + "\n")
        _remove_weights(folder, self)

    @classmethod
    def read(cls, folder: str, start: int, trained: Variables | None) -> "BestEvaluation | None":
        """Reads the best evaluation of a run that continues from step `start`; None without one.

        It may belong to a later step, from before an interruption: evaluating that step again gives
        the same result. `trained` are the variables whose weights are read, or None. Raises
        `InputError` for a damaged evaluation of a step that will not be evaluated again.
        """
        path = os.path.join(folder, FILE)
        if not storage.exists(path):
            return None
        step = 0
        try:
            record = parse_json(storage.read_bytes(path))
            if not isinstance(record["step"], int) or not 0 <= record["step"] < 2**53:
                raise ValueError("step must be a non-negative whole number")
            step, score = record["step"], float(record["score"])
            results = {str(name): float(value) for name, value in record["results"].items()}
            weights = None if trained is None else _read_weights(folder, record, trained)
            return cls(step, score, results, weights)
        except READ_ERRORS as error:
            if step > start:
                logging.warning("%s is damaged and will be computed again: %s", path, error)
                return None
            raise Damaged(
                f"{path}, or the weights file that it names, is damaged: {preview(error)}. "
                "The latest checkpoint cannot restore it. Start the training from the beginning."
            ) from error

    @staticmethod
    def clean(folder: str, best: "BestEvaluation | None") -> None:
        """Removes the files of other evaluations, left by a killed process or an earlier run."""
        path = os.path.join(folder, FILE)
        if best is None and storage.exists(path):
            storage.remove(path)
        _remove_weights(folder, best)


def _weights_path(folder: str, step: int) -> str:
    return os.path.join(folder, f"best-{step}.safetensors")


def _remove_weights(folder: str, best: BestEvaluation | None) -> None:
    """Removes all weights files except those of `best`."""
    for name in storage.listdir(folder) if storage.isdir(folder) else []:
        match = WEIGHTS_FILE.fullmatch(name)
        if match and not (best and int(match[1]) == best.step):
            path = os.path.join(folder, name)
            if not storage.isdir(path):  # A user's folder: this program creates only a file.
                storage.remove(path)


def _read_weights(folder: str, record: dict[str, Any], trained: Variables) -> dict[str, np.ndarray]:
    """Reads arrays by name. Raises `ValueError` for another digest, name or shape."""
    content = storage.read_bytes(_weights_path(folder, record["step"]))
    if hashlib.sha256(content).hexdigest() != record["sha256"]:
        raise ValueError("the digest of the weights does not match")
    weights = safetensors.numpy.load(content)
    shapes = {name: tuple(variable.shape) for name, variable in trained.items()}
    if {name: array.shape for name, array in weights.items()} != shapes:
        raise ValueError("the weights belong to another model")
    return weights
