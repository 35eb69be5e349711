"""Runs `run_classifier.py`: one task, or several together."""

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.jobs.together import are_together
from adapter_bert_tf.runners.classification.multitask_runner import MultitaskClassification
from adapter_bert_tf.runners.classification.runner import ClassificationRunner
from adapter_bert_tf.sweeps import sweep


def run(config: RunConfig) -> None:
    """Runs the command. Raises `InputError` for anything that the user can fix."""
    runner = MultitaskClassification() if are_together(config) else ClassificationRunner()
    sweep.run(runner, config)
