"""The card of an adapter directory: what a person wants to know before loading it."""

import shlex

from adapter_bert_tf.heads import head_of
from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.store.contents import adapter_of, name_of, trained_size, tuning_of
from adapter_bert_tf.store.hub_metadata import head_of_page, without_head
from adapter_bert_tf.store.multitask import NAME, TASKS, is_several, names_of

CHANGES = "the base too; its changed weights are in this file, and no other task can share them"
LONGEST_HEAD = 1 << 16
BEGINNING = ": a BERT adapter\n\n| | |\n| --- | --- |\n"  # After the task's name.


def is_card(text):
    """Whether a text begins as the cards do."""
    text = without_head(text[:LONGEST_HEAD])
    return text.startswith("# ") and BEGINNING in text[:2000]


def page(config):
    """The text of the file: what the Hub reads, and the card."""
    return head_of_page(config) + card(config)


def card(config):
    """Markdown text made from an adapter's config; no name in it makes a line."""
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
        **({"Changes": CHANGES} if tuning_of(config).changes_base else {}),
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
    """Code that runs as it stands."""
    number = 2 if config["head"] == "span" else config["inputs"]["texts"]
    names = (
        ("What is asked?", "It is asked what is.")
        if config["head"] == "span"
        else ("A text.", "Another.")
    )
    texts = ", ".join(f'"{text}"' for text in names[:number])
    base = config.get("base_model")
    known = base and base["kind"] != "folder"
    more = "" if known else ', base="FOLDER_OF_THE_BASE"'
    return (
        "```python\nimport adapter_bert_tf as abt\n\n"
        f'predictor = abt.Predictor("."{more})\nprint(predictor({texts}))\n```\n'
    )


def _origin(base):
    """The base's name, revision and licence."""
    revision = f", revision {base['revision']}" if base["revision"] else ""
    return f"{base['name']}{revision} (license: {base['license'] or 'not said'})"


def _task(config):
    return {
        "Task": config["task"],
        "Labels, in order": ", ".join(map(str, config["labels"])),
        "Result": _result(config.get("metric")),
    }


def _tasks(config):
    return {"Tasks, trained together": _result(config.get("metric"))} | {
        name: f"{', '.join(task['labels']) or 'a score'}: {_result(task['metric'])}"
        for name, task in zip(names_of(config), config[TASKS], strict=True)
    }


def _result(metric):
    if not metric:
        return "not evaluated"
    return f"{metric['name']} = {number(metric['value'])} ({metric['split']})"


def _command(config):
    """What evaluates it."""
    if is_several(config):
        known = not any(NAME in task for task in config[TASKS])
        names = ",".join(names_of(config)) if known else "THE_FILE_OF_THE_TASKS.yaml"
        return f"run_classifier.py --task_name={names} --tuning={config['method']}"
    return head_of(config).command.format(task=shlex.quote(config["task"]))


def number(value):
    """A metric's value as people read it."""
    return f"{value:.4f}" if abs(value) < 1e9 else f"{value:.4e}"


def _cell(text):
    return printable(text).replace("|", "\\|")
