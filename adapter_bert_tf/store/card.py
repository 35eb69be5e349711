"""The card of an adapter directory: what a person wants to know before loading it."""

import shlex

from adapter_bert_tf.heads import head_of
from adapter_bert_tf.received import printable
from adapter_bert_tf.store.contents import adapter_of

BEGINNING = ": a BERT adapter\n\n| | |\n| --- | --- |\n"  # After the task's name.


def is_card(text):
    """Whether a text begins as the cards do."""
    return text.startswith("# ") and BEGINNING in text[:2000]


def card(config, arrays):
    """Markdown text made from an adapter's config and its arrays; no name in it makes a line."""
    metric = config.get("metric")
    base, adapter = config["base"], adapter_of(config)
    trained = sum(array.size for array in arrays.values())
    rows = {
        "Task": config["task"],
        "Labels, in order": ", ".join(map(str, config["labels"])),
        "Result": f"{metric['name']} = {number(metric['value'])} ({metric['split']})"
        if metric
        else "not evaluated",
        "Method": config["method"],
        "Adapter": adapter.summary() if adapter else "none",
        "Trained parameters": f"{trained:,}",
        "Base": f"{base['num_layers']} layers, {base['hidden_size']} wide, "
        f"{'un' if base['lower_case'] else ''}cased, {base['vocab_size']:,} word pieces",
        "Base weights (sha256)": str(base["weights_sha256"]),
        "Written by": ", ".join(f"{k} {v}" for k, v in config.get("versions", {}).items()),
    }
    command = printable(head_of(config).command.format(task=shlex.quote(config["task"])))
    table = "\n".join(f"| {name} | {_cell(value)} |" for name, value in rows.items())
    return (
        f"# {printable(config['task'])}{BEGINNING}{table}\n\n"
        f"Trained with\n\n```\n{printable(config.get('command', ''))}\n```\n\n"
        f"Use it with `python {command} --do_eval --do_predict "
        "--adapter_dir=THIS_FOLDER ...`.\n"
    )


def number(value):
    """A metric's value as people read it."""
    return f"{value:.4f}" if abs(value) < 1e9 else f"{value:.4e}"


def _cell(text):
    return printable(text).replace("|", "\\|")
