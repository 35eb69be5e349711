"""The files of an output folder, read as far as they are there and whole."""

import csv
import dataclasses
import io
import math
import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import parse_json, preview

LARGEST = 64 << 20  # Bytes of a file.
# What reading a damaged file, or using what is in it, may end in.
DAMAGE = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)
DETAILS = re.compile(r"(?:(.*)_)?eval_details(?:_(.*))?\.json")
CLASSES = re.compile(r"(?:(.*)_)?eval_classes(?:_(.*))?\.tsv")
T = TypeVar("T")
Key = tuple[str, str]  # Of an evaluated set: task, of several, and split, if there are two.


@dataclasses.dataclass
class Contents:
    """What is in an output folder.

    Args:
      folder: its path.
      names: of the files and folders in it.
      record: of `run.json`; empty if there is none.
      steps: rows of `metrics.jsonl`.
      results: of `eval_results.txt`, by name.
      details, classes: of each evaluated set: an object, and rows with a header.
      runs: rows of `sweep.csv`.
      damaged: a sentence for each file that is there and cannot be read.
    """

    folder: str
    names: list[str]
    record: dict[str, Any] = dataclasses.field(default_factory=dict)
    steps: list[dict[str, float]] = dataclasses.field(default_factory=list)
    results: dict[str, float] = dataclasses.field(default_factory=dict)
    details: dict[Key, dict[str, Any]] = dataclasses.field(default_factory=dict)
    classes: dict[Key, list[list[str]]] = dataclasses.field(default_factory=dict)
    runs: list[dict[str, str]] = dataclasses.field(default_factory=list)
    damaged: list[str] = dataclasses.field(default_factory=list)

    @property
    def flags(self) -> dict[str, Any]:
        """The flags of the run."""
        found = self.record.get("flags")
        return found if isinstance(found, dict) else {}

    @property
    def data(self) -> dict[str, dict[str, Any]]:
        """What the record says of the data of each task; of one alone under ""."""
        tasks = self.record.get("tasks")
        return tasks if isinstance(tasks, dict) else {"": self.record}

    @property
    def chosen_by(self) -> list[str]:
        """Names of the results that runs and weights are chosen by; older records do not say it."""
        found = self.record.get("chosen_by")
        if isinstance(found, list):
            return [str(name) for name in found]
        first = [n for n in self.record.get("eval") or self.results if "loss" not in n]
        usual = [n for n in first if n in ("f1", "eval_average")]
        return (usual or [n for n in first if n != "global_step"])[:1]

    def read(self, name: str, parse: Callable[[str], T], otherwise: T) -> T:
        """A file as `parse` reads its text; `otherwise` if there is none or it is damaged."""
        if name not in self.names:
            return otherwise
        try:
            content = storage.read_bytes(os.path.join(self.folder, name), LARGEST + 1)
            if len(content) > LARGEST:
                raise ValueError("it is larger than any that a run writes")
            return parse(content.decode("utf-8"))
        except (*DAMAGE, csv.Error, tf.errors.OpError) as error:
            self.damaged.append(f"{name} is left out: it is damaged ({preview(str(error), 120)}).")
            return otherwise


def read(folder: str) -> Contents:
    """The contents of an output folder.

    Raises:
      InputError: when there is no such folder.
    """
    if not storage.isdir(folder):
        raise InputError(f"There is no folder {folder!r}. Give the --output_dir of a run.")
    found = Contents(folder, sorted(name.rstrip("/") for name in storage.listdir(folder)))
    found.record = found.read("run.json", _object, {})
    found.steps = found.read("metrics.jsonl", _steps, [])
    found.results = found.read("eval_results.txt", _results, {})
    found.runs = found.read("sweep.csv", _rows, [])
    for name in found.names:
        if match := DETAILS.fullmatch(name):
            found.details[_key(match)] = found.read(name, _details, {})
        elif match := CLASSES.fullmatch(name):
            found.classes[_key(match)] = found.read(name, _classes, [])
    found.details = {key: details for key, details in found.details.items() if details}
    found.classes = {key: table for key, table in found.classes.items() if table}
    return found


def _key(match: re.Match[str]) -> Key:
    return match[1] or "", match[2] or ""


def _object(text: str) -> dict[str, Any]:
    found = parse_json(text)
    if not isinstance(found, dict):
        raise ValueError("it holds no object")
    return found


def _steps(text: str) -> list[dict[str, float]]:
    """The rows that are whole: of a process that was killed the last may not be."""
    rows = []
    for line in text.splitlines():
        try:
            row = parse_json(line)
        except ValueError:
            continue
        if isinstance(row, dict) and type(row.get("step")) in (int, float):
            rows.append({n: x for n, x in row.items() if isinstance(x, int | float)})
    if text.strip() and not rows:
        raise ValueError("no line of it is a row of metrics")
    return rows


def _results(text: str) -> dict[str, float]:
    pairs = [line.partition(" = ") for line in text.splitlines() if line.strip()]
    return {name: float(value) for name, _, value in pairs}


def _rows(text: str) -> list[dict[str, str]]:
    rows = list(csv.DictReader(io.StringIO(text)))
    if rows and "seed" not in rows[0]:
        raise ValueError("it has no column `seed`")
    return [{str(n): x or "" for n, x in row.items() if n is not None} for row in rows]


def _classes(text: str) -> list[list[str]]:
    rows = list(csv.reader(io.StringIO(text), delimiter="\t"))
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows) or len(rows[0]) < 5:
        raise ValueError("its rows are not as long as its header")
    for row in rows[1:]:
        if not all(math.isfinite(float(cell)) for cell in row[1:]):
            raise ValueError("a cell is no number")
    return rows


def _details(text: str) -> dict[str, Any]:
    found = _object(text)
    if found.get("kind") not in ("classes", "labels", "scores", "spans"):
        raise ValueError("it says of no kind of task")
    return found
