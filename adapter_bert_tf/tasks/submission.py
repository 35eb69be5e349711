"""Checks the eleven files that the GLUE server takes, and packs them into one zip.

python -m adapter_bert_tf.tasks.submission --output=submission.zip out/cola out/mrpc ...
"""

import os
import pathlib
import re
import sys
import zipfile

from absl import app, flags

from adapter_bert_tf.errors import Conflict, Damaged, InputError, Missing, NotFound, Occupied
from adapter_bert_tf.tasks.glue import GLUE

HEADER = "index\tprediction"


def expected_files():
    """Dict from file name to (task, number of rows)."""
    return {
        f"{task.submission(split)}.tsv": (task, rows)
        for task in GLUE
        for split, rows in task.test_rows.items()
    }


def find_files(folders):
    """Dict from file name to path. Raises `InputError` for a missing or repeated file."""
    path_by_name, missing = {}, []
    for name, (task, _) in expected_files().items():
        paths = [path for folder in folders if (path := pathlib.Path(folder, name)).is_file()]
        if len(paths) > 1:
            raise Conflict(
                f"{name} is there {len(paths)} times: {', '.join(map(str, paths))}. "
                "Name only the folder that you mean."
            )
        if paths:
            path_by_name[name] = paths[0]
        else:
            missing.append(f"{name} (--task_name={task.name} --do_predict)")
    if missing:
        raise NotFound(
            f"{len(missing)} of {len(expected_files())} files are missing in "
            f"{', '.join(map(str, folders))}: {', '.join(missing)}"
        )
    return path_by_name


def check_file(path, task, rows):
    """Checks a file; returns the number of different labels. Raises `InputError`."""
    try:
        lines = path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise Damaged(f"{path} is not UTF-8 text: {error}") from error
    if lines[0] != HEADER:
        raise Damaged(f"{path}, line 1: expected {HEADER!r}. Received: {lines[0][:80]!r}")
    if len(lines) - 1 != rows:
        raise Damaged(
            f"{path}: expected {rows} predictions. Received: {len(lines) - 1}. Was "
            "another test file predicted?"
        )
    labels = set()
    for number, line in enumerate(lines[1:]):
        index, _, label = line.partition("\t")
        location = f"{path}, line {number + 2}"
        if index != str(number):
            raise Damaged(f"{location}: expected index {number}. Received: {line!r}")
        if not _is_label(task, label):
            allowed = f"one of {list(task.labels)}" if task.labels else "a number from 0 to 5"
            raise Damaged(f"{location}: expected {allowed}. Received: {label!r}")
        labels.add(label)
    return len(labels)


def _is_label(task, label):
    if task.labels:
        return label in task.labels
    return bool(re.fullmatch(r"[0-9]+(\.[0-9]+)?", label)) and float(label) <= task.score_range[1]


def _is_submission(path):
    try:
        with zipfile.ZipFile(path) as archive:
            return set(archive.namelist()) == set(expected_files())
    except (zipfile.BadZipFile, OSError):
        return False


def pack(folders, output):
    """Writes the zip atomically; returns lines about its content. Raises `InputError`."""
    if os.path.lexists(output) and not _is_submission(output):
        raise Occupied(
            f"{output} exists and is not a zip for the GLUE server. Choose another --output, or "
            "remove it first."
        )
    files = find_files(folders)
    lines = []
    for name, path in files.items():
        task, rows = expected_files()[name]
        is_constant = check_file(path, task, rows) == 1
        note = "  all predictions are the same!" if is_constant else ""
        lines.append(f"  {name:<10} {rows:>7,} rows  {path}{note}")
    temporary = f"{output}.tmp"
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in files.items():
            archive.write(path, name)
    os.replace(temporary, output)
    return [*lines, f"{output}: {len(files)} files, ready for https://gluebenchmark.com/submit"]


def main(arguments):
    """Packs the files in the folders named on the command line."""
    try:
        if len(arguments) < 2:
            raise Missing("Name the folders with the predictions of all GLUE tasks.")
        print("\n".join(pack(arguments[1:], flags.FLAGS.output)))
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    flags.DEFINE_string("output", "submission.zip", "The zip to write.")
    app.run(main)
