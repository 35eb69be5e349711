"""Windows over words: every word is answered once, where it has the most context."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.data.batches import UNTRACED
from adapter_bert_tf.data.tagging.schemes import labels_of
from adapter_bert_tf.data.tagging.sentences import TagFormat
from adapter_bert_tf.data.tagging.tagged_files import label_ids, read_tagged
from adapter_bert_tf.data.tagging.windows import (
    by_sentence,
    make_windows,
    ragged_words,
    windows_in_graph,
)
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.tasks import tag_metrics
from tests import support
from tests.refusals import raises_code


@pytest.fixture(scope="module")
def encoder(tiny_base_folder):
    return TextEncoder(read_vocabulary(f"{tiny_base_folder}/vocab.txt"), 24)


def word_of(pieces):
    """A word of so many pieces: play, ##s, ##s, ..."""
    return "play" + "s" * (pieces - 1) if pieces else "\ufe0f"


def listed(windows):
    """(sentence, first pieces, words, pieces as text) of each window."""
    parts = (windows.firsts.to_list(), windows.words.to_list(), windows.ids.to_list())
    return [
        (sentence, firsts, words, " ".join(support.VOCABULARY[i] for i in ids))
        for sentence, firsts, words, ids in zip(windows.sentence.tolist(), *parts, strict=True)
    ]


def test_words_and_pieces(encoder):
    """Unknown words are one piece, and words without a piece are in no window."""
    sentences = [["The", "zebra", "\u200b", "plays", "un-able", "\ufe0f"], [], ["\ufe0f"], ["dog"]]
    windows = make_windows(sentences, encoder, 24, 8)
    assert listed(windows) == [
        (0, [1, 2, 3, 5], [0, 1, 3, 4], "[CLS] the [UNK] play ##s un - [UNK] [SEP]"),
        (3, [1], [0], "[CLS] dog [SEP]"),
    ]
    assert windows.lengths.tolist() == [9, 3] and len(windows) == 2


def test_every_word_is_answered_where_it_has_most_context(encoder):
    """Of 10 pieces, windows of 6 share 2: 0 to 5, 4 to 9. Piece 4 has 1 before its end, 0 after."""
    windows = make_windows([["cat", "dog"] * 5], encoder, 8, 2)
    pieces = "cat dog cat dog cat dog"
    assert listed(windows) == [
        (0, [1, 2, 3, 4, 5], [0, 1, 2, 3, 4], f"[CLS] {pieces} [SEP]"),
        (0, [2, 3, 4, 5, 6], [5, 6, 7, 8, 9], f"[CLS] {pieces} [SEP]"),
    ]


def test_a_word_that_a_window_would_cut(encoder):
    """Pieces 4 to 6 are one word: the second window, from 3 on, has all of it."""
    windows = make_windows([[*["cat"] * 4, "playss", "dog", "dog"]], encoder, 8, 3)
    assert listed(windows) == [
        (0, [1, 2, 3, 4], [0, 1, 2, 3], "[CLS] cat cat cat cat play ##s [SEP]"),
        (0, [2, 5, 6], [4, 5, 6], "[CLS] cat play ##s ##s dog dog [SEP]"),
    ]


def test_a_word_longer_than_a_window(encoder):
    """Its first piece stands for it; a window inside of it answers nothing and is left out."""
    windows = make_windows([["cat", word_of(20), "dog"]], encoder, 8, 0)
    assert listed(windows) == [
        (0, [1, 2], [0, 1], "[CLS] cat play ##s ##s ##s ##s [SEP]"),
        (0, [4], [2], "[CLS] ##s ##s ##s dog [SEP]"),
    ]


@pytest.mark.parametrize("sentences", [[], [[]], [["\ufe0f"], []]])
def test_nothing_to_answer(encoder, sentences):
    windows = make_windows(sentences, encoder, 8, 2)
    assert len(windows) == 0 and windows.ids.to_list() == windows.words.to_list() == []
    found = by_sentence(windows, tf.zeros([0, 2]), ragged_words(sentences), tf.constant([1.0, 2.0]))
    assert found.to_list() == [[[1.0, 2.0]] * len(words) for words in sentences]


