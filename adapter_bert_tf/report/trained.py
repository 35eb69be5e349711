"""What was trained: the parameters by group, and the settings that decide."""

from typing import Any

from adapter_bert_tf.report.blocks import Block, Table, number
from adapter_bert_tf.report.folder import Contents

# Of the flags, in the order of the page, those that readers ask for first.
SETTINGS = (
    *("task_name", "base_model", "init_checkpoint", "tuning", "adapter", "adapter_size"),
    *("adapter_layers", "top_k", "fuse", "init_from", "num_train_epochs", "train_batch_size"),
    *("gradient_accumulation_steps", "max_seq_length", "max_train_examples", "optimizer"),
    *("warmup_proportion", "weight_decay", "dropout", "class_weights", "label_smoothing"),
    *("sampling_temperature", "keep", "eval_every_steps", "patience", "precision", "seed"),
    *("folds", "fold", "num_trials", "sweep"),
)
# Those that mean nothing as they usually are, and those that count beside one `--tuning` only.
USUAL = {"gradient_accumulation_steps": 1, "num_trials": 1, "keep": "last", "label_smoothing": 0.0}
ONLY_WITH = {"top_k": "top_k", "adapter": "adapters", "adapter_size": "adapters"}
SEVERAL = ("sampling_temperature",)


def blocks(contents: Contents) -> list[Block]:
    """Tables of the parameters, the settings, and the data."""
    made = (_parameters(contents), _settings(contents), _data(contents))
    return [table for table in made if table is not None]


def share_trained(contents: Contents) -> float | None:
    """Share of all parameters that is trained."""
    counts = contents.record.get("parameters") or {}
    return counts["trained"] / counts["total"] if counts.get("total") else None


def _parameters(contents: Contents) -> Table | None:
    counts = contents.record.get("parameters")
    if not counts:
        return None
    total = counts["total"]
    named = {**counts.get("groups", {}), "all": (counts["trained"], total)}
    rows = [
        [group, number(part), number(whole), f"{part / total:.3%}"]
        for group, (part, whole) in named.items()
    ]
    header = ["group", "trained", "of", "share of all"]
    return Table(header, rows, "Parameters, by group", marked=len(rows) - 1)


def _settings(contents: Contents) -> Table | None:
    flags, record = contents.flags, contents.record
    rows = [[name, _value(flags[name])] for name in SETTINGS if _is_told(name, flags)]
    size = (record.get("adapter") or {}).get("bottleneck_size")
    if size is not None and not _is_told("adapter_size", flags):
        rows.append(["adapter_size", number(size)])
    if record.get("learning_rate") is not None:
        rows.append(["learning_rate", f"{record['learning_rate']:.3g}"])
    since = record.get("resumed_from_step")
    rows += [
        [_since(since, name, said), number(record[name], 1)]
        for name, said in MEASURED
        if name in record
    ]
    return (
        Table(["setting", "value"], rows, "Settings, and what it took", words=True, place="tall")
        if rows
        else None
    )


MEASURED = (
    ("global_step", "steps"),
    ("train_seconds", "seconds of training"),
    ("examples_per_second", "examples/s"),
    ("replicas", "devices"),
    ("peak_memory_mb", "peak memory, MB"),
)


TIMED = ("train_seconds", "examples_per_second")


def _since(step: Any, name: str, said: str) -> str:
    """What was measured of a part: a run that goes on knows only the time since."""
    return f"{said}, since step {number(step)}" if step and name in TIMED else said


def _is_told(name: str, flags: dict[str, Any]) -> bool:
    """Whether a flag has a value, and one that counts beside the others."""
    value = flags.get(name)
    if value is None or value is False or value in ("", USUAL.get(name)):
        return False
    if name in SEVERAL and "," not in str(flags.get("task_name")):
        return False
    return ONLY_WITH.get(name, "") in str(flags.get("tuning", ""))


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _data(contents: Contents) -> Table | None:
    rows = []
    for task, found in contents.data.items():
        for split, count in (found.get("examples") or {}).items():
            cut = (found.get("share_cut") or {}).get(split)
            sha256 = (found.get("data_sha256") or {}).get(split)
            row = [f"{task} {split}".strip(), number(count)]
            rows.append([*row, "" if cut is None else f"{cut:.1%}", str(sha256 or "")[:12]])
    header = ["split", "examples", "cut to length", "SHA-256 begins"]
    return Table(header, rows, "Data") if rows else None
