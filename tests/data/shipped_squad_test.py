"""The shipped SQuAD-format files: offsets, ids, and no text on both sides."""

import json

import pytest

from adapter_bert_tf.tasks.glue import SHIPPED_FOLDER

FOLDER = SHIPPED_FOLDER / "squad"


def _paragraphs(split):
    data = json.loads((FOLDER / f"{split}.json").read_text(encoding="utf-8"))
    return [paragraph for article in data["data"] for paragraph in article["paragraphs"]]


@pytest.mark.parametrize(
    ("split", "paragraphs", "questions"), [("train", 32, 195), ("dev", 12, 74)]
)
def test_every_answer_is_a_slice_of_its_context(split, paragraphs, questions):
    found = _paragraphs(split)
    asked = [(p["context"], qa) for p in found for qa in p["qas"]]
    assert (len(found), len(asked)) == (paragraphs, questions)
    assert len({qa["id"] for _, qa in asked}) == questions
    for context, qa in asked:
        for answer in qa["answers"]:
            start = answer["answer_start"]
            assert context[start : start + len(answer["text"])] == answer["text"]


def test_train_and_dev_share_no_near_duplicates():
    def words(p):
        return set(p["context"].lower().split())

    overlaps = [
        len(words(a) & words(b)) / len(words(a) | words(b))
        for a in _paragraphs("train")
        for b in _paragraphs("dev")
    ]
    assert max(overlaps) < 0.5
