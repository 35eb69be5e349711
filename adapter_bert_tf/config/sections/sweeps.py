"""Several runs of one command: seeds and grids."""

import dataclasses

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import setting


@dataclasses.dataclass(frozen=True)
class SweepsConfig:
    """Several runs of one command: seeds and grids."""

    num_trials: int = setting(
        1,
        "Number of runs, with the seeds --seed, --seed + 1, ...; reports median and range.",
        Role.SWEEP,
        lowest=1,
    )
    sweep: str | None = setting(
        None,
        "Grid of runs, of which the best on dev is kept: `paper` (learning rate 3e-5, 3e-4, 3e-3 x "
        "epochs 3, 20), or a YAML file of `setting: [values]`.",
        Role.SWEEP,
    )
