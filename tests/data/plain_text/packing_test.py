"""Packing: nothing is lost or repeated; the file of sequences, and what it survives."""

import os
import pathlib

import numpy as np
import pytest

from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.data.plain_text import packing
from adapter_bert_tf.data.plain_text.packed_file import SEQUENCES, cached_sequences
from adapter_bert_tf.data.plain_text.packing import Counts, pack
from adapter_bert_tf.data.tokenization import TextEncoder
from tests import support
from tests.refusals import raises_code

CLS, SEP = 2, 3


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    support.write_google(folder)
    return read_vocabulary(f"{folder}/vocab.txt")


def ids(words):
    return [support.VOCABULARY.index(word) for word in words.split()]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # Six positions have room for four pieces.
        (["the cat"], ["[CLS] the cat [SEP]"]),
        (["the cat", "a dog"], ["[CLS] the cat [SEP] a [SEP]", "[CLS] dog [SEP]"]),
        (
            ["the cat sat on", "a dog"],  # The end of the sequence is that of the text.
            ["[CLS] the cat sat on [SEP]", "[CLS] a dog [SEP]"],
        ),
        (["the cat sat on"], ["[CLS] the cat sat on [SEP]"]),
        (["the cat sat on mat"], ["[CLS] the cat sat on [SEP]", "[CLS] mat [SEP]"]),
        (["", "cat", "\u200b"], ["[CLS] cat [SEP]"]),
        (["cat [SEP]"], None),  # What looks like a special token is text.
    ],
)
def test_sequences(vocabulary, texts, expected):
    encoder = TextEncoder(vocabulary, 6)
    rows = [row for part in pack([t.encode() for t in texts], encoder) for row in part.tolist()]
    if expected is None:
        assert [row.count(SEP) for row in rows] == [1] * len(rows)
        return
    assert rows == [ids(row) for row in expected]


@pytest.mark.parametrize("length", [5, 6, 16])
@pytest.mark.parametrize("at_once", [1, 3, 1024])
def test_nothing_is_lost_or_repeated(vocabulary, monkeypatch, length, at_once):
    monkeypatch.setattr(packing, "BATCH_TEXTS", at_once)
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(support.WORDS[:20], rng.integers(0, 12))) for _ in range(60)]
    encoder, counts = TextEncoder(vocabulary, length), Counts()
    parts = list(pack([text.encode() for text in texts], encoder, counts))
    assert all(part.shape[1] == length for part in parts[:-1])
    joined = []
    for row in (row for part in parts for row in part.tolist()):
        assert row[0] == CLS and row[-1] == SEP
        joined += row[1:-1]
    pieces = [piece for text in texts for piece in ids(text)]
    assert [piece for piece in joined if piece != SEP] == pieces
    assert (counts.texts, counts.pieces, counts.unknown) == (60, len(pieces), 0)


def rows_of(count):
    def make(counts):
        counts.texts, counts.pieces = 1, 4 * count - 2
        yield np.arange(4 * (count - 1), dtype=np.int32).reshape(-1, 4)
        yield np.array([[7, 8]], np.int32)

    return make


@pytest.mark.parametrize(("words", "dtype"), [(1 << 16, "<u2"), ((1 << 16) + 1, "<i4")])
def test_the_file_of_sequences(tmp_path, words, dtype):
    made = cached_sequences(str(tmp_path), {"text": "a"}, words, 4, rows_of(3))
    assert (made.count, made.last_length, made.dtype) == (3, 2, dtype)
    numbers = np.array([2, 0, 2])
    assert made.read(numbers).tolist() == [[7, 8, 0, 0], [0, 1, 2, 3], [7, 8, 0, 0]]
    assert made.lengths(numbers).tolist() == [2, 4, 2]

    def fail(counts):
        raise AssertionError

    assert cached_sequences(str(tmp_path), {"text": "a"}, words, 4, fail) == made
    other = cached_sequences(str(tmp_path), {"text": "b"}, words, 4, rows_of(2))
    assert other.count == 2 and os.path.dirname(other.path) != os.path.dirname(made.path)


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "record"])
def test_a_damaged_file_is_written_again(tmp_path, damage):
    made = cached_sequences(str(tmp_path), {}, 9, 4, rows_of(3))
    path = pathlib.Path(made.path)
    content = path.read_bytes()
    folder = os.path.dirname(made.path)
    if damage == "record":
        (tmp_path / os.path.basename(folder) / "packed.json").write_text("{")
    elif damage == "gone":
        os.remove(made.path)
    else:
        changed = content[:-1] if damage == "cut" else content[:-1] + b"\x01"
        path.write_bytes(changed)
    again = cached_sequences(str(tmp_path), {}, 9, 4, rows_of(3))
    assert pathlib.Path(again.path).read_bytes() == content
    assert [name for name in os.listdir(folder) if SEQUENCES.fullmatch(name)] == [
        os.path.basename(again.path)
    ]


def test_a_file_that_becomes_shorter_is_reported(tmp_path):
    made = cached_sequences(str(tmp_path), {}, 9, 4, rows_of(3))
    os.truncate(made.path, 12)
    with raises_code("damaged", made.path):
        made.read(np.array([2]))


def test_no_pieces_and_no_space_are_refused(tmp_path):
    with raises_code("damaged"):
        cached_sequences(str(tmp_path / "a"), {}, 9, 4, lambda counts: iter([]))

    def full(counts):
        yield np.zeros((1, 4), np.int32)
        raise OSError(28, "No space left on device")

    with raises_code("unavailable", "features_dir"):
        cached_sequences(str(tmp_path / "b"), {}, 9, 4, full)
    left = [name for _, _, names in os.walk(tmp_path) for name in names]
    assert not [name for name in left if SEQUENCES.fullmatch(name)]
    (tmp_path / "c").write_text("a file")
    with raises_code("unavailable", "features_dir"):
        cached_sequences(str(tmp_path / "c"), {}, 9, 4, rows_of(3))
