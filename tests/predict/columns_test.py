"""Which columns are the texts: what the user says, then what the adapter was trained on."""

import pytest

from adapter_bert_tf.predict.columns import text_columns
from tests.refusals import raises_code

TABLE = {"text_a_column": "review", "label_column": "stars", "header": True}
NUMBERED = {"text_a_column": "2", "text_b_column": "0", "header": False}


def config(task="tsv", texts=1, head="classification", **more):
    inputs = {} if head == "span" else {"texts": texts}
    return {"task": task, "head": head, "regression": False, "inputs": inputs, **more}


FOUND = {
    "as it was trained": (config(table=TABLE), ["id", "review"], (), ["review"]),
    "by number": (config(texts=2, table=NUMBERED), None, (), [2, 0]),
    "as a SavedModel calls them": (config(texts=2), ["text_b", "text_a"], (), ["text_a", "text_b"]),
    "as published": (config("mrpc", 2), ["#1 String", "#2 String"], (), ["#1 String", "#2 String"]),
    "questions": (config(head="span"), ["id", "context", "question"], (), ["question", "context"]),
    "as the user says": (config(table=TABLE), ["review", "title"], ("title",), ["title"]),
    "a number of the user's": (config(table=TABLE), ["review", "title"], ("1",), [1]),
    "a name that is a number": (config(), ["1", "0"], ("1",), ["1"]),
}


@pytest.mark.parametrize("case", FOUND)
def test_columns_that_are_found(case):
    described, names, given, expected = FOUND[case]
    assert text_columns(described, names, *given) == expected


REFUSED = {
    "nobody knows": (config(table=TABLE), ["a", "b"], (), "missing: 'review'"),
    "no header": (config(table=TABLE), None, (), "missing: table"),
    "one of two": (
        config(texts=2),
        ["a", "b"],
        ("a",),
        "mismatch: text_b_column",
    ),
    "two of one": (config(), ["a", "b"], ("a", "b"), "mismatch: text_a_column"),
    "the second of one": (config(), ["a", "b"], (None, "b"), "mismatch: text_a_column"),
    "not there": (config(), ["a", "b"], ("c",), "not_found: 'c'"),
    "a number beyond": (config(), ["a", "b"], ("2",), "not_found: '2'"),
    "a name without a header": (config(), None, ("a",), "not_found: 'a'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_columns_that_are_not(case):
    described, names, given, message = REFUSED[case]
    with raises_code(message):
        text_columns(described, names, *given)
