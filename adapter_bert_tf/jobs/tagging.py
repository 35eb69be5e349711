"""Runs `run_tagger.py`: tags of words, of one task or of several together."""

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.jobs.together import are_together
from adapter_bert_tf.runners.tagging.multitask import MultitaskTagging
from adapter_bert_tf.runners.tagging.runner import TaggingRunner
from adapter_bert_tf.sweeps import sweep


def run(config: RunConfig) -> None:
    """Runs the command. Raises `InputError` for anything that the user can fix."""
    sweep.run(MultitaskTagging() if are_together(config) else TaggingRunner(), config)
