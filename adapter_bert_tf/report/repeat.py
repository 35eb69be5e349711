"""What a reader needs to do it again: commands, versions, every flag."""

import json
from typing import Any

from adapter_bert_tf.report.blocks import Block, Code, Table
from adapter_bert_tf.report.folder import Contents
from adapter_bert_tf.sanitize import preview

MOST_LATER = 10  # Commands that came later.


def blocks(contents: Contents) -> list[Block]:
    """The command that made the folder, those that were given later, and what they ran with."""
    record = contents.record
    made: list[Block] = []
    if record.get("command"):
        made.append(Code(str(record["command"]), "The command"))
        made.append(Code(_again(contents), "From its record"))
    later = [run for run in record.get("later_runs") or [] if isinstance(run, dict)]
    made += [Code(str(run.get("command")), "A later command") for run in later[-MOST_LATER:]]
    if isinstance(record.get("versions"), dict):
        rows = [[name, version] for name, version in record["versions"].items()]
        made.append(Table(["package", "version"], rows, "Versions", folded=True, words=True))
    given = [[f"--{name}", _said(value)] for name, value in sorted(contents.flags.items())]
    if given:
        made.append(
            Table(["flag", "value"], given, f"All {len(given)} flags", folded=True, words=True)
        )
    if isinstance(record.get("base"), dict):
        rows = [[name, _said(value)] for name, value in record["base"].items()]
        made.append(Table(["of the base", "value"], rows, "The base", folded=True, words=True))
    return made


def _again(contents: Contents) -> str:
    script = (
        "squad"
        if "predict_file" in contents.flags and "task_name" not in contents.flags
        else "classify"
    )
    return f"adapter-bert {script} --config=run.json --output_dir=AGAIN"


def _said(value: Any) -> str:
    if isinstance(value, str):
        return value
    return preview(json.dumps(value) if isinstance(value, dict | list) else value)
