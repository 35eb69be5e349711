"""Questions to windows: characters, windows, answers at every edge; the files they come from."""

import json
import tracemalloc
import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.data.questions import spans
from adapter_bert_tf.data.questions.squad import Question, read_articles, read_questions
from adapter_bert_tf.data.tokenization import TextEncoder
from tests.refusals import raises_code

WORDS = "the cat sat on the mat in the house a dog ran"  # 12 pieces.


@pytest.fixture(scope="module")
def encoder(tiny_base_folder):
    return TextEncoder(read_vocabulary(f"{tiny_base_folder}/vocab.txt"), 16)


def _aligned(encoder, *texts):
    return [part.to_list() for part in encoder.align(tf.constant(texts))]


def test_pieces_are_slices_of_the_text(encoder):
    texts = ["The cát sat.", "de\u0301 \u0301x", "", " cat\u2028dog ½", "日 cat"]
    for text, ids, starts, ends in zip(texts, *_aligned(encoder, *texts), strict=True):
        assert all(text[s:e].strip() == text[s:e] != "" for s, e in zip(starts, ends, strict=True))
        assert len(ids) == len(starts)
    _, starts, ends = _aligned(encoder, "The cát sat.", "de\u0301 x")
    assert (starts[0], ends[0]) == ([0, 4, 8, 11], [3, 7, 11, 12])
    assert ends[1][-2:] == [3, 5]  # The combining accent belongs to the letter before it.


def test_the_same_pieces_as_without_characters(minilm):
    encoder = TextEncoder(minilm.vocabulary, 64)
    texts = ["Beyoncé's café, naïve coöperation 1½ §3 ﬁne Straße", "東京 Tokyo\t\x00x", "İstanbul"]
    ids, starts, ends = _aligned(encoder, *texts)
    assert ids == encoder.segments(tf.constant(texts))[0].to_list()
    for text, row, s, e in zip(texts, ids, starts, ends, strict=True):
        for piece, i, j in zip(row, s, e, strict=True):
            expected = minilm.vocabulary.pieces[piece].removeprefix("##")
            plain = "".join(
                c
                for c in unicodedata.normalize("NFD", text[i:j])
                if unicodedata.category(c) not in ("Mn", "Cc")
            ).lower()
            assert expected in (plain, "[UNK]")


SPANS = [
    # length, room, stride, windows
    (0, 5, 3, [(0, 0)]),
    (5, 5, 3, [(0, 5)]),
    (6, 5, 3, [(0, 5), (3, 6)]),
    (12, 5, 3, [(0, 5), (3, 8), (6, 11), (9, 12)]),
    (12, 5, 9, [(0, 5), (5, 10), (10, 12)]),
]


@pytest.mark.parametrize(("length", "room", "stride", "expected"), SPANS)
def test_windows_cover_everything(length, room, stride, expected):
    assert spans.window_spans(length, room, stride) == expected


def test_each_piece_is_best_in_the_window_with_most_context():
    found = spans.best_windows(6, [(0, 5), (3, 6)])
    # By hand: piece 3 has min(3, 1) in the first window and min(0, 2) in the second; piece 4 has
    # 0 and 1.
    assert found.tolist() == [0, 0, 0, 0, 1, 1]
    # Both see piece 2 with nothing on one side: the longer window wins.
    assert spans.best_windows(4, [(0, 3), (2, 4)]).tolist() == [0, 0, 0, 1]
    # Equal windows: the first one wins.
    assert spans.best_windows(5, [(0, 4), (1, 5)]).tolist() == [0, 0, 0, 1, 1]
    assert spans.best_windows(0, [(0, 0)]).tolist() == []


def test_memory_for_windows_is_that_of_the_pieces():
    windows = spans.window_spans(20_000, 350, 128)
    tracemalloc.start()
    spans.best_windows(20_000, windows)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000  # All windows of all pieces would take 24 MB.


def _windows(encoder, context, *answers, question="who", length=12, stride=3, impossible=False):
    q = Question("q", question, context, tuple(answers), impossible)
    settings = spans.SpanSettings(length, stride, 4)
    return list(spans.make_windows([q], encoder, settings))


