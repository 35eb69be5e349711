"""`analysis report`: rewrites the report page of an output folder."""

from typing import Any

from adapter_bert_tf.report.page import write


def run(parsed: Any, _: str) -> None:
    """Writes the page and prints its path. Raises `InputError`."""
    print(f"Report: {write(parsed.output_dir)}")
