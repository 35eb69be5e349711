"""The card of an adapter directory, a `README.md` for people and the Hugging Face Hub."""

import shlex
from collections.abc import Mapping
from typing import Any

import yaml

from adapter_bert_tf.adapters.languages.stack import StackConfig
from adapter_bert_tf.adapters.registry import of_kind
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.store.checks import DERIVED
from adapter_bert_tf.store.contents import adapter_of, name_of, trained_size, tuning_of
from adapter_bert_tf.store.derivation import origin_lines
from adapter_bert_tf.store.multitask import (
    NAME,
    TASKS,
    common_type,
    is_several,
    names_of,
    types_of,
)
from adapter_bert_tf.task_types import type_of

BASE_CHANGES = "includes the changed weights of the base, which other tasks cannot share"
MAX_METADATA = 1 << 16
BEGINNING = ": a BERT adapter\n\n| | |\n| --- | --- |\n"  # Follows the task's name.
FENCE = "---\n"
SEVERAL_TASKS = "text-classification"  # The Hub's pipeline of tasks that were trained together.

Config = Mapping[str, Any]


def is_card(text: str) -> bool:
    """Whether a text is a card."""
    text = without_metadata(text[:MAX_METADATA])
    return text.startswith("# ") and BEGINNING in text[:2000]


def card_page(config: Config) -> str:
    """Formats `README.md`: metadata for the Hub, then the card."""
    metadata = yaml.safe_dump(_hub_metadata(config), sort_keys=False, allow_unicode=True)
    return f"{FENCE}{metadata}{FENCE}\n{card(config)}"


def _hub_metadata(config: Config) -> dict[str, Any]:
    """Library, base, tags and result; no license, which whoever publishes the weights chooses."""
    base, adapter, metric = config.get("base_model"), adapter_of(config), config["metric"]
    pipeline = SEVERAL_TASKS if is_several(config) else type_of(config).pipeline
    tags = ["bert", "tensorflow", "adapter", *([adapter.kind] if adapter else []), config["method"]]
    values: dict[str, Any] = {
        "library_name": "adapter_bert_tf",
        "pipeline_tag": pipeline,
        "tags": list(dict.fromkeys(tags)),
    }
    if base and base["kind"] == "hub":
        values["base_model"] = base["name"]
    if metric and not is_several(config):
        task, name = printable(config["task"]), printable(metric["name"])
        result = {
            "task": {"type": pipeline},
            "dataset": {"name": task, "type": task},
            "metrics": [{"type": name, "value": metric["value"], "name": metric["split"]}],
        }
        values["model-index"] = [{"name": printable(name_of(config)), "results": [result]}]
    return values


def without_metadata(text: str) -> str:
    """Removes the metadata for the Hub from a card."""
    if not text.startswith(FENCE):
        return text
    return text[len(FENCE) :].partition(f"\n{FENCE}")[2].lstrip("\n")


def card(config: Config) -> str:
    """Formats an adapter's config as Markdown; names cannot break lines."""
    base, adapter, tuning = config["base"], adapter_of(config), tuning_of(config)
    rows: dict[str, str | None] = {
        **_task_rows(config),
        "Method": config["method"],
        "Adapter": adapter.summary() if adapter else "none",
        "On top of": _below(config),
        "Frozen layers": f"the lowest {tuning.frozen_layers}" if tuning.frozen_layers else None,
        "Trained parameters": f"{trained_size(config):,}",
        "Base": f"{base['num_layers']} layers, {base['hidden_size']} wide, "
        f"{'un' if base['lower_case'] else ''}cased, {base['vocab_size']:,} word pieces",
        "Tokenizer settings": str(base["tokenizer"]) if "tokenizer" in base else None,
        "Base model": _origin(config["base_model"]) if "base_model" in config else None,
        "Base weights (sha256)": str(base["weights_sha256"]),
        "Changes": BASE_CHANGES if tuning.changes_base else None,
        "Written by": ", ".join(f"{k} {v}" for k, v in config.get("versions", {}).items()),
    }
    table = "\n".join(f"| {name} | {_cell(v)} |" for name, v in rows.items() if v is not None)
    stack = " --stack=FOLDER_BELOW" if _below(config) else ""
    snippet = ".\n" if is_several(config) else f", or in Python, in this folder,\n\n{_code(config)}"
    return (
        f"# {printable(name_of(config))}{BEGINNING}{table}\n\n"
        f"{_made_by(config)}"
        f"Use it with `python {printable(_command(config))} "
        f"--adapter_dir=THIS_FOLDER{stack} ...`{snippet}"
    )


def _below(config: Config) -> str | None:
    """The adapter that a stack was trained on; None for other adapters."""
    stack = of_kind(adapter_of(config), StackConfig)
    return f"{stack.name} (sha256 {config['members'][0]})" if stack else None


def _made_by(config: Config) -> str:
    """The command that made an adapter, and its sources; nothing if it is not known."""
    lines = [printable(line) for line in origin_lines(config)]
    title = "Made" if config.get(DERIVED) else "Trained"
    return "\n".join([f"{title} with\n\n```", *lines, "```\n\n"]) if lines else ""


def _task_rows(config: Config) -> dict[str, str | None]:
    """Rows of the table: labels and results of the task, or of each task."""
    result = _result(config.get("metric"))
    if not is_several(config):
        labels = ", ".join(map(str, config["labels"])) or None  # Scores and masked words have none.
        return {"Task": config["task"], "Labels, in order": labels, "Result": result}
    together: dict[str, str | None] = {
        name: f"{', '.join(task['labels']) or type_of(task).predicts}: {_result(task['metric'])}"
        for name, task in zip(names_of(config), config[TASKS], strict=True)
    }
    return {"Tasks trained together": result, **together}


def _result(metric: Mapping[str, Any] | None) -> str:
    if not metric:
        return "not evaluated"
    return f"{metric['name']} = {format_metric(metric['value'])} ({metric['split']})"


def format_metric(value: float) -> str:
    """Formats a metric's value."""
    return f"{value:.4f}" if abs(value) < 1e9 else f"{value:.4e}"


def _origin(base: Mapping[str, Any]) -> str:
    """Formats the base's name, revision and license."""
    revision = f", revision {base['revision']}" if base["revision"] else ""
    return f"{base['name']}{revision} (license: {base['license'] or 'unknown'})"


def _code(config: Config) -> str:
    """Returns Python code that predicts with the adapter."""
    kind, base = type_of(config), config.get("base_model")
    examples = kind.example_texts[: kind.num_texts(config["inputs"])]
    texts = ", ".join(f'"{text}"' for text in examples)
    more = "" if base and base["kind"] != "folder" else ', base="FOLDER_OF_THE_BASE"'
    more += ', stack="FOLDER_BELOW"' if _below(config) else ""
    return (
        "```python\nimport adapter_bert_tf as abt\n\n"
        f'predictor = abt.Predictor("."{more})\nprint(predictor({texts}))\n```\n'
    )


def _command(config: Config) -> str:
    """Returns the command that evaluates the adapter."""
    if is_several(config):
        command = common_type(types_of(config)).command
        has_file = "{task}" in command and any(NAME in task for task in config[TASKS])
        names = "THE_FILE_OF_THE_TASKS.yaml" if has_file else ",".join(names_of(config))
        command = f"{command.split()[0]} --task_name={names} --tuning={config['method']}"
        return f"{command} --do_eval --do_predict"
    kind = type_of(config)
    return f"{kind.command.format(task=shlex.quote(config['task']))} {kind.evaluation_flags}"


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|")
