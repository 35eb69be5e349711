"""What a command does."""

import dataclasses

from adapter_bert_tf.config.roles import Role
from adapter_bert_tf.config.setting import setting


@dataclasses.dataclass(frozen=True)
class ActionsConfig:
    """What a command does."""

    do_train: bool = setting(False, "Train.", Role.TRAIN)
    do_eval: bool = setting(False, "Evaluate on the dev set.", Role.APPLY)
    do_predict: bool = setting(False, "Predict the test set.", Role.APPLY)
    do_export: bool = setting(False, "Write a SavedModel that takes raw texts.", Role.EXPORT)
    dry_run: bool = setting(
        False, "Check everything, report what would be trained, and stop.", Role.ONLY_CHECKED
    )
    overwrite: bool = setting(False, "Allow an --output_dir that holds another run.", Role.COMMAND)
    config: str | None = setting(
        None,
        "YAML file of settings, or the run.json of a run to repeat; flags on the command line win.",
        Role.COMMAND,
    )
