"""Which runs a command consists of."""

import dataclasses

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import setting


@dataclasses.dataclass(frozen=True)
class SweepsConfig:
    """Which runs a command consists of."""

    num_trials: int = setting(
        1, "Runs with seeds --seed, --seed + 1, ...: median and range.", Role.SWEEP, lowest=1
    )
    sweep: str | None = setting(
        None,
        "Grid of runs, the best chosen on dev: `paper` (learning rate 3e-5, 3e-4, 3e-3 x epochs "
        "3, 20), or a YAML file of `setting: [values]`.",
        Role.SWEEP,
    )
