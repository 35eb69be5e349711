"""When results are measured, and which weights are kept."""

import dataclasses
from typing import Literal

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import setting


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """When results are measured, and which weights are kept."""

    eval_every_steps: int | None = setting(
        None,
        "Steps between evaluations on the dev set during training. Default: none.",
        Role.TRAINING,
        lowest=1,
    )
    metric: str | None = setting(
        None,
        "Metric that selects weights and runs, and is named on the adapter's card: accuracy, f1, "
        "macro_f1, mcc; for scores pearson, spearman; for questions exact_match, f1. Default: the "
        "first that the task reports.",
        Role.METRIC,
    )
    keep: Literal["last", "best"] = setting(
        "last",
        "Which weights are kept: the last, or the best on dev by --metric.",
        Role.TRAINING,
        only_with=("eval_every_steps", ()),
    )
    patience: int | None = setting(
        None,
        "Stop after this many evaluations in a row without improvement.",
        Role.TRAINING,
        lowest=1,
    )
    eval_batch_size: int = setting(8, "Examples in an evaluation step.", Role.PACE, lowest=1)
    predict_batch_size: int = setting(8, "Examples in a prediction step.", Role.PACE, lowest=1)
