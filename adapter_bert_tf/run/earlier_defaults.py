"""Defaults of earlier versions, for runs that started with them."""

import os
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.settings import BY_NAME, EARLIER
from adapter_bert_tf.output.records import read_record
from adapter_bert_tf.output.run_dir import OWNER

RECORDS = ("sweep.json", OWNER, "run.json")


def with_earlier_defaults(config: RunConfig) -> RunConfig:
    """The configuration, with the defaults that the run in the output folder started with.

    Nothing changes what the user gave, or a run that will not be resumed.
    """
    folder = config.output.folder
    finished = storage.exists(os.path.join(folder, "run.json"))
    if not config.actions.do_train or (config.actions.overwrite and finished):
        return config
    recorded = _recorded(folder)
    if recorded is None:
        return config
    names = [name for name in EARLIER if name in config.values.keys() - config.given]
    values = {name: recorded.get(name, EARLIER[name]) for name in names}
    return config.with_defaults(**{n: v for n, v in values.items() if _is_value(n, v)})


def _is_value(name: str, value: Any) -> bool:
    """Whether a setting with an earlier default can have a value that a file holds."""
    row = BY_NAME[name]
    return isinstance(value, type(row.earlier)) and value in (row.choices or (True, False))


def _recorded(folder: str) -> dict[str, Any] | None:
    """The settings of the run in a folder; None if there is none."""
    for name in RECORDS:
        record = read_record(os.path.join(folder, name))
        if record is not None:
            settings = record if name == OWNER else record.get("flags")
            return settings if isinstance(settings, dict) else {}
    return None
