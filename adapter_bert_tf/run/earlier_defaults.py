"""Defaults that another version had: what was begun with them goes on with them."""

import os
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.config import table
from adapter_bert_tf.config.run_flags import RunFlags
from adapter_bert_tf.output.records import read_record
from adapter_bert_tf.output.run_dir import OWNER

RECORDS = ("sweep.json", OWNER, "run.json")


def with_earlier_defaults(flags: RunFlags) -> RunFlags:
    """The flags, those with an earlier default as a run in the output folder has them.

    What the user gave stays, and so do all if the folder's run is not to be taken up again.
    """
    finished = storage.exists(os.path.join(flags.output_dir, "run.json"))
    if not flags.do_train or (flags.overwrite and finished):
        return flags
    theirs = _recorded(flags.output_dir)
    if theirs is None:
        return flags
    open_to_it = [name for name in table.EARLIER if name in flags.values.keys() - flags.given]
    found = {name: theirs.get(name, table.EARLIER[name]) for name in open_to_it}
    return flags.with_defaults(**{n: value for n, value in found.items() if _is_value(n, value)})


def _is_value(name: str, value: Any) -> bool:
    """Whether a flag with an earlier default can have a value that a file says."""
    row = table.row_of(name)
    return isinstance(value, type(row.earlier)) and value in (row.choices or (True, False))


def _recorded(folder: str) -> dict[str, Any] | None:
    """The flags of the run in a folder; None if there is none."""
    for name in RECORDS:
        record = read_record(os.path.join(folder, name))
        if record is not None:
            theirs = record if name == OWNER else record.get("flags")
            return theirs if isinstance(theirs, dict) else {}
    return None
