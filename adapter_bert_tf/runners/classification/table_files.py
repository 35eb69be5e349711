"""Which files of a folder are the tables of a task of the user's own."""

from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.data.tables import find_file, read_table
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.tasks.own import is_number

STEMS, ENDS = ("train", "dev", "test"), ("csv", "tsv")
ALSO_CALLED = ("validation", "valid", "val", "eval")  # By others, what is `dev` here.


def own_files(folder):
    """(extension of a folder's tables, what that of the training data is called without it).

    A table of any name is the training data if it is the only one.

    Args:
      folder: local or gs://.

    Raises:
      InputError: when there are two of a table, or tables of both kinds.
    """
    files = storage.listdir(folder) if storage.isdir(folder) else []
    names = {name.removesuffix(".gz") for name in files}
    found = {end for end in ENDS if any(f"{stem}.{end}" in names for stem in STEMS)}
    tables = [name for name in names if name.endswith((".csv", ".tsv"))]
    train = "train"
    if not found and len(tables) == 1:
        train, _, extension = tables[0].rpartition(".")
        found = {extension}
    if len(found) == 2:
        raise InputError(
            f"{folder} holds both .csv and .tsv files: {sorted(names)[:12]}. Keep one "
            "kind in a folder of its own."
        )
    extension = found.pop() if found else "tsv"
    used = [f"{stem}.{extension}" for stem in (train, "dev", "test")]
    if twice := [name for name in used if {name, f"{name}.gz"} <= set(files)]:
        raise InputError(
            f"{folder} holds both {twice[0]} and {twice[0]}.gz. Keep one of them there."
        )
    return extension, train


def say_other_names(folder, dev):
    """Names the file that may be meant as the development set, and is not read.

    Args:
      folder: local or gs://.
      dev: the name of the file that is, and that is not there.
    """
    there = set(storage.listdir(folder)) if storage.isdir(folder) else set()
    others = [dev.replace("dev", stem) for stem in ALSO_CALLED]
    if found := [name for name in others if {name, f"{name}.gz"} & there]:
        logging.warning("%s/%s is not read: a development set is called %s.", folder, found[0], dev)


def say_other_columns(task, folder, roles):
    """Names a column that is given by its number and is called otherwise in another file.

    Args:
      task: `Task` of the user's own.
      folder: of its files, local or gs://.
      roles: of `train`, `dev`, `test`: the files that are read.
    """
    columns = task.layouts[0]["train"].columns
    asked = [c for c in (columns.text_a, columns.text_b, columns.label) if c and is_number(c)]
    headers = _headers(task, folder, roles) if asked else {}
    for column in asked:
        called = {
            file: names[int(column)]
            for file, names in headers.items()
            if column not in names and int(column) < len(names)
        }
        if len(set(called.values())) > 1:
            said = ", ".join(f"{preview(name)} in {file}" for file, name in called.items())
            logging.warning("%s: column %s is %s. Is it the same?", folder, column, said)


def _headers(task, folder, roles):
    """Dict from each file that is read, and names its columns, to these names."""
    sources = [task.layouts[0][role] for role in ("train", "dev", "test") if role in roles]
    there = [s for s in sources if s.has_header and find_file(s, folder)]
    return {s.file: [cell.strip() for cell in read_table(s, folder)[0] or ()] for s in there}
