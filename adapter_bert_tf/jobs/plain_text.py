"""Runs `run_adapt.py`: training on plain text."""

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.runners.plain_text.files import require_output_outside
from adapter_bert_tf.runners.plain_text.runner import PlainTextRunner
from adapter_bert_tf.sweeps import sweep


def run(config: RunConfig) -> None:
    """Runs the command. Raises `InputError` for anything that the user can fix."""
    require_output_outside(config)
    sweep.run(PlainTextRunner(), config)
