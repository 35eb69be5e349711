"""Details of tagged sentences, by hand and against seqeval."""

import random

import numpy as np
import pytest

from adapter_bert_tf.task_types.tag_details import MOST_WORDS, SAMPLE, seen_texts, tag_details
from adapter_bert_tf.tasks import tag_metrics

WORDS = [["Anna", "Lee", "met", "Bob"], ["in", "New", "York", "now"], ["Ulm", "!"]]
GOLD = [["B-p", "I-p", "O", "B-p"], ["O", "B-l", "I-l", "O"], ["B-l", "O"]]
PREDICTED = [["B-p", "I-p", "O", "B-g"], ["O", "B-l", "O", "B-g"], ["O", "O"]]
SURE = [[0.9, 0.8, 0.7, 0.6], [0.9, 0.5, 0.4, 0.95], [0.3, 0.9]]
ARGMAX = [["B-p", "I-p", "O", "I-g"], ["O", "B-l", "O", "B-g"], ["O", "O"]]
PLAIN_GOLD, PLAIN = [["N", "N", "V"]], [["N", "V", "V"]]


def made(**more):
    seen = seen_texts([["Anna", "Lee", "Ulm"]], [["B-p", "I-p", "B-l"]], "IOB2")
    return tag_details(WORDS, GOLD, PREDICTED, SURE, ARGMAX, seen, "IOB2", [1, 6, 11], **more)


def test_counts_by_hand():
    details = made()
    assert details["outcomes"] == {
        "found": [1, 1], "wrong type": [1, 1], "wrong border": [1, 1],
        "wrong type and border": [0, 0], "missed": [1, 0], "made up": [0, 1],
    }  # fmt: skip
    assert details["types"] == ["g", "l", "p"]
    assert details["confusion"] == [[0, 0, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0], [1, 0, 0, 0]]
    assert {row["group"]: (row["gold"], row["predicted"], row["found"])
            for row in details["by_length"]} == {"1": (2, 3, 0), "2": (2, 1, 1)}  # fmt: skip
    assert {row["group"]: (row["gold"], row["predicted"], row["found"])
            for row in details["by_seen"]} == {
        "seen in training": (2, 1, 1), "not seen in training": (2, 3, 0)
    }  # fmt: skip
    assert details["changed"] == {"words": 1, "sentences": 1}
    assert (details["examples"], details["words"], details["errors"]) == (3, 10, 4)


def test_the_surest_errors_come_first():
    shown, missed = made()["shown"], made()["missed"]
    assert [(e["line"], e["outcome"], e["entity"], e["probability"]) for e in shown + missed] == [
        (6, "made up", "now", 0.95),
        (1, "wrong type", "Bob", 0.6),
        (11, "missed", "Ulm", 0.3),
    ]
    assert [(e["expected"], e["predicted"]) for e in shown] == [("", "g"), ("p", "g")]
    assert (missed[0]["expected"], missed[0]["predicted"]) == ("l", "")
    assert shown[0]["gold"] == [["l", 1, 3]]
    assert shown[0]["given"] == [["l", 1, 2], ["g", 3, 4]]


def test_calibration_has_the_least_sure_word_of_an_entity():
    bins = [one for one in made()["calibration"]["bins"] if one["count"]]
    # Anna Lee: 0.8, found; New: 0.5, Bob: 0.6 and now: 0.95, not found.
    assert [(b["probability"], b["share"]) for b in bins] == [
        (0.5, 0.0), (0.6, 0.0), (0.8, 1.0), (0.95, 0.0)
    ]  # fmt: skip


def test_the_words_around_an_error_are_shown():
    count = 200
    words, gold = [[f"w{i}" for i in range(count)]], [["O"] * count]
    predicted = [["O"] * 150 + ["B-p", "I-p"] + ["O"] * 48]
    details = tag_details(words, gold, predicted, [[0.5] * count], predicted, (), "IOB2")
    (shown,) = details["shown"]
    assert len(shown["words"]) == MOST_WORDS and shown["is_cut"] == [True, True]
    ((_, first, end),) = shown["given"]
    assert shown["words"][first:end] == ["w150", "w151"] and "line" not in shown
    # A sample starts at the beginning, where no entity is.
    (sample,) = details["sample"]
    assert sample["words"][0] == "w0" and sample["given"] == []


def test_plain_tags():
    seen = seen_texts([["a", "b"]], [["N", "N"]], "plain")
    details = tag_details(
        [["a", "b", "c"]], PLAIN_GOLD, PLAIN, [[0.9, 0.8, 0.7]], PLAIN, seen, "plain"
    )
    assert (details["types"], details["confusion"]) == (["N", "V"], [[1, 1], [0, 1]])
    assert details["by_seen"] == [
        {"group": "seen in training", "gold": 2, "found": 1, "accuracy": 0.5},
        {"group": "not seen in training", "gold": 1, "found": 1, "accuracy": 1.0},
    ]
    (error,) = details["shown"]
    assert (error["entity"], error["gold"], error["given"]) == ("b", [["N", 1, 2]], [["V", 1, 2]])


def test_a_word_without_pieces_is_no_error_of_the_model():
    """It counts in the confusions, as in the scores."""
    words, sure = [["a", "\ufe0f", "b"]], [[0.9, None, 0.7]]
    gold, predicted = [["N", "V", "V"]], [["N", "N", "N"]]
    details = tag_details(words, gold, predicted, sure, predicted, (), "plain")
    assert details["confusion"] == [[1, 0], [2, 0]] and details["errors"] == 1
    assert [error["entity"] for error in details["shown"]] == ["b"]
    assert sum(one["count"] for one in details["calibration"]["bins"]) == 2
    gold, predicted = [["O", "B-p", "O"]], [["B-p", "O", "O"]]
    details = tag_details(words, gold, predicted, sure, predicted, (), "IOB2")
    assert details["outcomes"]["missed"] == [1, 0] and details["missed"] == []
    assert details["errors"] == 1
    unread = tag_details([["a"]], [["N"]], [["V"]], [[None]], [["V"]], (), "plain")
    assert unread["errors"] == 0 and "calibration" not in unread


@pytest.mark.parametrize("scheme", ["IOB2", "plain"])
def test_nothing_to_find(scheme):
    details = tag_details([["a"]], [["O"]], [["O"]], [[1.0]], [["O"]], (), scheme)
    assert (details["errors"], details["shown"]) == (0, [])


def test_the_scores_are_those_of_seqeval():
    rng, labels = random.Random(0), ["O", "B-a", "I-a", "B-b", "I-b"]
    gold, predicted = (
        [[rng.choice(labels) for _ in range(9)] for _ in range(200)] for _ in range(2)
    )
    words, sure = [["w"] * 9] * 200, np.full([200, 9], 0.5).tolist()
    details = tag_details(words, gold, predicted, sure, gold, (), "IOB2")
    scores = tag_metrics.evaluate(gold, predicted, "IOB2")
    assert details["f1"] == pytest.approx(scores["f1"], abs=1e-6) and details["argmax_f1"] == 1
    (group,) = details["by_seen"]
    assert [group["precision"], group["recall"]] == pytest.approx(
        [scores["precision"], scores["recall"]], abs=1e-6
    )
    assert len(details["sample"]) == SAMPLE
