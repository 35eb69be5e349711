"""Tokenization and batches: the same pieces as elsewhere, every example as often as it should."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.base.vocabulary import read_vocabulary
from adapter_bert_tf.data.batches import (
    MAX_POOL,
    BatchEncoder,
    Features,
    eval_batches,
    eval_plan,
    plan_batches,
    pool_sizes,
    tokenize,
    train_batches,
)
from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.data.tokenization import TextEncoder
from tests import support

FIGURES = pathlib.Path(__file__).parent.parent / "golden" / "tokenization.json"


@pytest.fixture(scope="module")
def vocabulary(tiny_base_folder):
    return read_vocabulary(f"{tiny_base_folder}/vocab.txt")


def _pieces(vocabulary, ids):
    return " ".join(vocabulary.pieces[i] for i in ids)


PACKED = [
    (("The cat sat.",), 24, "[CLS] the cat sat . [SEP]", "0 0 0 0 0 0"),
    (("A cat", "ran!"), 24, "[CLS] a cat [SEP] ran ! [SEP]", "0 0 0 0 1 1 1"),
    (("", ""), 24, "[CLS] [SEP] [SEP]", "0 0 1"),
    (
        ("the cat sat on the mat", "a dog"),
        8,
        "[CLS] the cat sat [SEP] a dog [SEP]",
        "0 0 0 0 0 1 1 1",
    ),
    (
        ("the cat sat on", "a dog ran in"),
        8,
        "[CLS] the cat sat [SEP] a dog [SEP]",
        "0 0 0 0 0 1 1 1",
    ),
    (
        ("unplayable zebra",),
        24,
        "[CLS] un [UNK] [SEP]".replace("un [UNK]", "[UNK] [UNK]"),
        "0 0 0 0",
    ),
]


@pytest.mark.parametrize(("texts", "length", "pieces", "types"), PACKED)
def test_packing(vocabulary, texts, length, pieces, types):
    ids, type_ids = TextEncoder(vocabulary, length)(*(tf.constant([t]) for t in texts))
    assert _pieces(vocabulary, ids[0].numpy()) == pieces
    assert " ".join(map(str, type_ids[0].numpy())) == types


def test_the_file_of_a_vocabulary_is_read_once(vocabulary):
    """In gs://, Model Garden's layer took a request that failed for the end of the vocabulary."""
    gone = dataclasses.replace(vocabulary, path="gs://nowhere/vocab.txt")
    (expected, _), (found, _) = (
        TextEncoder(v, 12)(tf.constant(["un cat zebra"])) for v in (vocabulary, gone)
    )
    assert found.to_list() == expected.to_list()


def test_cased_text_stays_as_it_is(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join([*support.VOCABULARY, "The", "é"]) + "\n", encoding="utf-8")
    cased = read_vocabulary(str(path), do_lower_case=False)
    ids, _ = TextEncoder(cased, 24)(tf.constant(["The é cat"]))
    assert _pieces(cased, ids[0].numpy()) == "[CLS] The é cat [SEP]"


def test_the_same_pieces_as_transformers(minilm):
    """Sentences with accents, controls, CJK, fractions and what else made tokenizers differ."""
    rows = json.loads(FIGURES.read_text(encoding="utf-8"))
    encoder = TextEncoder(minilm.vocabulary, 512)
    ids, _ = encoder(tf.constant([row["text"] for row in rows]))
    for row, found in zip(rows, ids.to_list(), strict=True):
        assert found == row["ids"], row["text"]


def _examples(count):
    words = support.WORDS[:20]
    texts = [" ".join(words[: 1 + i % 13]) for i in range(count)]
    places = [("file", i) for i in range(count)]
    return Examples(texts, None, None, list(map(str, range(count))), places)


@pytest.fixture(scope="module")
def features(vocabulary):
    return tokenize(_examples(1100), TextEncoder(vocabulary, 12), np.arange(1100) % 2)


def test_tokenize_in_parts(features):
    assert len(features) == 1100
    assert features.lengths.tolist() == [min(3 + i % 13, 12) for i in range(1100)]
    assert features.labels.numpy()[:3].tolist() == [0, 1, 0]
    assert features.cut.tolist() == [3 + i % 13 > 12 for i in range(1100)]


def test_unknown_share(vocabulary):
    encoder = TextEncoder(vocabulary, 12)
    ids, _ = encoder(tf.constant(["zebra cat"]))
    assert encoder.unknown_share(ids) == pytest.approx(0.25)


@pytest.mark.parametrize(("count", "batch", "steps"), [(100, 8, 25), (7, 4, 7), (3, 8, 2)])
def test_every_example_comes_equally_often(count, batch, steps):
    plan = plan_batches(np.arange(count), batch, steps, seed=0)
    assert plan.shape == (steps, batch)
    seen = np.bincount(plan.reshape(-1), minlength=count)
    assert seen.max() - seen.min() <= 1
    epochs = steps * batch / count
    assert seen.min() >= np.floor(epochs) and seen.max() <= np.ceil(epochs)


