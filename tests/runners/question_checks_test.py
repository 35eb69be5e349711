"""What is odd about questions is said, once each, and nothing of what is not."""

import pytest

from adapter_bert_tf.base import load_base
from adapter_bert_tf.data.questions.squad import read_questions
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.runners.questions import checks

CONTEXT = "the cat sat on the mat"


def articles(*questions, context=CONTEXT):
    """Questions numbered from 0: pairs of a text and a list of (answer, start)."""
    qas = [
        {"id": number, "question": text, "answers": [{"text": a, "answer_start": s} for a, s in of]}
        for number, (text, of) in enumerate(questions)
    ]
    return [{"paragraphs": [{"context": context, "qas": qas}]}]


def read(*questions, **more):
    return read_questions(articles(*questions, **more), "a file")


SEEN = {  # Training questions; how many of the two asked are known.
    "none": (read(("who", [])), None),
    "another context": (read(("who sat", []), context="a dog"), None),
    "one": (read(("who sat", [])), "1 of 2 questions of dev.json are also in the training data"),
    "both": (read(("where", []), ("who sat", [])), "2 of 2 questions of dev.json"),
}


@pytest.mark.parametrize("case", SEEN)
def test_questions_that_were_trained_on(case, caplog):
    learned, said = SEEN[case]
    checks.warn_of_seen(learned, read(("who sat", []), ("where", [])), "dev.json")
    assert said in caplog.text if said else not caplog.text


MISPLACED = {
    "right": ([("cat", 4)], False),
    "elsewhere": ([("cat", 0)], True),
    "one of two": ([("cat", 4), ("Zurich", 4)], True),
    "no answer": ([], False),
}


@pytest.mark.parametrize("case", MISPLACED)
def test_answers_that_count_and_are_not_there(case, caplog):
    answers, said = MISPLACED[case]
    file = articles(("who sat", answers))
    asked = read_questions(file, "a file")
    caplog.clear()
    checks.warn_of_misplaced(asked, file, "dev.json")
    assert ("dev.json: scores count the misplaced answers of 1 questions" in caplog.text) is said
    assert checks.answer_texts(file) == {0: [text for text, _ in answers]}


@pytest.mark.parametrize(("longest", "said"), [(2, "100% of"), (3, "50% of"), (6, None)])
def test_questions_that_are_cut(longest, said, caplog, tiny_base_folder, monkeypatch):
    monkeypatch.setattr(checks, "AT_ONCE", 1)
    encoder = TextEncoder(load_base(tiny_base_folder).vocabulary, 16)
    asked = read(("the cat the cat the cat", []), ("the the cat", []))
    checks.warn_of_cut(asked, encoder, longest, "dev.json")
    checks.warn_of_cut([], encoder, longest, "train.json")
    assert f"{said} the questions of dev.json" in caplog.text if said else not caplog.text
