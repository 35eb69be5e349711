"""Raw texts and labels become what `fit` takes."""

import numpy as np
import pytest

import adapter_bert_tf as abt
from adapter_bert_tf.base.vocabulary import read_vocabulary
from tests.refusals import raises_code

TEXTS = ["the house", "a red door", "not"]
CASES = {  # labels, names: expected.
    "labels": (["good", "bad", "good"], ["bad", "good"], np.array([1, 0, 1], np.int32)),
    "numbers": ([1, 0, np.int64(1)], ["0", "1"], np.array([1, 0, 1], np.int32)),
    "numbers by their names": ([1, 0, np.int64(1)], [0, 1], np.array([1, 0, 1], np.int32)),
    "numbers of a column with gaps": ([1.0, "0.0", 1], ["0", "1"], np.array([1, 0, 1], np.int32)),
    "truths": ([True, False, "True"], [False, True], np.array([1, 0, 1], np.int32)),
    "sets": (
        [["a", "c"], [], {"b"}],
        ["a", "b", "c"],
        np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], np.float32),
    ),
    "frozen sets and arrays": (
        [frozenset("ac"), {"b": 1}.keys(), np.array(["b", "c"])],
        ["a", "b", "c"],
        np.array([[1, 0, 1], [0, 1, 0], [0, 1, 1]], np.float32),
    ),
    "scores": ([1, 2.5, "3"], [], np.array([1, 2.5, 3], np.float32)),
}
WRONG = {  # labels, names: message.
    "a set of names": (["a", "b", "a"], {"a", "b"}, "invalid: 'a'"),
    "names in a text": (["a", "b", "a"], "ab", "invalid: 'ab'"),
    "labels in a dict": ({"a": 1, "b": 2, "c": 3}, ["a", "b", "c"], "invalid: labels"),
    "labels in a text": ("aba", ["a", "b"], "invalid: 'aba'"),
    "no labels": (None, ["a", "b"], "invalid: labels"),
    "an unknown label": (["good", "Bad", "bad"], ["bad", "good"], "invalid: 'Bad'"),
    "numbers of labels": (np.eye(3, dtype=int), ["0", "1"], "invalid: those that apply"),
    "one of a set": ([["a"], ["x"], []], ["a"], "invalid: 'x'"),
    "another number": ([1.0, 0.0, 0.5], ["0", "1"], "invalid: 0.5"),
    "one name twice": (["a", "a", "a"], ["a", "a"], "invalid: 'a'"),
    "sets and labels": ([["a"], "b", ["a"]], ["a", "b"], "invalid: 'a'"),
    "no score": ([1, "two", 3], [], "invalid: each is a score"),
    "no number": ([1, float("nan"), 3], [], "invalid: finite"),
    "too few": (["a"], ["a"], "invalid: lists of the lengths [3, 1]"),
}


@pytest.fixture(scope="module")
def encoder(tiny_base_folder):
    return abt.TextEncoder(read_vocabulary(f"{tiny_base_folder}/vocab.txt"), 16)


def test_texts_and_labels_of_generators(encoder):
    labels, names, expected = CASES["labels"]
    expected_inputs, _ = abt.examples(encoder, TEXTS, labels, names, TEXTS)
    given = [(x for x in column) for column in (TEXTS, labels)]
    inputs, found = abt.examples(encoder, *given, names, (x for x in TEXTS))
    np.testing.assert_array_equal(found, expected)
    for name in inputs:
        np.testing.assert_array_equal(inputs[name], expected_inputs[name])


@pytest.mark.parametrize("case", CASES)
def test_labels(case, encoder):
    labels, names, expected = CASES[case]
    inputs, found = abt.examples(encoder, TEXTS, labels, names)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(inputs["input_word_ids"], encoder.inputs(TEXTS)["input_word_ids"])


def test_half_of_a_surrogate_pair_is_a_question_mark(encoder):
    inputs, _ = abt.examples(encoder, ["a \ud83d", "b"], [1, 2], others=("\ud83d", "c"))
    expected, _ = abt.examples(encoder, ["a ?", "b"], [1, 2], others=("?", "c"))
    np.testing.assert_array_equal(inputs["input_word_ids"], expected["input_word_ids"])


def test_pairs(encoder):
    inputs, _ = abt.examples(encoder, TEXTS, [1, 2, 3], others=TEXTS[::-1])
    expected = encoder.inputs(TEXTS, TEXTS[::-1])
    np.testing.assert_array_equal(inputs["input_type_ids"], expected["input_type_ids"])


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case, encoder):
    labels, names, message = WRONG[case]
    with raises_code(message):
        abt.examples(encoder, TEXTS, labels, names)
