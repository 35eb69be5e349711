"""The card of an adapter directory, a `README.md` for people and the Hugging Face Hub."""

import shlex
from collections.abc import Mapping
from typing import Any

import yaml

from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.store.contents import adapter_of, name_of, trained_size, tuning_of
from adapter_bert_tf.store.multitask import NAME, TASKS, is_several, names_of
from adapter_bert_tf.task_types import type_of

BASE_CHANGES = "includes the changed weights of the base, which other tasks cannot share"
MAX_METADATA = 1 << 16
BEGINNING = ": a BERT adapter\n\n| | |\n| --- | --- |\n"  # Follows the task's name.
FENCE = "---\n"
SEVERAL_TASKS = "text-classification"  # The pipeline of tasks that were trained together.


def is_card(text):
    """Whether a text is a card."""
    text = without_metadata(text[:MAX_METADATA])
    return text.startswith("# ") and BEGINNING in text[:2000]


def card_page(config):
    """Returns the text of the file: metadata for the Hub, then the card."""
    return hub_metadata(config) + card(config)


def hub_metadata(config: Mapping[str, Any]) -> str:
    """Formats the metadata that the Hub reads: library, base, tags, result on the dev set.

    There is no license: whoever publishes the weights chooses it.

    Args:
      config: config of an adapter.
    """
    base = config.get("base_model")
    pipeline = SEVERAL_TASKS if is_several(config) else type_of(config).pipeline
    adapter = adapter_of(config)
    kind = adapter.kind if adapter else None
    values = {
        "library_name": "adapter_bert_tf",
        "pipeline_tag": pipeline,
        "tags": ["bert", "tensorflow", "adapter", *([kind] if kind else []), config["method"]],
    }
    if base and base["kind"] == "hub":
        values["base_model"] = base["name"]
    if config["metric"] and not is_several(config):
        values["model-index"] = [_model_index(config, pipeline)]
    values["tags"] = list(dict.fromkeys(values["tags"]))
    return f"{FENCE}{yaml.safe_dump(values, sort_keys=False, allow_unicode=True)}{FENCE}\n"


def _model_index(config, pipeline):
    task, metric = printable(config["task"]), config["metric"]
    value = {"type": printable(metric["name"]), "value": metric["value"], "name": metric["split"]}
    result = {"task": {"type": pipeline}, "dataset": {"name": task, "type": task}}
    return {"name": printable(name_of(config)), "results": [result | {"metrics": [value]}]}


def without_metadata(text: str) -> str:
    """Removes the metadata for the Hub from a card."""
    if not text.startswith(FENCE):
        return text
    return text[len(FENCE) :].partition(f"\n{FENCE}")[2].lstrip("\n")


def card(config):
    """Formats an adapter's config as Markdown; names cannot break lines."""
    base, adapter, frozen = config["base"], adapter_of(config), tuning_of(config).frozen_layers
    rows = {
        **(_tasks(config) if is_several(config) else _task(config)),
        "Method": config["method"],
        "Adapter": adapter.summary() if adapter else "none",
        **({"Frozen layers": f"the lowest {frozen}"} if frozen else {}),
        "Trained parameters": f"{trained_size(config):,}",
        "Base": f"{base['num_layers']} layers, {base['hidden_size']} wide, "
        f"{'un' if base['lower_case'] else ''}cased, {base['vocab_size']:,} word pieces",
        **({"Base model": _origin(config["base_model"])} if "base_model" in config else {}),
        "Base weights (sha256)": str(base["weights_sha256"]),
        **({"Changes": BASE_CHANGES} if tuning_of(config).changes_base else {}),
        "Written by": ", ".join(f"{k} {v}" for k, v in config.get("versions", {}).items()),
    }
    command = printable(_command(config))
    table = "\n".join(f"| {name} | {_cell(value)} |" for name, value in rows.items())
    return (
        f"# {printable(name_of(config))}{BEGINNING}{table}\n\n"
        f"Trained with\n\n```\n{printable(config.get('command', ''))}\n```\n\n"
        f"Use it with `python {command} --do_eval --do_predict "
        "--adapter_dir=THIS_FOLDER ...`"
        + (
            ".\n"
            if is_several(config)
            else f", or in Python, in this folder,\n\n{_snippet(config)}"
        )
    )


def _snippet(config):
    """Returns runnable Python code."""
    kind = type_of(config)
    examples = kind.example_texts[: kind.num_texts(config["inputs"])]
    texts = ", ".join(f'"{text}"' for text in examples)
    base = config.get("base_model")
    is_default = base and base["kind"] != "folder"
    more = "" if is_default else ', base="FOLDER_OF_THE_BASE"'
    return (
        "```python\nimport adapter_bert_tf as abt\n\n"
        f'predictor = abt.Predictor("."{more})\nprint(predictor({texts}))\n```\n'
    )


def _origin(base):
    """Formats the base's name, revision and license."""
    revision = f", revision {base['revision']}" if base["revision"] else ""
    return f"{base['name']}{revision} (license: {base['license'] or 'unknown'})"


def _task(config):
    return {
        "Task": config["task"],
        "Labels, in order": ", ".join(map(str, config["labels"])),
        "Result": _result(config.get("metric")),
    }


def _tasks(config):
    return {"Tasks trained together": _result(config.get("metric"))} | {
        name: f"{', '.join(task['labels']) or type_of(task).predicts}: {_result(task['metric'])}"
        for name, task in zip(names_of(config), config[TASKS], strict=True)
    }


def _result(metric):
    if not metric:
        return "not evaluated"
    return f"{metric['name']} = {format_metric(metric['value'])} ({metric['split']})"


def _command(config):
    """Returns the command that evaluates the adapter."""
    if is_several(config):
        has_file = any(NAME in task for task in config[TASKS])
        names = "THE_FILE_OF_THE_TASKS.yaml" if has_file else ",".join(names_of(config))
        return f"run_classifier.py --task_name={names} --tuning={config['method']}"
    return type_of(config).command.format(task=shlex.quote(config["task"]))


def format_metric(value):
    """Formats a metric's value."""
    return f"{value:.4f}" if abs(value) < 1e9 else f"{value:.4e}"


def _cell(text):
    return printable(text).replace("|", "\\|")
