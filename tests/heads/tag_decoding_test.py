"""The best valid sequence of tags, compared with all sequences; and the loss of words."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.data.tagging.schemes import from_iob2, to_iob2, transitions
from adapter_bert_tf.heads import tag_decoding
from adapter_bert_tf.heads.tag_decoding import TagRules, decode, viterbi
from adapter_bert_tf.heads.tag_logits import tag_cross_entropy
from tests.refusals import raises_code

LABELS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
ANY_SHAPE = [
    tf.TensorSpec([None, None, None]),
    tf.TensorSpec([None], tf.int32),
    tf.TensorSpec([None], tf.bool),
    tf.TensorSpec([None, None], tf.bool),
    tf.TensorSpec([None], tf.bool),
]


@pytest.fixture(scope="module")
def in_graph():
    return tf.function(viterbi, input_signature=ANY_SHAPE)


def valid_paths(count, start, between, end):
    for path in itertools.product(range(len(start)), repeat=count):
        edges = not path or (start[path[0]] and end[path[-1]])
        if edges and all(between[pair] for pair in itertools.pairwise(path)):
            yield path


def best_path(logits, *rules):
    paths = valid_paths(len(logits), *rules)
    return max(paths, key=lambda path: sum(row[tag] for row, tag in zip(logits, path, strict=True)))


@pytest.mark.parametrize("seed", range(30))
def test_it_is_the_best_of_all_valid_sequences(seed, in_graph):
    rng = np.random.default_rng(seed)
    batch, words, tags = rng.integers(0, 4), rng.integers(0, 6), rng.integers(1, 4)
    logits = rng.normal(size=(batch, words, tags)).astype("f4")
    counts = rng.integers(0, words + 1, batch).astype("i4")
    start, between = rng.random(tags) < 0.7, rng.random((tags, tags)) < 0.6
    end = rng.random(tags) < 0.6
    start[0], between[:, 0], end[0] = True, True, True  # So that there is a path.
    found = in_graph(logits, counts, start, between, end).numpy()
    assert found.shape == (batch, words)
    for row, count, path in zip(logits, counts, found, strict=True):
        assert tuple(path[:count]) == best_path(row[:count], start, between, end)
        assert not path[count:].any()


@pytest.mark.parametrize("shape", [(3, 5, 4), (1, 1, 2), (2, 0, 3)])
def test_xla_finds_the_same(shape, in_graph):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=shape).astype("f4")
    counts = rng.integers(0, shape[1] + 1, shape[0]).astype("i4")
    start, between = np.ones(shape[2], bool), rng.random((shape[2],) * 2) < 0.5
    between[:, 0] = True
    values = logits, counts, start, between, np.ones(shape[2], bool)
    found = tf.function(viterbi, jit_compile=True)(*values)
    np.testing.assert_array_equal(found, in_graph(*values))


@pytest.mark.parametrize("scheme", ["IOB2", "IO"])
def test_no_sequence_is_ever_invalid(scheme):
    rng = np.random.default_rng(0)
    start, between, _ = transitions(LABELS, scheme)
    lengths = rng.integers(0, 40, 200)
    logits = [rng.normal(size=(n, 5)).astype("f4") * rng.choice([0.1, 3, 1e4]) for n in lengths]
    for row, decoded in zip(logits, decode(logits, LABELS, scheme, "viterbi"), strict=True):
        tags = [LABELS.index(tag) for tag in decoded.tags]
        assert len(tags) == len(row)
        assert start[tags[:1]].all() and all(between[pair] for pair in itertools.pairwise(tags))


def test_what_it_takes_and_how_probable_it_is():
    # I-PER is the likeliest second tag, and cannot follow O: B-PER is the next best of all paths.
    logits = np.log(np.array([[0.9, 0.05, 0.01, 0.03, 0.01], [0.1, 0.05, 0.05, 0.3, 0.5]], "f4"))
    (best,) = decode([logits], LABELS, "IOB2", "viterbi")
    (likeliest,) = decode([logits], LABELS, "IOB2", "argmax")
    assert (best.tags, likeliest.tags) == (("O", "B-PER"), ("O", "I-PER"))
    np.testing.assert_allclose(best.probabilities, [0.9, 0.3], rtol=1e-6)
    np.testing.assert_allclose(likeliest.probabilities, [0.9, 0.5], rtol=1e-6)


@pytest.mark.parametrize(
    ("labels", "scheme", "expected"),
    [
        (["B-PER", "I-PER", "O"], "IOB2", ("O", "O")),
        (["NOUN", "VERB"], "plain", ("NOUN", "NOUN")),
        (["I-PER"], "IOB2", ("I-PER", "I-PER")),  # It allows no valid sequence.
    ],
)
def test_a_word_without_pieces_has_no_entity(labels, scheme, expected):
    unread = [np.ma.masked_all((2, width), "f4") for width in (0, len(labels), 9)]
    read = np.zeros((2, len(labels)), "f4")
    for decoded in decode([*unread, read], labels, scheme, "viterbi")[:-1]:
        assert decoded.tags == expected and decoded.probabilities.tolist() == [None, None]


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("scheme", ["IOB2", "plain"])
def test_logits_that_are_no_numbers_are_refused(value, scheme):
    logits = np.zeros((3, 5), "f4")
    logits[1, 2] = value
    with raises_code("diverged"):
        decode([np.zeros((2, 5), "f4"), logits], LABELS, scheme, "viterbi")
    wider = np.concatenate([np.zeros((3, 5), "f4"), np.full((3, 2), -np.inf, "f4")], 1)
    assert decode([wider], LABELS, scheme, "viterbi")[0].tags == ("O",) * 3  # Columns of others.


ENDS = ["O", "B-A", "I-A", "E-A", "S-A"]


def test_labels_with_ends_have_their_own_transitions():
    """Those of adapters from elsewhere; the scores of `decode` are those of all sequences."""
    rng = np.random.default_rng(0)
    logits = [rng.normal(size=(count, 5)).astype("f4") for count in (0, 1, 2, 3, 4) * 20]
    for row, decoded in zip(logits, decode(logits, ENDS, "BIOES", "viterbi"), strict=True):
        paths = [
            path
            for path in itertools.product(range(5), repeat=len(row))
            if (tags := tuple(ENDS[i] for i in path)) == from_iob2(to_iob2(tags, "BIOES"), "BIOES")
        ]
        best = max(paths, key=lambda path: sum(row[i, tag] for i, tag in enumerate(path)))
        assert decoded.tags == tuple(ENDS[i] for i in best)


def test_an_entity_with_ends_is_found():
    logits = np.full((4, 5), -5, "f4")
    logits[range(4), [1, 3, 4, 1]] = 5  # B E S, and a B that nothing ends.
    (found,) = decode([logits], ENDS, "BIOES", "viterbi")
    assert found.tags == ("B-A", "E-A", "S-A", "O")


def test_labels_that_form_no_sequence_have_no_transitions():
    assert TagRules(["B-A", "E-A"], "BIOES", "viterbi").decoding == "argmax"  # None of three words.
    assert TagRules(["I-PER", "I-LOC"], "IOB2", "viterbi").decoding == "argmax"
    assert TagRules(["O", "I-LOC"], "IOB2", "viterbi").decoding == "viterbi"


def test_many_labels_need_no_table_of_transitions():
    labels = [f"T{number}" for number in range(20_000)]
    logits = np.zeros((2, 20_000), "f4")
    logits[1, 7] = 1
    assert decode([logits] * 3, labels, "plain", "viterbi")[2].tags == ("T0", "T7")
    with raises_code("unsupported", "20,000"):
        decode([logits], labels, "IOB2", "viterbi")


@pytest.mark.parametrize("size", [1, 20])
def test_batches_are_bounded_and_the_order_stays(size, monkeypatch):
    monkeypatch.setattr(tag_decoding, "AT_ONCE", size)
    rng = np.random.default_rng(0)
    logits = [rng.normal(size=(n, 5)).astype("f4") for n in (7, 0, 30, 3, 7, 1)]
    together = decode(logits, LABELS, "IOB2", "viterbi")
    alone = [decode([row], LABELS, "IOB2", "viterbi")[0] for row in logits]
    assert [row.tags for row in together] == [row.tags for row in alone]
    assert decode([], LABELS, "IOB2", "viterbi") == []


def test_the_loss_is_the_weighted_sum_over_words():
    logits = np.log([[[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]], [[0.25, 0.75], [0.5, 0.5], [0.5, 0.5]]])
    # Two words of three are counted: the batch size 2 over 2 words is a weight of 1.
    labels = [[[0, 0], [1, 1], [0, 0]], [[0, 1], [0, 0], [0, 0]]]
    loss = tag_cross_entropy(tf.constant(labels, tf.float32), tf.constant(logits, tf.float32))
    np.testing.assert_allclose(loss, [-np.log(0.8), -np.log(0.25)], rtol=1e-6)
    compiled = tf.function(tag_cross_entropy, jit_compile=True)
    np.testing.assert_allclose(
        compiled(tf.constant(labels, tf.float32), tf.constant(logits, tf.float32)), loss, rtol=1e-6
    )
