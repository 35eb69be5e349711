"""Spans from logits: by hand, at the edges, and against a search over all spans."""

import numpy as np
import pytest

from adapter_bert_tf.data.questions.squad import Question
from adapter_bert_tf.tasks.span_decoding import Decoder, DecodingSettings, best_spans

CONTEXT = "a dog ran in"
STARTS, ENDS = np.array([0, 2, 6, 10]), np.array([1, 5, 9, 12])
QUESTION = Question("q", "who?", CONTEXT)


def _decoder(**settings):
    return Decoder(DecodingSettings(**settings))


def _logits(starts, ends, null=(0.0, 0.0)):
    """Two places before the context: [CLS] and the question."""
    return np.array([[null[0], -9, *starts, -9], [null[1], -9, *ends, -9]], "f4")


def _add(decoder, starts, ends, null=(0.0, 0.0), best=(True,) * 4):
    decoder.add(0, _logits(starts, ends, null), 2, STARTS, ENDS, np.array(best))


def test_the_best_span_is_a_slice_of_the_context():
    decoder = _decoder()
    _add(decoder, [0, 3, 0, 0], [0, 1, 2, 0])
    text, rows, odds = decoder.answer(0, QUESTION)
    assert text == "dog ran" == CONTEXT[rows[0]["start"] : rows[0]["end"]] and odds is None
    assert (rows[0]["start_logit"], rows[0]["end_logit"]) == (3, 2)
    assert sum(row["probability"] for row in rows) == pytest.approx(1)
    assert [row["probability"] for row in rows] == sorted(
        (row["probability"] for row in rows), reverse=True
    )
    # Two best by hand: "dog ran" scores 5, "dog" 4.
    assert rows[1]["text"] == "dog"
    ratio = rows[0]["probability"] / rows[1]["probability"]
    assert ratio == pytest.approx(np.e)


def test_length_limit_and_order():
    decoder = _decoder(max_answer_length=1)
    _add(decoder, [0, 3, 0, 0], [4, 1, 2, 0])
    texts = {row["text"] for row in decoder.answer(0, QUESTION)[1]}
    assert texts == {"a", "dog", "ran", "in"}


def test_a_span_starts_only_where_its_window_is_best():
    decoder = _decoder()
    _add(decoder, [9, 0, 0, 0], [9, 0, 0, 0], best=(False, True, True, True))
    assert all(row["start"] > 0 for row in decoder.answer(0, QUESTION)[1])


def test_the_same_span_from_two_windows_counts_once():
    decoder = _decoder(n_best_size=3)
    for _ in range(2):
        _add(decoder, [0, 3, 0, 0], [0, 1, 2, 0])
    rows = decoder.answer(0, QUESTION)[1]
    assert len(rows) == 3 == len({row["text"] for row in rows})


@pytest.mark.parametrize(
    ("null", "threshold", "expected"),
    [((1, 1), 0.0, "dog ran"), ((3, 3), 0.0, ""), ((3, 3), 2.0, "dog ran")],
)
def test_no_answer(null, threshold, expected):
    decoder = _decoder(null_allowed=True, null_score_diff_threshold=threshold)
    _add(decoder, [0, 3, 0, 0], [0, 1, 2, 0], null)
    _add(decoder, [-9] * 4, [-9] * 4, (99, 99))  # The least null score of the windows counts.
    text, rows, odds = decoder.answer(0, QUESTION)
    assert text == expected and odds == pytest.approx(sum(null) - 5)
    assert "" in {row["text"] for row in rows}
    assert decoder.best_answer(0, QUESTION) == "dog ran"


def test_one_candidate_and_none():
    decoder = _decoder(n_best_size=1)
    decoder.add(0, np.zeros((2, 4), "f4"), 2, STARTS[:1], ENDS[:1], np.array([True]))
    text, rows, _ = decoder.answer(0, QUESTION)
    assert text == "a" and len(rows) == 1 and rows[0]["probability"] == 1
    decoder.add(1, np.zeros((2, 4), "f4"), 3, STARTS[:0], ENDS[:0], np.zeros(0, bool))
    assert decoder.answer(1, Question("p", "who?", ""))[0] == ""


def test_no_answer_keeps_its_two_logits_and_comes_once():
    decoder = _decoder(null_allowed=True)
    _add(decoder, [0, 3, 0, 0], [0, 1, 2, 0], null=(7, -1))
    _add(decoder, [0, 3, 0, 0], [0, 1, 2, 0], null=(1, 2))  # The window that doubts least counts.
    _, rows, odds = decoder.answer(0, QUESTION)
    (null,) = [row for row in rows if not row["text"]]
    assert (null["start_logit"], null["end_logit"]) == (1, 2) and odds == 3 - 5
    empty = _decoder(null_allowed=True)
    empty.add(0, np.zeros((2, 2), "f4"), 2, STARTS[:0], ENDS[:0], np.zeros(0, bool))
    assert [row["text"] for row in empty.answer(0, Question("q", "who?", ""))[1]] == [""]


def test_equals_a_search_over_all_spans():
    rng = np.random.default_rng(0)
    for _ in range(50):
        logits, best = rng.normal(size=(2, 12)).astype("f4"), rng.random(12) < 0.7
        found = best_spans(logits, best, 12, 4)
        every = sorted(
            (
                (logits[0, i] + logits[1, j], i, j)
                for i in range(12)
                for j in range(i, 12)
                if best[i] and j - i < 4
            ),
            reverse=True,
        )[:12]
        assert [(i, j) for i, j, _, _ in found] == [(i, j) for _, i, j in every]
