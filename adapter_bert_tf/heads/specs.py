"""Names and shapes of the variables of heads, of one task or of several."""

import dataclasses
from collections.abc import Sequence

from adapter_bert_tf.adapters.methods.multitask import TASKS
from adapter_bert_tf.adapters.variable_specs import VariableSpec


@dataclasses.dataclass(frozen=True)
class HeadOf:
    """The head of one of several tasks."""

    task: str
    outputs: int  # Number of classes; 1 for a score.
    is_score: bool = False  # Whether the output is a score instead of logits.


def head_specs(hidden_size: int, outputs: int, name: str = "head") -> dict[str, VariableSpec]:
    """Dict from common name to `VariableSpec` of a head's dense layer."""
    return {
        f"{name}/kernel": VariableSpec((hidden_size, outputs), "head"),
        f"{name}/bias": VariableSpec((outputs,), "head"),
    }


def mixed_head_specs(hidden_size: int, heads: Sequence[HeadOf]) -> dict[str, VariableSpec]:
    """Dict from common name to `VariableSpec` of the heads of several tasks."""
    specs: dict[str, VariableSpec] = {}
    for head in heads:
        specs |= head_specs(hidden_size, head.outputs, mixed_head_name(head.task))
    return specs


def mixed_head_name(task: str) -> str:
    """The common prefix of the variables of a task's head, one of several."""
    return f"{TASKS}/{task}/head"
