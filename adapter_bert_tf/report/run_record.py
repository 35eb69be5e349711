"""Tables from `run.json`: parameters, settings, data, and commands to reproduce the run."""

import json
import os
import shlex
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.config.settings import settings_of
from adapter_bert_tf.report.folder import Contents
from adapter_bert_tf.report.sweeps import Sweep
from adapter_bert_tf.report_blocks import Block, Code, Note, Table, format_number
from adapter_bert_tf.sanitize import preview

MAX_LATER_RUNS = 10
# The most important flags, in the order of the page.
SETTINGS = (
    *("task_name", "base_model", "init_checkpoint", "tuning", "adapter", "adapter_size"),
    *("adapter_layers", "top_k", "fuse", "init_from", "num_train_epochs", "train_batch_size"),
    *("gradient_accumulation_steps", "max_seq_length", "max_train_examples", "optimizer"),
    *("warmup_proportion", "weight_decay", "dropout", "class_weights", "label_smoothing"),
    *("sampling_temperature", "keep", "eval_every_steps", "max_eval_examples", "patience"),
    *("precision", "seed", "folds", "fold", "num_trials", "sweep"),
)
# Values without information, and settings that have an effect with one `--tuning` only.
DEFAULTS = {
    "gradient_accumulation_steps": 1,
    "num_trials": 1,
    "keep": "last",
    "label_smoothing": 0.0,
}
ONLY_WITH = {"top_k": "top_k", "adapter": "adapters", "adapter_size": "adapters"}
MULTITASK_SETTINGS = ("sampling_temperature",)
MEASUREMENTS = {
    "global_step": "steps",
    "train_seconds": "seconds of training",
    "examples_per_second": "examples/s",
    "replicas": "devices",
    "peak_memory_mb": "peak memory, MB",
}
TIME_MEASUREMENTS = ("train_seconds", "examples_per_second")


def blocks(contents: Contents) -> list[Block]:
    """Makes the tables of parameters, settings and data."""
    return [*_parameters(contents), *_settings(contents), *_data(contents)]


def later_results(contents: Contents) -> list[Block]:
    """Makes a note where a later run, such as of another adapter, has replaced the results."""
    record, own = contents.record, contents.record.get("eval")
    shown = {name: value for name, value in contents.results.items() if name != "global_step"}
    runs = [run for run in _later_runs(record) if own != shown == run.get("eval")]
    if not own or not runs:
        return []
    adapter = (runs[-1].get("flags") or {}).get("adapter_dir")
    whose = f"the adapter {adapter}" if adapter else "a later command"
    before = ", ".join(f"{name} {format_number(value)}" for name, value in own.items())
    return [
        Note(
            f"The results on this page are those of {whose} ({runs[-1].get('command')}). The run "
            f"whose training and settings it shows had {before}."
        )
    ]


