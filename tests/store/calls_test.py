"""What `AdapterModel` and `TextEncoder` are given is checked before anything runs."""

import functools
import logging

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.methods.bottleneck import BottleneckModule
from adapter_bert_tf.base import load_base
from adapter_bert_tf.data.batches import eval_batches, eval_plan, tokenize
from adapter_bert_tf.data.examples import Examples
from adapter_bert_tf.data.tokenization import TextEncoder
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.predict.predictor import Predictor
from adapter_bert_tf.store import load_adapter
from adapter_bert_tf.training import inference
from adapter_bert_tf.training.tuning import Tuning
from tests.refusals import raises_code

SIZES = AdapterConfig(4)
TEXTS = Examples(["the cat", "a dog"], None, None, ["0", "1"], [("a", 1), ("a", 2)])


@pytest.fixture(scope="module")
def model(tiny_base_folder):
    model = AdapterModel(load_base(tiny_base_folder))
    model.add_adapter("a", ["0", "1"], SIZES)
    return model


@pytest.fixture(scope="module")
def encoder(model):
    return TextEncoder(model.base.vocabulary, 16)


@pytest.fixture(scope="module")
def inputs(encoder):
    return encoder.inputs(["the cat", "a dog in the house"])


NEW = {
    "one class": (["x", ["yes"]], {}, "invalid: ['yes']"),
    "labels in one text": (["x", "ab"], {}, "invalid: labels"),
    "labels of numbers": (["x", [0, 1]], {}, "invalid: labels"),
    "a name of two lines": (["a\nb", ["0", "1"]], {}, "invalid: 'a\\nb'"),
    "a name that ends a text in C": (["a\0b", ["0", "1"]], {}, "invalid: one line of text"),
    "a blank name": ([" ", ["0", "1"]], {}, "invalid: one line of text"),
    "a number for a name": ([3, ["0", "1"]], {}, "invalid: Received: 3"),
    "a name that is taken": (["a", ["0", "1"]], {}, "invalid: ['a']"),
    "a head of another type": (["x", ["0", "1"]], {"head": ["span"]}, "invalid: head"),
    "a tuning by its name": (["x", ["0", "1"]], {"tuning": "full"}, "invalid: tuning"),
    "a config by a number": (["x", ["0", "1"], 3], {}, "invalid: config"),
}


@pytest.mark.parametrize("case", NEW)
def test_a_new_task(case, model):
    arguments, more, expected = NEW[case]
    with raises_code(expected):
        model.add_adapter(*arguments, **more)
    assert model.list_adapters() == ["a"]


def test_a_number_of_layers_is_a_number():
    with raises_code("invalid", "top_k"):
        Tuning("top_k", top_k="2")


CALLS = {
    "nothing": (lambda x: None, "invalid: Inputs must be a dict with"),
    "texts": (lambda x: ["the cat"], "invalid: 'the cat'"),
    "no mask": (
        lambda x: {n: v for n, v in x.items() if n != "input_mask"},
        "invalid: Inputs must be a dict with",
    ),
    "one row alone": (
        lambda x: {n: v[0] for n, v in x.items()},
        "invalid: same shape [batch, seq]",
    ),
    "a shorter mask": (lambda x: x | {"input_mask": x["input_mask"][:, :2]}, "invalid: same shape"),
    "no word": (lambda x: {n: v[:, :0] for n, v in x.items()}, "invalid: with 1 to 24 word pieces"),
    "too many": (
        lambda x: {n: np.ones((1, 25), int) for n in x},
        "invalid: with 1 to 24 word pieces",
    ),
    "an id too large": (
        lambda x: x | {"input_word_ids": x["input_word_ids"] + 50},
        "invalid: input_word_ids",
    ),
    "an id below 0": (
        lambda x: x | {"input_word_ids": x["input_word_ids"] - 9},
        "invalid: input_word_ids",
    ),
    "a type too large": (
        lambda x: x | {"input_type_ids": x["input_type_ids"] + 7},
        "invalid: input_type_ids",
    ),
    "a mask of more": (lambda x: x | {"input_mask": x["input_mask"] * 3}, "invalid: input_mask"),
    "fractions": (
        lambda x: x | {"input_word_ids": tf.cast(x["input_word_ids"], tf.float32)},
        "invalid: input_word_ids",
    ),
    "an array that wraps around": (
        lambda x: x | {"input_word_ids": x["input_word_ids"].numpy().astype("i8") + 2**33},
        "invalid: input_word_ids",
    ),
    "a list that wraps around": (
        lambda x: (
            x | {"input_word_ids": (x["input_word_ids"].numpy().astype("i8") - 2**32).tolist()}
        ),
        "invalid: input_word_ids",
    ),
    "an array that is rounded": (
        lambda x: x | {"input_word_ids": x["input_word_ids"].numpy() + 0.5},
        "invalid: input_word_ids",
    ),
}


@pytest.mark.parametrize("case", CALLS)
@pytest.mark.parametrize("adapter", ["a", ["a", "a"]], ids=["one", "by row"])
def test_a_call(case, adapter, model, inputs):
    change, said = CALLS[case]
    with raises_code(said):
        model(change(dict(inputs)), adapter)


