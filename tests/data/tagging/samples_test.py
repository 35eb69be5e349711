"""Scores of samples of sentences are those of seqeval and scikit-learn."""

import time

import numpy as np
import pytest

from adapter_bert_tf.data.tagging.samples import TagSamples
from adapter_bert_tf.tasks.tag_metrics import evaluate

LABELS = {
    "IOB2": ["O", "B-a", "I-a", "B-b", "I-b"],
    "plain": ["N", "V", "A", "rare"],
}


def tags_of(scheme, sentences, longest, rng):
    """Random tags of sentences, expected and predicted."""
    lengths = rng.integers(1, longest, sentences)
    labels, shares = LABELS[scheme], np.arange(len(LABELS[scheme]), 0, -1.0)
    return [
        [rng.choice(labels, n, p=shares / shares.sum()).tolist() for n in lengths] for _ in range(2)
    ]


@pytest.mark.parametrize("rows", [None, [0, 3, 3, 5], [7], [11, 2, 2, 2, 9, 0]])
@pytest.mark.parametrize("scheme", LABELS)
def test_a_sample_has_the_scores_of_its_sentences(scheme, rows):
    gold, predicted = tags_of(scheme, 12, 6, np.random.default_rng(0))
    samples = TagSamples(gold, predicted)
    chosen = range(12) if rows is None else rows
    expected = evaluate([gold[i] for i in chosen], [predicted[i] for i in chosen], scheme)
    rows = None if rows is None else np.array(rows)
    found = {metric: samples.score(metric, rows) for metric in expected}
    assert found == pytest.approx(expected, abs=1e-6)


def test_scores_by_hand():
    """F1 of X is 2/3, of Y 2/3; the second sentence alone has Y wrongly and misses X."""
    samples = TagSamples([["X", "Y"], ["X"]], [["X", "Y"], ["Y"]])
    assert samples.score("macro_f1") == pytest.approx(2 / 3)
    assert samples.score("accuracy") == pytest.approx(2 / 3)
    assert samples.score("macro_f1", np.array([1])) == samples.score("accuracy", np.array([1])) == 0
    assert TagSamples([["O"]], [["O"]]).score("f1") == 0
    assert TagSamples([], []).score("macro_f1") == TagSamples([], []).score("accuracy") == 0


@pytest.mark.parametrize(
    ("scheme", "metric"), [("plain", "macro_f1"), ("plain", "accuracy"), ("IOB2", "strict_f1")]
)
def test_many_samples_of_a_large_set_take_no_minutes(scheme, metric):
    """Of 40,000 words; each took half a second."""
    rng = np.random.default_rng(0)
    samples = TagSamples(*tags_of(scheme, 2000, 40, rng))
    begin = time.process_time()
    for _ in range(200):
        samples.score(metric, rng.integers(0, 2000, 2000))
    assert time.process_time() - begin < 10