def _later_runs(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [run for run in record.get("later_runs") or [] if isinstance(run, dict)]


def trained_proportion(contents: Contents) -> float | None:
    """Returns the proportion of parameters that are trained."""
    counts = contents.record.get("parameters") or {}
    return counts["trained"] / counts["total"] if counts.get("total") else None


def _parameters(contents: Contents) -> list[Block]:
    counts = contents.record.get("parameters")
    if not counts:
        return []
    total = counts["total"]
    counts_by_group = {**counts.get("groups", {}), "all": (counts["trained"], total)}
    rows = [
        [group, format_number(part), format_number(whole), f"{part / total:.3%}"]
        for group, (part, whole) in counts_by_group.items()
    ]
    header = ["group", "trained", "of", "share of all"]
    return [Table(header, rows, "Parameters, by group", marked=len(rows) - 1)]


def _settings(contents: Contents) -> list[Block]:
    flags, record = contents.flags, contents.record
    varied = Sweep(contents).flags if contents.runs else []
    shown = [name for name in SETTINGS if name not in varied and _is_relevant(name, flags)]
    rows = [[name, _value(flags[name])] for name in shown]
    adapter = record.get("adapter") or {}
    size, other_sizes = adapter.get("bottleneck_size"), adapter.get("layer_sizes", {})
    if size is not None and "adapter_size" not in {*shown, *varied}:
        rows.append(["adapter_size", format_number(size)])
    rows += [[f"adapter_size, layer {i}", format_number(n)] for i, n in other_sizes.items()]
    if record.get("learning_rate") is not None and "learning_rate" not in varied:
        rows.append(["learning_rate", f"{record['learning_rate']:.3g}"])
    # A resumed run measures time only since it resumed.
    step = record.get("resumed_from_step")
    since = f", since step {format_number(step)}" if step else ""
    for name, label in MEASUREMENTS.items():
        # One that resumed after its last step has measured no time.
        if record.get(name, 0) or (name in record and name not in TIME_MEASUREMENTS):
            label += since if name in TIME_MEASUREMENTS else ""
            rows.append([label, format_number(record[name], 1)])
    header, caption = ["setting", "value"], "Settings and cost"
    return [Table(header, rows, caption, words=True, place="tall")] if rows else []


def _is_relevant(name: str, flags: dict[str, Any]) -> bool:
    """Whether a flag has a value that has an effect."""
    value = flags.get(name)
    if value is None or value is False or value in ("", DEFAULTS.get(name)):
        return False
    if name in MULTITASK_SETTINGS and "," not in str(flags.get("task_name")):
        return False
    return ONLY_WITH.get(name, "") in str(flags.get("tuning", ""))


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _data(contents: Contents) -> list[Block]:
    rows = []
    for task, record in contents.data.items():
        for split, count in (record.get("examples") or {}).items():
            cut = (record.get("share_cut") or {}).get(split)
            sha256 = (record.get("data_sha256") or {}).get(split)
            row = [f"{task} {split}".strip(), format_number(count)]
            rows.append([*row, "" if cut is None else f"{cut:.1%}", str(sha256 or "")[:12]])
    # Only data of tags have words.
    counted = "sentences" if all("words" in one for one in contents.data.values()) else "examples"
    header = ["split", counted, "cut to length", "SHA-256 begins"]
    return [Table(header, rows, "Data")] if rows else []


def reproduction(contents: Contents) -> list[Block]:
    """Makes the commands, versions, flags and base that reproduce the run."""
    record = contents.record
    blocks: list[Block] = []
    if record.get("command"):
        path = shlex.quote(os.path.join(contents.flags.get("output_dir") or "", "run.json"))
        again = f"adapter-bert {_word(contents)} --config={path} --output_dir=AGAIN"
        blocks.append(Code(str(record["command"]), "The command"))
        blocks.append(Code(again, "The same run from its record"))
    later = [run.get("command") for run in _later_runs(record)]
    # A sweep applies the best run's adapter, which its record calls a later run.
    others = [str(command) for command in later if command != record.get("command")]
    blocks += [Code(command, "A later command") for command in others[-MAX_LATER_RUNS:]]
    flags = {f"--{name}": value for name, value in sorted(contents.flags.items())}
    for name, values, caption in (
        ("package", record.get("versions"), "Versions"),
        ("flag", flags, f"All {len(flags)} flags"),
        ("property", record.get("base"), "The base"),
    ):
        if values and isinstance(values, dict):
            rows = [[key, _format_value(value)] for key, value in values.items()]
            header = [name, "version" if name == "package" else "value"]
            blocks.append(Table(header, rows, caption, folded=True, words=True))
    return blocks


def _word(contents: Contents) -> str:
    """The command that has most of the recorded flags, as its word after `adapter-bert`."""
    flags = contents.flags.keys()
    return max(Command, key=lambda c: len(flags & {row.name for row in settings_of(c)})).word


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    return preview(json.dumps(value) if isinstance(value, dict | list) else value)
