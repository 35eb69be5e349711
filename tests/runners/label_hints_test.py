"""What labels may mean besides is named; nothing is said of plain ones."""

import pytest

from adapter_bert_tf.task_types import table_type

NAMED = {
    "scores": (["0.5", "1", "2.25"], "['0.5', '1', '2.25'] are numbers, and count as classes."),
    "several in a cell": (["dog", "dog|red", "red"], "'dog|red' counts as one label."),
}
PLAIN = {
    "words": ["bad", "good"],
    "whole numbers": ["1", "2", "3", "4", "5"],
    "whole numbers after a gap": ["0.0", "1.0", "2.0"],
    "two of fractions": ["0.5", "1.0"],
    "one word among numbers": ["0.5", "1", "2", "none"],
    "nothing between": ["|", "a|", "|b"],
    "none": [],
}


@pytest.mark.parametrize("case", NAMED)
def test_named(case, caplog):
    labels, said = NAMED[case]
    table_type("classification").check_inferred(labels)
    (record,) = caplog.records
    assert said in record.getMessage()


@pytest.mark.parametrize("case", PLAIN)
def test_plain(case, caplog):
    table_type("classification").check_inferred(PLAIN[case])
    assert not caplog.records
