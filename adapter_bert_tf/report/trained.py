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
ONLY_WITH = {"top_k": "top_k", "adapter": "adapters", "adapter_size": "adapters"}


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
    rows = [
        [name, _value(name, flags[name])]
        for name in SETTINGS
        if flags.get(name) not in (None, "", False) and _means_something(name, flags)
    ]
    if record.get("learning_rate") is not None:
        rows.append(["learning_rate", f"{record['learning_rate']:.3g}"])
    rows += [[said, number(record[name], 1)] for name, said in MEASURED if name in record]
    return (
        Table(["setting", "value"], rows, "Settings, and what it took", words=True, tall=True)
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


def _means_something(name: str, flags: dict[str, Any]) -> bool:
    """Whether a flag counts beside `--tuning`."""
    of = ONLY_WITH.get(name)
    return of is None or of in str(flags.get("tuning", of))


def _value(name: str, value: Any) -> str:
    return str(value) if name == "seed" or not isinstance(value, float) else f"{value:g}"


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
