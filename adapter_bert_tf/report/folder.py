"""Reads the files of an output folder; missing and damaged files are tolerated."""

import csv
import dataclasses
import io
import math
import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

from adapter_bert_tf import storage
from adapter_bert_tf.errors import NotFound
from adapter_bert_tf.sanitize import parse_json, preview
from adapter_bert_tf.task_types import type_of_details

MAX_BYTES = 128 << 20  # Of a file: metrics.jsonl of the most steps has 105 million.
# Raised by reading a damaged file or using its values.
READ_ERRORS = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)
DETAILS = re.compile(r"(?:(.*)_)?eval_details(?:_(.*))?\.json")
CLASSES = re.compile(r"(?:(.*)_)?eval_classes(?:_(.*))?\.tsv")
T = TypeVar("T")
Key = tuple[str, str]  # An evaluated set: task (of several) and split (of two), or "".


@dataclasses.dataclass
class Contents:
    """Contents of an output folder, by file: `run.json`, `metrics.jsonl`, and so on."""

    folder: str
    names: list[str]  # Of the files and folders in it.
    record: dict[str, Any] = dataclasses.field(default_factory=dict)
    steps: list[dict[str, float]] = dataclasses.field(default_factory=list)
    results: dict[str, float] = dataclasses.field(default_factory=dict)
    details: dict[Key, dict[str, Any]] = dataclasses.field(default_factory=dict)
    classes: dict[Key, list[list[str]]] = dataclasses.field(default_factory=dict)  # With a header.
    runs: list[dict[str, str]] = dataclasses.field(default_factory=list)
    damaged: list[str] = dataclasses.field(default_factory=list)  # A sentence for each file.

    @property
    def flags(self) -> dict[str, Any]:
        """The flags of the run."""
        flags = self.record.get("flags")
        return flags if isinstance(flags, dict) else {}

    @property
    def data(self) -> dict[str, dict[str, Any]]:
        """The record of each task's data; a single task has the name ""."""
        tasks = self.record.get("tasks")
        return tasks if isinstance(tasks, dict) else {"": self.record}

    @property
    def chosen_by(self) -> list[str]:
        """Names of the results that select runs and weights, guessed for older records."""
        names = self.record.get("chosen_by")
        if isinstance(names, list):
            return [str(name) for name in names]
        metrics = [n for n in self.record.get("eval") or self.results if "loss" not in n]
        preferred = [n for n in metrics if n in ("f1", "eval_average")]
        return (preferred or [n for n in metrics if n != "global_step"])[:1]

    def read(self, name: str, parse: Callable[[str], T], default: T) -> T:
        """Reads a file with `parse`; returns `default` for a missing or damaged file."""
        if name not in self.names:
            return default
        try:
            content = storage.read_bytes(os.path.join(self.folder, name), MAX_BYTES + 1)
            if len(content) > MAX_BYTES:
                raise ValueError("it is too large")
            return parse(content.decode("utf-8"))
        except (*READ_ERRORS, csv.Error) as error:
            self.damaged.append(f"{name} is damaged and not shown ({preview(str(error), 120)}).")
            return default


def read(folder: str) -> Contents:
    """Reads the contents of an output folder. Raises `InputError` if it does not exist."""
    if not storage.isdir(folder):
        raise NotFound(f"The folder {folder!r} does not exist. Give the --output_dir of a run.")
    contents = Contents(folder, sorted(name.rstrip("/") for name in storage.listdir(folder)))
    contents.record = contents.read("run.json", _parse_object, {})
    contents.steps = contents.read("metrics.jsonl", _parse_steps, [])
    contents.results = contents.read("eval_results.txt", _parse_results, {})
    contents.runs = contents.read("sweep.csv", _parse_runs, [])
    for name in contents.names:
        if match := DETAILS.fullmatch(name):
            contents.details[_key(match)] = contents.read(name, _parse_details, {})
        elif match := CLASSES.fullmatch(name):
            contents.classes[_key(match)] = contents.read(name, _parse_classes, [])
    contents.details = {key: details for key, details in contents.details.items() if details}
    contents.classes = {key: table for key, table in contents.classes.items() if table}
    return contents


def _key(match: re.Match[str]) -> Key:
    return match[1] or "", match[2] or ""


def _parse_object(text: str) -> dict[str, Any]:
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    return value


def _parse_steps(text: str) -> list[dict[str, float]]:
    """Parses the valid rows; the last row may be incomplete after a kill."""
    rows = []
    for line in text.splitlines():
        try:
            row = parse_json(line)
        except ValueError:
            continue
        if isinstance(row, dict) and type(row.get("step")) in (int, float):
            rows.append({n: x for n, x in row.items() if isinstance(x, int | float)})
    if text.strip() and not rows:
        raise ValueError("it has no row of metrics")
    return rows


def _parse_results(text: str) -> dict[str, float]:
    pairs = [line.partition(" = ") for line in text.splitlines() if line.strip()]
    return {name: float(value) for name, _, value in pairs}


def _parse_runs(text: str) -> list[dict[str, str]]:
    rows = list(csv.DictReader(io.StringIO(text)))
    if rows and "seed" not in rows[0]:
        raise ValueError("it has no column `seed`")
    return [{str(n): x or "" for n, x in row.items() if n is not None} for row in rows]


def _parse_classes(text: str) -> list[list[str]]:
    rows = list(csv.reader(io.StringIO(text), delimiter="\t"))
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows) or len(rows[0]) < 5:
        raise ValueError("its rows and its header differ in length")
    for row in rows[1:]:
        if not all(math.isfinite(float(cell)) for cell in row[1:]):
            raise ValueError("a cell is not a number")
    return rows


def _parse_details(text: str) -> dict[str, Any]:
    details = _parse_object(text)
    if type_of_details(details.get("kind")) is None:
        raise ValueError("its kind of task is unknown")
    return details
