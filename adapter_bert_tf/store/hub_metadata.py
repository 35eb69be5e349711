"""What the Hugging Face Hub reads at the head of an adapter's card."""

from collections.abc import Mapping
from typing import Any

import yaml

from adapter_bert_tf.sanitize import printable
from adapter_bert_tf.store.contents import adapter_of, name_of
from adapter_bert_tf.store.multitask import is_several

MARK = "---\n"
PIPELINES = {"span": "question-answering"}


def head_of_page(config: Mapping[str, Any]) -> str:
    """YAML between two lines of dashes: library, base, tags, and the result on the dev set.

    No license: that of the weights is for those to choose who publish them.

    Args:
      config: of an adapter.
    """
    base, pipeline = config.get("base_model"), PIPELINES.get(config["head"], "text-classification")
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
        values["model-index"] = [_result(config, pipeline)]
    values["tags"] = list(dict.fromkeys(values["tags"]))
    return f"{MARK}{yaml.safe_dump(values, sort_keys=False, allow_unicode=True)}{MARK}\n"


def _result(config, pipeline):
    task, metric = printable(config["task"]), config["metric"]
    found = {"type": printable(metric["name"]), "value": metric["value"], "name": metric["split"]}
    about = {"task": {"type": pipeline}, "dataset": {"name": task, "type": task}}
    return {"name": printable(name_of(config)), "results": [about | {"metrics": [found]}]}


def without_head(text: str) -> str:
    """A page without the head, if it has one."""
    if not text.startswith(MARK):
        return text
    return text[len(MARK) :].partition(f"\n{MARK}")[2].lstrip("\n")
