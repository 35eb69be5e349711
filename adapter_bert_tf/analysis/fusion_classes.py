"""`analysis fusion` for classes and scores."""

from typing import Any

from adapter_bert_tf.analysis import fusion
from adapter_bert_tf.run.one_task import Classification


def run(flags: Any) -> None:
    """Runs the command; see `fusion.run`."""
    fusion.run(Classification(), flags)