def _answers(windows, context):
    """The slices that the labels of the windows stand for."""
    return [
        context[w.starts[w.labels[0] - w.context_begin] : w.ends[w.labels[1] - w.context_begin]]
        for w in windows
        if w.labels[1]
    ]


def _at(context, text):
    return text, context.index(text)


ANSWERS = {
    "first word": (WORDS, "the cat"),
    "very end": (WORDS, "dog ran"),
    "shorter than a window": ("a dog ran", "dog"),
    "non-ASCII": ("the cát — sat ½ on", "cát"),
    "combining": ("the cat\u0301 sat", "cat\u0301"),
    "before a line separator": ("the cat\u2028dog ran", "cat"),
    "after many bytes": ("я" * 60 + " dog ran", "dog"),
    "after wide characters": ("𝔘𝔫 日本 dog ran", "dog"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_survive(case, encoder):
    context, text = ANSWERS[case]
    windows = _windows(encoder, context, _at(context, text))
    found = _answers(windows, context)
    assert found and set(found) == {text}


def test_an_answer_over_a_window_border_is_only_in_windows_that_hold_it(encoder):
    windows = _windows(encoder, WORDS, _at(WORDS, "on the mat in"), stride=4)
    assert 0 < sum(bool(window.labels[1]) for window in windows) < len(windows)
    assert set(_answers(windows, WORDS)) == {"on the mat in"}
    for window in windows:
        if not window.labels[1]:
            assert window.labels == (0, 0)


def test_two_windows_may_hold_the_same_answer(encoder):
    windows = _windows(encoder, WORDS, _at(WORDS, "mat"), stride=2)
    assert len(_answers(windows, WORDS)) >= 2


def test_layout_of_a_window(encoder):
    (window,) = _windows(encoder, "a dog", _at("a dog", "dog"))
    assert window.ids.tolist()[0] == 2 and window.ids.tolist()[-1] == 3
    assert window.context_begin == 3 and window.labels == (4, 4)
    assert window.is_best.all()


def test_odd_questions(encoder):
    assert _windows(encoder, "a dog", question="")[0].context_begin == 2
    assert _windows(encoder, "a dog", question="who who who who who who")[0].context_begin == 6
    (empty,) = _windows(encoder, "", question="who")
    assert len(empty.starts) == 0 and empty.labels == (0, 0)
    (no,) = _windows(encoder, "a dog", _at("a dog", "dog"), impossible=True)
    assert no.labels == (0, 0)


def test_the_first_answer_of_whole_pieces_counts(minilm):
    encoder = TextEncoder(minilm.vocabulary, 64)
    context = "In 1978 and later"
    question = Question("q", "When?", context, (("7", 5), ("1978", 3)))
    (window,) = spans.make_windows([question], encoder, spans.SpanSettings(64, 32, 16))
    assert _answers([window], context) == ["1978"]


def test_a_context_of_ten_thousand_words(encoder):
    context = " ".join(["cat"] * 9999 + ["dog"])
    windows = _windows(encoder, context, ("dog", len(context) - 3), length=16, stride=8)
    assert _answers(windows, context) == ["dog"]
    assert sum(int(w.is_best.sum()) for w in windows) == 10000


def test_answers_that_fit_no_window_are_named(encoder, caplog):
    questions = [Question("long-one", "who", WORDS, ((WORDS, 0),))]
    list(spans.training_windows(questions, encoder, spans.SpanSettings(12, 3, 4)))
    assert "1 of 1 questions are skipped" in caplog.text and "long-one" in caplog.text


def test_training_does_not_follow_the_file(encoder):
    """A question of n words is of the paragraph that says `cat` n times."""
    questions = [
        Question(f"{n}-{i}", "who " * n, "cat " * n, (("cat", 0),))
        for n in range(1, 40)
        for i in range(3)
    ]
    windows = list(spans.training_windows(questions, encoder, spans.SpanSettings(90, 90, 40)))
    places = [window.context_begin - 2 for window in windows]
    assert sorted(places) == sorted(3 * list(range(1, 40)))
    assert abs(np.corrcoef(places, range(117))[0, 1]) < 0.3
    # The questions of a paragraph stay together: it is tokenized once.
    assert all(places[i] == places[i + 2] for i in range(0, 117, 3))


def _article(**qa):
    values = {"id": "1", "question": "who?", "answers": [{"text": "dog", "answer_start": 2}]} | qa
    return [{"title": "t", "paragraphs": [{"context": "a dog", "qas": [values]}]}]


def test_reading(tmp_path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"version": "1.1", "data": _article()}))
    (question,) = read_questions(read_articles(str(path)), str(path))
    assert question == Question("1", "who?", "a dog", (("dog", 2),))
    (unlabelled,) = read_questions(_article(answers=[]), "f")
    assert unlabelled.answers == ()


