"""Runs `run_squad.py`: extractive question answering."""

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.runners.questions.runner import QuestionRunner
from adapter_bert_tf.sweeps import sweep


def run(config: RunConfig) -> None:
    """Runs the command. Raises `InputError` for anything that the user can fix."""
    sweep.run(QuestionRunner(), config)
