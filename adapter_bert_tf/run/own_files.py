"""Which files of a folder are the tables of a task of the user's own."""

from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError

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
    tables = [name for name in sorted(names) if name.endswith((".csv", ".tsv"))]
    if not found and len(tables) == 1:
        found, train = {tables[0].rpartition(".")[2]}, tables[0].rpartition(".")[0]
    else:
        train = "train"
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