def test_the_plan_depends_on_the_seed_and_nothing_else():
    lengths = np.random.default_rng(0).integers(3, 100, 500)
    plans = [plan_batches(lengths, 8, 100, seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(plans[0], plans[1])
    assert (plans[0] != plans[2]).any()


def test_batches_hold_similar_lengths():
    lengths = np.random.default_rng(0).integers(3, 100, MAX_POOL * 8)
    plan = plan_batches(lengths, 8, MAX_POOL, 0)
    spread = np.ptp(lengths[plan], axis=1)
    assert spread.mean() < 10
    assert np.corrcoef(np.arange(MAX_POOL), lengths[plan].mean(1))[0, 1] < 0.5  # In random order.
    at_random = plan_batches(lengths, 8, MAX_POOL, 0, "no")
    assert np.ptp(lengths[at_random], axis=1).mean() > 60


@pytest.mark.parametrize("count", [8, 9, 33, 100, 1000])
def test_no_batch_holds_an_example_twice(count):
    """But one with the end of an epoch and the start of the next, as it comes by chance."""
    lengths = np.random.default_rng(0).integers(3, 20, count)
    plan = plan_batches(lengths, 8, 200, 0)
    epochs = np.arange(200 * 8).reshape(200, 8) // count
    whole = plan[epochs[:, 0] == epochs[:, -1]]
    assert len(whole)
    assert all(len(set(batch)) == 8 for batch in whole.tolist())


def test_how_many_batches_are_sorted_together():
    """By hand: of 36 examples in batches of 4 there are 9 an epoch; a quarter of them is 2."""
    assert pool_sizes(36, 4, 10, "epoch") == [2, 2, 2, 2, 1] * 2
    assert pool_sizes(38, 4, 11, "epoch") == [
        2,
        2,
        2,
        2,
        1,
        1,
        2,
        2,
        2,
        2,
        1,
    ]  # The tenth has of both.
    assert pool_sizes(3, 4, 3, "epoch") == [1, 1, 1]
    assert pool_sizes(8 * MAX_POOL * 4, 4, 65, "epoch") == [MAX_POOL] * 8  # And never more.
    assert pool_sizes(36, 4, 65, "run") == [64, 64]
    assert pool_sizes(36, 4, 3, "no") == [1, 1, 1]


def test_the_order_of_earlier_versions():
    """A run that they began goes on with it."""
    plan = plan_batches(np.arange(10) * 7 % 5, 2, 7, 3, "run")
    assert plan.tolist() == [[9, 4], [4, 2], [6, 1], [8, 3], [5, 3], [7, 7], [0, 5]]


def test_train_batches_are_padded_to_a_multiple_of_eight(features):
    for inputs, labels in train_batches(features, 8, 20, 0, max_seq_length=12):
        width = inputs["input_word_ids"].shape[1]
        lengths = inputs["input_mask"].numpy().sum(1)
        assert width == (8 if lengths.max() <= 8 else 12)
        assert labels.shape == (8,)
        assert (inputs["input_word_ids"].numpy()[:, 0] == 2).all()
        assert not (inputs["input_word_ids"].numpy() * (1 - inputs["input_mask"].numpy())).any()


def test_fixed_length_is_static(features):
    dataset = train_batches(features, 8, 2, 0, max_seq_length=12, pad_to=None)
    assert dataset.element_spec[0]["input_word_ids"].shape == (8, 12)


@pytest.mark.parametrize("batch", [8, 7, 2000])
def test_evaluation_sees_every_example_once(features, batch):
    plan = eval_plan(features, batch)
    order = plan.reshape(-1)
    assert sorted(order[order >= 0].tolist()) == list(range(1100))
    assert (order < 0).sum() == -1100 % batch
    lengths = [
        inputs["input_mask"].numpy().sum(1)
        for inputs in eval_batches(features, plan, max_seq_length=12)
    ]
    np.testing.assert_array_equal(np.concatenate(lengths), features.lengths[np.maximum(order, 0)])


def test_features_of_one_example_fit_one_batch():
    one = Features(
        tf.ragged.constant([[2, 3]]),
        tf.ragged.constant([[0, 0]]),
        tf.constant([1]),
        np.array([2]),
        np.array([False]),
    )
    (inputs,) = eval_batches(one, eval_plan(one, 8), 12)
    assert inputs["input_word_ids"].shape == (8, 8)
    assert eval_plan(one, 8).tolist() == [[0] + [-1] * 7]


def test_texts_are_encoded_alike_before_and_after_tracing(vocabulary, monkeypatch):
    monkeypatch.setattr("adapter_bert_tf.data.batches.UNTRACED", 2)
    texts = tf.constant(["the cat sat", "a dog"]).numpy().tolist()
    encode = BatchEncoder(TextEncoder(vocabulary, 5), columns=1)
    found = [encode([(texts,)])[0] for _ in range(4)]
    assert encode._traced is not None
    for ids, types, full in found:
        assert ids.to_list() == found[0][0].to_list() and types.to_list() == found[0][1].to_list()
        assert full.numpy().tolist() == found[0][2].numpy().tolist()
