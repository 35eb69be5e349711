"""Scores of tags: the golden sequences, conlleval's own example of counting, plain tags."""

import json
import pathlib
import subprocess
import sys

import pytest

from adapter_bert_tf.tasks.tag_metrics import by_type, evaluate

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "tagging" / "entities.json"
FIGURES = json.loads(GOLDEN.read_text())
CASES = FIGURES["cases"]


def assert_scores(scores, figures):
    default, strict = figures["default"], figures["strict_IOB2"]
    expected = {name: default[f"micro_{name}_score"] for name in ("f1", "precision", "recall")}
    expected["strict_f1"] = strict["micro_f1_score"]
    assert {name: scores[name] for name in expected} == pytest.approx(expected, abs=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden_sequences(case):
    assert_scores(evaluate([case["gold"]], [case["predicted"]], "IOB2"), case["scores"])


def test_golden_sequences_together():
    gold, predicted = ([case[side] for case in CASES] for side in ("gold", "predicted"))
    scores = evaluate(gold, predicted, "IOB2")
    assert_scores(scores, FIGURES["all_ten_together"])
    pairs = [pair for g, p in zip(gold, predicted, strict=True) for pair in zip(g, p, strict=True)]
    assert scores["accuracy"] == sum(g == p for g, p in pairs) / len(pairs)


GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "B-LOC"]]
FOUND = [["B-PER", "I-PER", "O", "B-ORG"], ["B-LOC", "I-LOC"]]


def test_types():
    """PER is right; LOC has three, one is found and has another end; ORG does not exist."""
    assert by_type(GOLD, FOUND) == {
        "LOC": (0.0, 0.0, 0.0, 3),
        "ORG": (0.0, 0.0, 0.0, 0),
        "PER": (1.0, 1.0, 1.0, 1),
    }
    assert by_type([["O"]], [["O"]]) == {}
    assert by_type([["B", "I"]], [["B", "I"]]) == {"_": (1.0, 1.0, 1.0, 1)}


def test_sentences_are_apart():
    """An entity ends with its sentence, also where the next begins with I."""
    assert evaluate([["B-PER"], ["I-PER"]], [["B-PER"], ["B-PER"]], "IOB2")["f1"] == 1.0


def test_plain_tags():
    """F1 of X is 2/3, of Y 2/3, of Z 0 (never right)."""
    gold, found = [["X", "Y"], ["X"]], [["X", "Y"], ["Y"]]
    assert evaluate(gold, found, "plain") == pytest.approx({"accuracy": 2 / 3, "macro_f1": 2 / 3})
    assert evaluate([["X"]], [["Z"]], "plain") == {"accuracy": 0.0, "macro_f1": 0.0}


def test_scikit_learn_is_imported_late():
    code = "import adapter_bert_tf.tasks.tag_metrics, sys; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
