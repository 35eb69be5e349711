"""Words of raw text, with their characters."""

import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapter_bert_tf.base.tokenizer_settings import TokenizerSettings
from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.data.batches import UNTRACED
from adapter_bert_tf.data.tagging import words
from adapter_bert_tf.data.tagging.words import split_texts, split_words
from adapter_bert_tf.data.tokenization import TextEncoder


def split(texts, chinese=True):
    """(word, start, end) of each word of each text."""
    settings = TokenizerSettings(split_chinese=chinese)
    parts = [part.to_list() for part in split_words(tf.constant(texts, tf.string), settings)]
    return [
        [(word.decode(), start, end) for word, start, end in zip(*row, strict=True)]
        for row in zip(*parts, strict=True)
    ]


TEXTS = {
    "": [],
    " \t\n": [],
    "Rome": [("Rome", 0, 4)],
    " in  Zürich!": [("in", 1, 3), ("Zürich", 5, 11), ("!", 11, 12)],
    "U.S.-born": [
        ("U", 0, 1),
        (".", 1, 2),
        ("S", 2, 3),
        (".", 3, 4),
        ("-", 4, 5),
        ("born", 5, 9),
    ],
    "a\u00a0b\u3000c": [("a", 0, 1), ("b", 2, 3), ("c", 4, 5)],
    "$5 a_b": [("$", 0, 1), ("5", 1, 2), ("a", 3, 4), ("_", 4, 5), ("b", 5, 6)],
    "cafe\u0301 x": [("cafe\u0301", 0, 5), ("x", 6, 7)],
    "a\u200bb \ufe0f": [("a\u200bb", 0, 3), ("\ufe0f", 4, 5)],
    "a\x00b \x00, c": [("a\x00b", 0, 3), ("\x00", 4, 5), (",", 5, 6), ("c", 7, 8)],
    "\U0001f600x 東京": [("\U0001f600x", 0, 2), ("東", 3, 4), ("京", 4, 5)],
}


def test_words_and_characters():
    assert split(list(TEXTS)) == list(TEXTS.values())
    assert split([]) == []


def test_bases_that_do_not_split_ideographs():
    assert split(["東京 x"], chinese=False) == [[("東京", 0, 2), ("x", 3, 4)]]


def test_bytes_that_are_no_text():
    words, starts, ends = split_words(tf.constant([b"a\xff b", b"\xc3", b"c"]))
    assert words.to_list() == [[b"a\xff", b"b"], [b"\xc3"], [b"c"]]
    assert starts.to_list() == [[0, 3], [0], [0]] and ends.to_list() == [[2, 4], [1], [1]]


def test_calls_after_tracing_give_the_same_words():
    settings = TokenizerSettings()
    results = [split_texts([*TEXTS, "a\ud800b"], settings) for _ in range(UNTRACED + 1)]
    first, last = ([part.to_list() for part in parts] for parts in (results[0], results[-1]))
    assert first == last and first[0][-1] == [b"a", b"?", b"b"]
    assert split_texts([], settings)[0].to_list() == []


def test_long_texts_are_split_in_parts(monkeypatch):
    settings, texts = TokenizerSettings(), list(TEXTS)
    together = split_texts(texts, settings)
    monkeypatch.setattr(words, "BYTES_AT_ONCE", 12)
    sizes = []
    split = words._splitter(settings)
    monkeypatch.setattr(words, "_splitter", lambda _: lambda t: (sizes.append(len(t)), split(t))[1])
    for part, expected in zip(split_texts(texts, settings), together, strict=True):
        assert part.to_list() == expected.to_list()
    assert len(sizes) > 2 and sum(sizes) == len(texts)


@pytest.fixture(scope="module")
def encoder(tiny_base_folder):
    return TextEncoder(read_vocabulary(f"{tiny_base_folder}/vocab.txt"), 24)


CHARACTERS = "the cat's\t\x00\x85\u00a0\u1fef\u037e\u0301é.,-_$東\ufa0e\U0001f600\ufe0f\u2028\ufffd"


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(CHARACTERS) | st.text(), min_size=1))
@example(["the cat\u1fefsat, unable"])
def test_words_are_slices_and_have_the_pieces_of_the_text(encoder, texts):
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    words, _, _ = split_words(tf.constant(texts))
    pieces = encoder.word_pieces(words.flat_values)
    by_text = words.with_flat_values(pieces).merge_dims(1, 2)
    assert by_text.to_list() == encoder.word_pieces(tf.constant(texts)).to_list()
    for text, found in zip(texts, split(texts), strict=True):
        assert all(text[start:end] == word for word, start, end in found)
        ends = [0, *(end for _, _, end in found)]
        assert all(end <= start for end, (_, start, _) in zip(ends, found, strict=False))
