"""`analysis report`: draws the page of an output folder again, from its files."""

from typing import Any

from adapter_bert_tf.report.page import write


def run(parsed: Any, _: str) -> None:
    """Writes the page, and prints where it is. Raises `InputError`."""
    print(f"Report: {write(parsed.output_dir)}")