def test_names_of_another_type(model, inputs):
    for name in ("b", None, ["a"], 3):
        with raises_code("not_found", "'a'"):
            model.config(name)


@pytest.mark.parametrize("given", [None, 3, ["a"], b"a"])
def test_places_of_another_type(given, model):
    for call in (
        model.load_adapter,
        load_adapter,
        load_base if given else model.load_adapter,  # None is the default base.
        lambda place: model.save_adapter("a", place),
        lambda place: Predictor({"a": place}, base=model.base),
        lambda place: Predictor({"a": place}),
        AdapterModel if given else model.load_adapter,
    ):
        with raises_code("invalid", "`os.PathLike`"):
            call(given)


def test_a_model_of_a_folder(model, inputs, tiny_base_folder):
    other = AdapterModel(tiny_base_folder)
    assert other.base.fingerprint() == model.base.fingerprint()


def test_no_row_is_no_error_and_a_graph_is_the_callers(model, inputs):
    none = {name: value[:0] for name, value in inputs.items()}
    assert model(none, "a").shape == (0, 2)
    in_graph = tf.function(lambda x: model(x, "a"))(inputs)
    np.testing.assert_allclose(in_graph, model(inputs, "a"), atol=1e-6)


ENCODED = {
    "numbers": ([[1, 2]], "invalid: Texts must be strings. Received:"),
    "nothing for a text": ([["a", None]], "invalid: must be strings"),
    "a text by itself": (["a"], "invalid: one or two lists of strings"),
    "three columns": ([["a"]] * 3, "invalid: one or two lists of strings"),
    "columns of two lengths": ([["a"], ["b", "c"]], "invalid: one or two lists of strings"),
}


@pytest.mark.parametrize("case", ENCODED)
def test_texts(case, encoder):
    columns, said = ENCODED[case]
    with raises_code(said):
        encoder.inputs(*columns)


@pytest.mark.parametrize("length", [4, 0, -1, "16", 16.5, None])
def test_lengths(length, model, encoder):
    for make in (lambda n: TextEncoder(model.base.vocabulary, n), encoder.with_length):
        with raises_code("invalid", "max_seq_length"):
            make(length)


@pytest.fixture
def retracing():
    """The warnings of retracing."""
    records = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    tf.get_logger().addHandler(handler)
    yield lambda: [message for message in records if "retracing" in message]
    tf.get_logger().removeHandler(handler)


def test_rows_of_many_tasks_give_no_warning_of_retracing(tiny_base_folder, encoder, retracing):
    """TensorFlow counts traces of one piece of code, whatever it computes."""
    model = AdapterModel(load_base(tiny_base_folder))
    for size in (2, 3, 4, 5):  # Of different sizes, so that each has a function of its own.
        model.add_adapter(f"one{size}", ["0", "1"], AdapterConfig(size))
        model.add_adapter(f"two{size}", ["0", "1"], AdapterConfig(size))
    for rows in (1, 2, 3):
        names = [name for name in model.list_adapters() for _ in range(rows)]
        model(encoder.inputs([" ".join(["cat"] * rows)] * len(names)), names)
        model(encoder.inputs(["the cat"] * rows), ["one2"] * rows)
    assert not retracing()


def test_many_models_give_no_warning_of_retracing(tiny_base_folder, retracing):
    base = load_base(tiny_base_folder)
    for length in range(8, 14):
        model = AdapterModel(base)
        trained = model.add_adapter("a", ["0", "1"], SIZES)
        trained.compile()
        encoder = TextEncoder(base.vocabulary, length)
        features = tokenize(TEXTS, encoder)
        plan = eval_plan(features, 2)
        model(encoder.inputs(TEXTS.text_a), "a")
        run = functools.partial(eval_batches, features, plan, length)
        rows = inference.predict(trained, lambda share, run=run: run(shard=share))
        assert [len(part) for part in rows] == [2]
    assert not retracing()


def test_rows_of_many_lengths_are_traced_once(tiny_base_folder, retracing, monkeypatch):
    """Predictions and evaluations of all lengths have one graph each."""
    traces = []
    original = BottleneckModule.adapt_sublayer

    def adapt_sublayer(self, sublayer):
        traces.extend([sublayer] * ((sublayer.layer, sublayer.name) == (0, "attention")))
        return original(self, sublayer)

    monkeypatch.setattr(BottleneckModule, "adapt_sublayer", adapt_sublayer)
    model = AdapterModel(load_base(tiny_base_folder))
    trained = model.add_adapter("a", ["0", "1"], SIZES)
    trained.compile()
    encoder = TextEncoder(model.base.vocabulary, 24)
    texts = [" ".join(["cat"] * length) for length in range(1, 20)]
    traces.clear()
    for length, text in enumerate(texts):
        model(encoder.inputs([text] * (length % 3 + 1)), "a")
    assert len(traces) == 1
    places = [("a", line) for line in range(len(texts))]
    features = tokenize(Examples(texts, None, None, ["0"] * len(texts), places), encoder)
    run = functools.partial(eval_batches, features, eval_plan(features, 2), 24)
    rows = inference.predict(trained, lambda share: run(shard=share))
    assert sum(map(len, rows)) >= len(texts)  # The last batch is filled up.
    assert len(traces) == 2 and not retracing()
