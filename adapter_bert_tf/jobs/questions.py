"""The job of `run_squad.py`: extractive question answering."""

from typing import Any

from adapter_bert_tf.runners.questions.runner import QuestionRunner
from adapter_bert_tf.sweeps import sweep


def run(flags: Any) -> None:
    """Runs the command. Raises `InputError` for what the user can fix, before training.

    Args:
      flags: `absl.flags.FLAGS`, parsed.
    """
    sweep.run(QuestionRunner(), flags)
