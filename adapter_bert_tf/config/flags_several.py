"""Flags of the methods that train several tasks together."""

from typing import Any

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.row import Command, Row, Value, ValueKind

# Beside `--init_from`.
INIT_TASK = Row(
    "init_task",
    "string",
    None,
    "The task of --init_from=DIR, of several, that a new task begins as. Default: the mean of a "
    "HyperFormer's task embeddings; what all tasks share.",
    Role.START,
    commands=(Command.CLASSIFIER,),
    only_with=("init_from", ()),
)
HYPER = ("hyperformer", "hyperformer++")
SEVERAL = (
    "multitask_full",
    "multitask_adapters",
    "per_task_adapters",
    "multitask_layer_norm",
    *HYPER,
    "pals",
)

PROJECTOR: tuple[str, tuple[Value, ...]] = ("task_projector", (True,))


def _row(
    name: str,
    kind: ValueKind,
    default: Value,
    help: str,
    only_with: tuple[str, ...] = HYPER,
    beside: tuple[str, tuple[Value, ...]] | None = None,
    **more: Any,
) -> Row:
    return Row(
        name,
        kind,
        default,
        help,
        Role.METHOD,
        commands=(Command.CLASSIFIER,),
        only_with=beside or ("tuning", only_with),
        **more,
    )


ROWS = (
    _row(
        "hyper_init",
        "choice",
        "identity",
        "How the hypernetwork starts: so that the model is the base, or as published.",
        choices=("identity", "published"),
    ),
    _row(
        "task_embedding_size",
        "integer",
        64,
        "Numbers that stand for a task, a layer or a position.",
        lowest=1,
    ),
    _row(
        "projector_size",
        "integer",
        128,
        "Hidden units of the task projector.",
        beside=PROJECTOR,
        lowest=1,
    ),
    _row(
        "projected_size",
        "integer",
        64,
        "Numbers that the generators read.",
        beside=PROJECTOR,
        lowest=1,
    ),
    _row(
        "task_projector",
        "boolean",
        True,
        "Whether there is a task projector (an ablation of the paper's Table 4).",
    ),
    _row(
        "conditional_layer_norm",
        "boolean",
        True,
        "Whether the LayerNorms after the adapters are generated for each task (another).",
    ),
    _row("pal_size", "integer", 204, "What projected attention projects to.", ("pals",), lowest=1),
    _row("pal_heads", "integer", 12, "Heads of projected attention.", ("pals",), lowest=1),
)
