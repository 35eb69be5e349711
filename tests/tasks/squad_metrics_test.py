"""Exact match and F1 against the official scripts' arithmetic, written out here."""

import collections
import random

import pytest

from adapter_bert_tf.tasks import squad_metrics

WORDS = "The cat, a dog; an owl's mat in house 7 ran".split()


def _normalized(text):
    kept = "".join(c for c in text.lower() if c not in set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"))
    return [word for word in kept.split() if word not in ("a", "an", "the")]


def _f1(prediction, truth):
    ours, theirs = _normalized(prediction), _normalized(truth)
    same = sum((collections.Counter(ours) & collections.Counter(theirs)).values())
    if not same:
        return 0
    precision, recall = 1.0 * same / len(ours), 1.0 * same / len(theirs)
    return (2 * precision * recall) / (precision + recall)


def _file(count, seed, impossible=False):
    """(articles, predictions) of random word strings, two answers a question."""
    rng = random.Random(seed)

    def text():
        return " ".join(rng.choices(WORDS, k=rng.randint(1, 5)))

    articles, predictions = [{"paragraphs": []}], {}
    for i in range(count):
        none = impossible and i % 3 == 0
        answers = [] if none else [{"text": text(), "answer_start": 0} for _ in range(2)]
        qa = {"id": str(i), "answers": answers, "is_impossible": none}
        articles[0]["paragraphs"].append({"context": "", "qas": [qa]})
        predictions[str(i)] = rng.choice([text(), answers[0]["text"] if answers else "", ""])
    return articles, predictions


@pytest.mark.parametrize("seed", range(3))
def test_version_1_to_the_last_digit(seed):
    articles, predictions = _file(997, seed)
    exact = f1 = 0
    for paragraph in articles[0]["paragraphs"]:
        qa = paragraph["qas"][0]
        truths = [answer["text"] for answer in qa["answers"]]
        found = predictions[qa["id"]]
        exact += max(_normalized(found) == _normalized(truth) for truth in truths)
        f1 += max(_f1(found, truth) for truth in truths)
    assert squad_metrics.evaluate_v1(articles, predictions) == {
        "exact_match": 100.0 * exact / 997,
        "f1": 100.0 * f1 / 997,
    }


def test_perfect_and_missing_predictions():
    articles, _ = _file(10, 0)
    perfect = {
        str(i): p["qas"][0]["answers"][0]["text"] for i, p in enumerate(articles[0]["paragraphs"])
    }
    assert squad_metrics.evaluate_v1(articles, perfect) == {"exact_match": 100.0, "f1": 100.0}
    del perfect["0"]
    assert squad_metrics.evaluate_v1(articles, perfect)["f1"] == pytest.approx(90.0)


def test_version_2_by_hand():
    answer = [{"text": "dog", "answer_start": 0}]
    qas = [
        {"id": "1", "answers": answer},
        {"id": "2", "answers": answer},
        {"id": "3", "answers": [], "is_impossible": True},
        {"id": "4", "answers": [], "is_impossible": True},
    ]
    articles = [{"paragraphs": [{"context": "a dog", "qas": qas}]}]
    # 1 right, 2 wrongly no answer, 3 rightly none, 4 wrongly answered.
    results = squad_metrics.evaluate_v2(
        articles,
        {"1": "dog", "2": "", "3": "", "4": "cat"},
        {"1": "dog", "2": "dog", "3": "cat", "4": "cat"},
        {"1": -9, "2": 1, "3": 5, "4": 3},
    )
    assert (results["exact_match"], results["HasAns_exact"], results["NoAns_f1"]) == (50, 50, 50)
    # Above a threshold between 1 and 3 no answer is given: then all four are right.
    assert results["best_exact"] == results["best_f1"] == 100
    assert 1 <= results["best_f1_thresh"] < 3


def test_version_2_on_a_random_file_equals_the_official_arithmetic():
    articles, predictions = _file(600, 5, impossible=True)
    exact = f1 = 0
    for paragraph in articles[0]["paragraphs"]:
        qa, found = paragraph["qas"][0], predictions[paragraph["qas"][0]["id"]]
        truths = [a["text"] for a in qa["answers"] if _normalized(a["text"])] or [""]
        exact += max(int(_normalized(found) == _normalized(truth)) for truth in truths)
        f1 += max(
            _f1(found, truth)
            if _normalized(found) and _normalized(truth)
            else int(_normalized(found) == _normalized(truth))
            for truth in truths
        )
    results = squad_metrics.evaluate_v2(articles, predictions)
    assert results["exact_match"] == 100.0 * exact / 600
    assert results["f1"] == pytest.approx(100.0 * f1 / 600, rel=1e-12)
    assert "best_f1" not in results


def test_which_files_can_be_scored():
    articles, _ = _file(3, 0)
    assert squad_metrics.count_unlabelled(articles) == 0
    articles[0]["paragraphs"][0]["qas"][0]["answers"] = []
    assert squad_metrics.count_unlabelled(articles) == 1
    articles[0]["paragraphs"][0]["qas"][0]["is_impossible"] = True
    del articles[0]["paragraphs"][0]["qas"][0]["answers"]
    assert squad_metrics.count_unlabelled(articles) == 0
    assert (
        squad_metrics.evaluate_v2(
            articles,
            {
                qa["id"]: ""
                for article in articles
                for paragraph in article["paragraphs"]
                for qa in paragraph["qas"]
            },
        )["NoAns_total"]
        >= 1
    )
