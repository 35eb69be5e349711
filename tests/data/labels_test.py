"""Labels that are numbers: equal ones are one label, in every spelling, and this is said."""

import pytest

from adapter_bert_tf.data.examples import Examples, with_equal_numbers
from adapter_bert_tf.data.labels import ONE_LABEL, find_label, infer_labels
from adapter_bert_tf.task_types import table_type

INFERRED = {
    "a column with gaps": (["1", "1.0", "0"], ("0", "1")),
    "only with points": (["1.0", "0.0"], ("0.0", "1.0")),
    "the shortest of a value": (["1.50", "1.5", "2"], ("1.5", "2")),
    "a whole number before others": (["01", "1.", "+1", "1e0", "2"], ("01", "2")),
    "signs": (["-1", "-1.0", "1"], ("-1", "1")),
    "not all are numbers": (["1", "1.0", "one"], ("1", "1.0", "one")),
    "names of no number": (["inf", "nan", "1_0", "10"], ("10", "1_0", "inf", "nan")),
    "many digits": (["10000000000000000001", "10000000000000000002.0"],
                    ("10000000000000000001", "10000000000000000002.0")),
}  # fmt: skip


@pytest.mark.parametrize("case", INFERRED)
def test_inferred_labels(case):
    labels, expected = INFERRED[case]
    assert infer_labels(labels) == infer_labels(labels[::-1]) == expected


FOUND = {
    "itself": ("1.0", ("1", "1.0"), "1.0"),
    "an equal number": ("1.0", ("0", "1"), "1"),
    "another number": ("2.0", ("0", "1"), "2.0"),
    "no number": ("one", ("0", "1"), "one"),
    "among words": ("1.0", ("1", "one"), "1.0"),
}


@pytest.mark.parametrize("case", FOUND)
def test_a_label_in_another_spelling(case):
    text, labels, expected = FOUND[case]
    assert find_label(text, labels) == expected


READ = {
    "one label": (ONE_LABEL, ["1", "1.0", None, "0"], ["1", "1", None, "0"]),
    "several": (table_type("multi_label"), ["1|0.0", "", "1"], ["1|0", "", "1"]),
    "all as they are": (ONE_LABEL, ["1", "x"], ["1", "x"]),
    "none": (ONE_LABEL, None, None),
}


@pytest.mark.parametrize("case", READ)
def test_examples_have_the_labels_of_the_task(case, caplog):
    cells, labels, expected = READ[case]
    count = len(labels or [])
    examples = Examples(["a"] * count, None, labels, ["0"] * count, [("f", 1)] * count)
    read = with_equal_numbers(examples, "dev", ("0", "1"), cells)
    assert read.labels == expected
    assert ("dev: equal numbers" in caplog.text) == (labels != expected)