STARTS = [(4, True), (4.0, True), ("4", True), (" 4.0 ", True), ("four", False), (4.5, False)]
STARTS += [(True, False), (None, False), ("4e0", False), (float("inf"), False)]


@pytest.mark.parametrize(("start", "is_whole"), STARTS)
def test_starts_are_whole_numbers_in_any_form(start, is_whole, caplog):
    qa = {"id": "a", "question": "Who?", "answers": [{"text": "Ada", "answer_start": start}]}
    articles = [{"paragraphs": [{"context": "Oh, Ada", "qas": [qa]}]}]
    (question,) = read_questions(articles, "f.json")
    assert question.answers == ((("Ada", 4),) if is_whole else ())
    assert ("answer_start is not a whole" in caplog.text) == (not is_whole)
    assert "offset" not in caplog.text


def test_an_answer_that_is_not_at_its_offset_is_left_out_and_named(caplog):
    wrong = {"text": "dog", "answer_start": 1}
    none = {"text": "a", "answer_start": False}
    right = {"text": "dog", "answer_start": 2}
    (question,) = read_questions(_article(id="odd", answers=[wrong, none, right]), "f.json")
    assert question.answers == (("dog", 2),)
    assert "1 questions have an answer that is empty or not at its offset" in caplog.text
    assert "odd" in caplog.text


BAD = {
    "truncated": ('{"data": [{"title": "t", "par', "damaged: line 1"),
    "no SQuAD": ('{"rows": []}', "damaged: not a SQuAD file"),
    "no questions": ('{"data": []}', "damaged: no questions"),
    "no context": (
        '{"data": [{"title": "t", "paragraphs": [{"qas": [{}]}]}]}',
        "damaged: 'context'",
    ),
    "no article": ('{"data": ["x"]}', "damaged: 'paragraphs'"),
    "a question of a number": (
        json.dumps({"data": _article(question=3)}),
        "damaged: 'question'",
    ),
    "a word for a truth": (
        json.dumps({"data": _article(is_impossible="false")}),
        "damaged: 'is_impossible'",
    ),
    "deep": ("[" * 100_000, "damaged: nested too deeply"),
    "a number and the same as text": (
        json.dumps({"data": [*_article(id=1), *_article(id="1")]}),
        "damaged: '1'",
    ),
    "twice": (json.dumps({"data": _article() * 2}), "damaged: '1'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(case, tmp_path):
    text, message = BAD[case]
    (tmp_path / "s.json").write_text(text)
    with raises_code(message):
        read_questions(read_articles(str(tmp_path / "s.json")), "s.json")


def test_missing_file(tmp_path):
    with raises_code("unavailable", "none.json"):
        read_articles(str(tmp_path / "none.json"))


def test_answers_of_the_real_training_set_survive(real_data, minilm):
    path = str(real_data / "squad" / "train-v1.1.json")
    questions = read_questions(read_articles(path), path)[:2000]
    encoder = TextEncoder(minilm.vocabulary, 384)
    held = {
        w.question
        for w in spans.make_windows(questions, encoder, spans.SpanSettings())
        if w.labels[1]
    }
    assert len(held) >= 0.999 * len(questions)