def reference(counts, room, step):
    """(first piece in the window, window) of each word, by its definition."""
    firsts = np.cumsum([0, *counts])
    begins = [b for b in range(0, firsts[-1], step) if b == 0 or b - step + room < firsts[-1]]
    answers = []
    for first, count in zip(firsts, counts, strict=False):
        contexts = {
            window: min(first - b, min(b + room, firsts[-1]) - first - count)
            for window, b in enumerate(begins)
            if b <= first < b + room
        }
        if count:
            best = max(contexts, key=contexts.get)
            answers.append((int(first) - begins[best] + 1, best))
    return answers


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 9), max_size=25), max_size=8),
    st.integers(5, 12),
    st.integers(0, 8),
)
def test_against_the_definition(encoder, sentences, length, stride):
    words = [[word_of(count) for count in counts] for counts in sentences]
    windows = make_windows(words, encoder, length, stride)
    room = length - 2
    step = room - min(stride, room // 2)
    expected = [reference(counts, room, step) for counts in sentences]
    found = [[] for _ in sentences]
    for sentence, firsts, numbers, _ in listed(windows):
        found[sentence] += zip(firsts, numbers, strict=True)
    for counts, pairs, answers in zip(sentences, found, expected, strict=True):
        assert [word for _, word in pairs] == [i for i, count in enumerate(counts) if count]
        assert [first for first, _ in pairs] == [first for first, _ in answers]
    used = sum(len({window for _, window in answers}) for answers in expected)
    assert len(windows) == used and windows.lengths.max(initial=0) <= length
    flat = [[1000 * s + w for w in range(len(counts))] for s, counts in enumerate(sentences)]
    sentence = windows.sentence[windows.words.value_rowids().numpy()]
    values = tf.constant(1000 * sentence + windows.words.flat_values.numpy())
    back = by_sentence(windows, values, ragged_words(words), -1).to_list()
    assert back == [
        [number if count else -1 for number, count in zip(row, counts, strict=True)]
        for row, counts in zip(flat, sentences, strict=True)
    ]


@pytest.mark.long
def test_a_saved_graph_makes_the_same_windows(encoder, tmp_path):
    module = tf.Module()
    module.encoder = encoder

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.string)])
    def make(words):
        windows = windows_in_graph(words, encoder, 10, 3)
        return {"ids": windows.ids, "sentence": windows.sentence, "firsts": windows.firsts}

    module.make = make
    tf.saved_model.save(module, str(tmp_path / "saved"))
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    for sentences in ([["the", "cat"] * 9, [], [word_of(30)]], [[]], []):
        found = loaded.make(ragged_words(sentences))
        expected = make_windows(sentences, encoder, 10, 3)
        assert found["ids"].to_list() == expected.ids.to_list()
        assert found["firsts"].to_list() == expected.firsts.to_list()
        assert found["sentence"].numpy().tolist() == expected.sentence.tolist()


def test_calls_after_tracing_make_the_same_windows(encoder):
    sentences = [["the", "cat"] * 9, [], [word_of(30)]]
    expected = listed(make_windows(sentences, encoder, 11, 3))
    for _ in range(UNTRACED + 1):
        found = listed(make_windows(sentences, encoder, 11, 3))
    assert found == expected
    assert len(make_windows([], encoder, 11, 3)) == 0


def test_words_that_no_text_can_be(encoder):
    """JSON may hold half of a character."""
    assert listed(make_windows([["\ud800", "cat"]], encoder, 8, 2))[0][2][-1] == 1


def test_negative_strides_are_refused(encoder):
    with raises_code("invalid: -1"):
        make_windows([["cat"]], encoder, 8, -1)


@pytest.mark.long
def test_wnut_17(real_data, minilm):
    """A perfect tagger scores 100 at every length; without windows 95.31 at 32."""
    splits = {
        split: read_tagged(f"{real_data}/tagging/wnut17/{split}.conll", TagFormat())
        for split in ("train", "dev", "test")
    }
    assert [len(split) for split in splits.values()] == [3394, 1009, 1287]
    assert {split.scheme for split in splits.values()} == {"IOB2"}
    labels = labels_of(splits["train"].tags, "IOB2")
    assert len(labels) == 13
    test = splits["test"]
    gold = label_ids(test.tags, labels)
    words = ragged_words(test.words)
    for length in (128, 64, 32):
        windows = make_windows(test.words, TextEncoder(minilm.vocabulary, length), length, 32)
        flat = words.with_flat_values(tf.constant([tag for tags in gold for tag in tags]))
        ids = tf.gather(flat, windows.sentence)
        values = tf.gather(ids, windows.words, batch_dims=1).flat_values
        found = by_sentence(windows, values, words, 0).to_list()
        predicted = [[labels[i] for i in row] for row in found]
        assert tag_metrics.evaluate(test.tags, predicted, "IOB2")["f1"] == 1.0
        assert words.flat_values.shape[0] - windows.words.flat_values.shape[0] == 3  # U+FE0F.
