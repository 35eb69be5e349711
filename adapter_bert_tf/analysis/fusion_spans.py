"""`analysis fusion` for questions."""

from typing import Any

from adapter_bert_tf.analysis import fusion
from adapter_bert_tf.run.question_answering import QuestionAnswering


def run(flags: Any) -> None:
    """Runs the command; see `fusion.run`."""
    fusion.run(QuestionAnswering(), flags)
