"""What a run leaves in `--output_dir`; each file is written whole or not at all."""

import fnmatch
import json
import os
import resource
import shlex
import sys

import tensorflow as tf

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import parse_json
from adapter_bert_tf.store.folders import require_outside_fusions


def remove(folder, patterns):
    """Removes the files in `folder` that match one of the patterns; folders stay."""
    for name in storage.listdir(folder) if storage.isdir(folder) else []:
        path = os.path.join(folder, name)
        if any(fnmatch.fnmatchcase(name, p) for p in patterns) and not storage.isdir(path):
            storage.remove(path)


def read_record(path):
    """The JSON object in a file; None if it is not there or damaged."""
    if not storage.exists(path):
        return None
    try:
        record = parse_json(storage.read_bytes(path))
    except (ValueError, tf.errors.OpError):  # The latter of a folder.
        return None
    return record if isinstance(record, dict) else None


def is_whole(record, evaluated):
    """Whether a `run.json` says what another run, or a sweep, takes from it.

    Args:
      record: what `read_record` returns.
      evaluated: whether it must have results.
    """
    parameters, results = record.get("parameters"), record.get("eval")
    numbers = [record.get(name) for name in ("train_seconds", "examples_per_second")]
    numbers += (
        [parameters.get(name) for name in ("trained", "total")]
        if isinstance(parameters, dict)
        else [None]
    )
    if evaluated:
        numbers += results.values() if isinstance(results, dict) and results else [None]
    return isinstance(record.get("flags"), dict) and all(
        isinstance(number, int | float) for number in numbers
    )


RECORDS = ("sweep.json", "run.json")
OWNER = "flags.json"  # In `checkpoints`.
# What a run writes besides the results of its tasks.
WRITTEN = ("eval_results.txt", "metrics.jsonl", "sweep.csv", *RECORDS)
# What is a file in an output folder, and what must be a folder, if they are there.
FILES = (
    *(".lock", *WRITTEN, "report.html"),
    *(f"checkpoints/{OWNER}", "checkpoints/best.json", "checkpoints/checkpoint"),
)
FOLDERS = ("checkpoints",)


def require_files(folder, patterns=()):
    """What a run writes must not be something else already; that is not ours to remove.

    Args:
      folder: `--output_dir`.
      patterns: of more files in it.

    Raises:
      InputError: for a folder where a file goes, a file or a dead link where a folder goes, or a
        place among the members of a fusion.
    """
    require_outside_fusions(folder)
    names = storage.listdir(folder) if patterns and storage.isdir(folder) else []
    names = [n.rstrip("/") for n in names]
    names = [n for n in names if any(fnmatch.fnmatchcase(n, pattern) for pattern in patterns)]
    for name in (*FILES, *names):
        if storage.isdir(os.path.join(folder, name)):
            raise InputError(_wrong_place(os.path.join(folder, name), "a folder", "a file"))
    for name in FOLDERS:
        path = os.path.join(folder, name)
        if storage.is_link(path) and not storage.exists(path):
            raise InputError(_wrong_place(path, "a link that leads nowhere", "a folder"))
        if storage.exists(path) and not storage.isdir(path):
            raise InputError(_wrong_place(path, "a file", "a folder"))


def require_own(folder, patterns):
    """Files that a run would replace must be those of a run. Raises `InputError`.

    Args:
      folder: `--output_dir`. It is a run's, or a sweep's, if a record of one is in it.
      patterns: of the files of results of its tasks.
    """
    if _is_a_runs(folder):
        return
    names = storage.listdir(folder) if storage.isdir(folder) else []
    foreign = [n for n in names if any(fnmatch.fnmatchcase(n, p) for p in (*WRITTEN, *patterns))]
    if foreign:
        raise InputError(
            f"{os.path.join(folder, min(foreign))} is there, and nothing says that a run wrote it. "
            "A run would replace it. Move it away, or choose another --output_dir."
        )


def _is_a_runs(folder):
    """Whether there is a record of a run; a damaged one counts, as a power cut may leave it."""
    there = [path for name in RECORDS if storage.exists(path := os.path.join(folder, name))]
    records = [read_record(path) for path in there]
    owned = storage.exists(os.path.join(folder, "checkpoints", OWNER))
    return owned or any(record is None or "flags" in record for record in records)


def _wrong_place(path, found, wanted):
    return (
        f"{path} is {found}, and a run writes {wanted} there. Move it away, or choose another "
        "--output_dir."
    )


def write_eval_results(folder, results):
    """Writes `eval_results.txt` and prints the block that adapter-bert prints."""
    write_metrics(folder, "eval_results.txt", "Eval results", results)


def write_metrics(folder, file, title, results):
    """Writes one metric a line, and prints them under a title."""
    lines = [f"{name} = {value}" for name, value in sorted(results.items())]
    storage.write_text(os.path.join(folder, file), "\n".join(lines) + "\n")
    print("\n".join([f"***** {title} *****", *(f"  {line}" for line in lines)]), flush=True)


BEGUN = "begun"  # In a record of an evaluation that has not ended.


def note_begun(folder, values):
    """Notes in a folder without a record that an evaluation writes there, so that it is known."""
    path = os.path.join(folder, "run.json")
    if not storage.exists(path):
        storage.write_text(path, json.dumps({BEGUN: True, **values}, indent=2) + "\n")


def write_run(folder, values, trained):
    """Writes `run.json`, all that another run needs to repeat this one.

    A run that did not train is added under `later_runs` if the training's record is there.
    """
    path = os.path.join(folder, "run.json")
    training = None if trained else read_record(path)
    if training and not training.get(BEGUN):
        earlier = training.get("later_runs")
        earlier = earlier if isinstance(earlier, list) else []
        values = training | {"later_runs": [*earlier, values]}
    storage.write_text(path, json.dumps(values, indent=2) + "\n")


def command():
    """The command line of this process, as text that any file can hold."""
    line = shlex.join([*_program(sys.argv[0]), *sys.argv[1:]])
    return line.encode("utf-8", "backslashreplace").decode()


def _program(name):
    """The words that start this process, of the name by which it knows itself."""
    if name.startswith("adapter-bert ") or os.path.basename(name) == "adapter-bert":
        return ["adapter-bert"]  # `adapter-bert classify` is the name, and its word comes again.
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if os.path.basename(name) == "__main__.py" and spec is not None:
        return ["python", "-m", spec.name.removesuffix(".__main__")]
    return ["python", name]


def peak_memory_mb():
    """Largest resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
