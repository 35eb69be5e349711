"""Runs `run_tagger.py`: tags of words."""

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.runners.tagging.runner import TaggingRunner
from adapter_bert_tf.sweeps import sweep


def run(config: RunConfig) -> None:
    """Runs the command. Raises `InputError` for anything that the user can fix."""
    sweep.run(TaggingRunner(), config)
