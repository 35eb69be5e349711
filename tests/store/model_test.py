"""Many tasks on one base: add, train, save, load, delete, mixed batches."""

import gc
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.multi_adapter.mixed import SharedOutputs, shared_layers
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.store import load_adapter, save_adapter
from adapter_bert_tf.task_types import TASK_TYPES
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests import support
from tests.refusals import raises_code

SMALL = AdapterConfig(4, init_scale=0.3)
UPPER = AdapterConfig(4, init_scale=0.3, layers=(1,))
TASKS = {  # name: (labels, config, tuning)
    "two": (("a", "b"), SMALL, Tuning()),
    "three": (("a", "b", "c"), SMALL, Tuning()),
    "score": ((), SMALL, Tuning(train_layer_norm=False)),
    "top": (("a", "b"), PRESETS["pfeiffer"], Tuning(train_pooler=True)),
    "norms": (("x", "y"), None, Tuning("layer_norm")),
    "head": (("x", "y"), None, Tuning("head")),
    "upper": (("x", "y"), UPPER, Tuning(frozen_layers=1)),
    "upper too": (("x", "y", "z"), UPPER, Tuning(frozen_layers=1)),
    "upper norms": (("x", "y"), None, Tuning("layer_norm", frozen_layers=1)),
    "full": (("x", "y"), None, Tuning("full")),
    "upper full": (("x", "y"), None, Tuning("full", frozen_layers=1)),
    "top_k": (("x", "y"), None, Tuning("top_k", top_k=1)),
    "sets": (("a", "b", "c", "d"), SMALL, Tuning()),
    "span": ((), SMALL, Tuning()),
}
HEADS_OF = {"sets": "multi_label", "span": "span"}


def _noise(variables, seed):
    rng = np.random.default_rng(seed)
    for variable in variables:
        variable.assign_add(rng.normal(size=variable.shape) * 0.3)


def _add(model, name, seed=0):
    labels, config, tuning = TASKS[name]
    head = HEADS_OF.get(name, "classification")
    added = model.add_adapter(name, labels, config, head, tuning)
    _noise(added.trainable_variables, seed)


@pytest.fixture(scope="module")
def model(tiny_base_folder):
    model = AdapterModel(load_base(tiny_base_folder))
    for seed, name in enumerate(TASKS):
        _add(model, name, seed)
    return model


@pytest.fixture
def inputs():
    return support.batch(rows=6)


@pytest.mark.parametrize("name", TASKS)
def test_it_computes_what_its_training_model_computes(name, model, inputs):
    expected = model.model(name)(inputs)
    np.testing.assert_allclose(model(inputs, adapter=name), expected, atol=2e-6)


@pytest.mark.parametrize(
    "names",
    [
        ["two"] * 6,
        ["two", "three", "two", "three", "three", "two"],
        ["score", "two", "norms", "three", "head", "top"],
        ["sets", "two", "score", "sets", "three", "sets"],
        ["full", "two", "top_k", "full", "top", "head"],
        ["upper", "two", "upper too", "upper", "upper norms", "upper full"],
    ],
    ids=" ".join,
)
def test_a_mixed_batch_equals_each_task_alone(names, model, inputs):
    mixed = model(inputs, adapter=names).numpy()
    for row, name in enumerate(names):
        alone = model(inputs, adapter=name).numpy()[row]
        np.testing.assert_allclose(mixed[row, : len(alone)], alone, atol=1e-5)
        assert np.isneginf(mixed[row, len(alone) :]).all()


def test_a_text_goes_through_what_tasks_have_in_common_once(model):
    """Rows 0, 2 and 3 have one text; row 4 has another, and row 1 a task that freezes nothing."""
    seen, texts = [], [0, 0, 0, 0, 1]
    inputs = {name: value[texts] for name, value in support.batch(rows=2).items()}
    names = ["upper", "two", "upper too", "upper norms", "upper"]
    tasks = [model._require_task(name) for name in names]

    def frozen(layers, inputs):
        seen.append((layers, len(inputs["input_word_ids"])))
        return model.encoder.frozen_output(inputs, frozen_layers=layers)

    found = shared_layers(tasks, inputs, frozen)
    assert seen == [(1, 2)] and list(found) == [1]
    expected = model.encoder.frozen_output(inputs, frozen_layers=1).numpy()[[0, 2, 3, 4]]
    np.testing.assert_allclose(found[1].gather([0, 2, 3, 4]), expected, atol=1e-6)
    mixed = model(inputs, adapter=names)
    for row, name in enumerate(names):
        alone = model(inputs, adapter=name)[row]
        np.testing.assert_allclose(mixed[row, : len(alone)], alone, atol=1e-5)


@pytest.mark.parametrize("changed", ["input_mask", "input_type_ids"])
def test_texts_with_the_same_pieces_may_differ_otherwise(changed, model):
    inputs = {name: value[[0, 0]] for name, value in support.batch(rows=1).items()}
    other = np.array(inputs[changed])
    other[1, -1] = 1 - other[1, -1]
    inputs[changed] = tf.constant(other)
    mixed = model(inputs, adapter=["upper", "upper too"])
    for row, name in enumerate(("upper", "upper too")):
        alone = model(inputs, adapter=name)[row]
        np.testing.assert_allclose(mixed[row, : len(alone)], alone, atol=1e-5)


def test_tasks_go_on_from_what_they_have_in_common(model, inputs, monkeypatch):
    """What is computed once is what they read: with something else they answer something else."""
    names = ["upper", "upper too"] * 3
    expected = model(inputs, adapter=names)
    plain = SharedOutputs.gather
    monkeypatch.setattr(SharedOutputs, "gather", lambda shared, rows: 0 * plain(shared, rows))
    assert np.abs(model(inputs, adapter=names) - expected)[:, :2].max() > 1e-3


def test_spans_of_several_tasks(tiny_base_folder, inputs):
    model = AdapterModel(load_base(tiny_base_folder))
    for seed, config in enumerate((SMALL, SMALL, PRESETS["pfeiffer"])):
        trained = model.add_adapter(f"q{seed}", config=config, head="span")
        _noise(trained.trainable_variables, seed)
    names = ["q2", "q0", "q1", "q1", "q0", "q2"]
    mixed = model(inputs, adapter=names)
    for row, name in enumerate(names):
        np.testing.assert_allclose(mixed[row], model.model(name)(inputs)[row], atol=1e-5)


@pytest.mark.parametrize(
    "name", support.seldom(TASKS, ("two", "score", "top", "norms", "upper", "full"))
)
def test_what_is_saved_is_loaded_beside_others(name, model, inputs, tiny_base_folder, tmp_path):
    model.save_adapter(name, str(tmp_path / "a"))
    other = AdapterModel(load_base(tiny_base_folder))
    _add(other, "three", 9)
    other.load_adapter(str(tmp_path / "a"), name="loaded")
    _add(other, "norms", 8)
    other.delete_adapter("three")
    assert other.list_adapters() == ["loaded", "norms"]
    expected = model(inputs, adapter=name)
    np.testing.assert_allclose(other(inputs, adapter="loaded"), expected, atol=1e-6)
    np.testing.assert_allclose(other.model("loaded")(inputs), expected, atol=2e-6)
    other.save_adapter("loaded", str(tmp_path / "b"))
    first, second = (load_adapter(str(tmp_path / letter)) for letter in "ab")
    apart = {"name": "loaded", "sha256": second.config["sha256"]}
    assert first.config | apart == second.config
    np.testing.assert_equal(first.weights, second.weights)


def test_another_adapter_is_not_replaced_unasked(model, tmp_path):
    folder = tmp_path / "a"
    for _ in range(2):  # One of the same name and labels is.
        model.save_adapter("two", folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with raises_code("occupied", "'two'"):
        model.save_adapter("score", folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    model.save_adapter("score", folder, overwrite=True)
    assert load_adapter(str(folder)).config["task"] == "score"


def test_an_adapter_of_a_run_is_loaded(tiny_base_folder, inputs, tmp_path):
    base = load_base(tiny_base_folder)
    trained = TASK_TYPES["classification"].new_model(base.build_encoder(SMALL), 2)
    variables = select_trained(trained, Tuning())
    _noise(variables.values(), 5)
    save_adapter(str(tmp_path / "a"), support.adapter_config(base, SMALL), variables)
    model = AdapterModel(base)
    assert model.load_adapter(str(tmp_path / "a")) == "mrpc"
    np.testing.assert_allclose(model(inputs, adapter="mrpc"), trained(inputs), atol=2e-6)


def _fit(trained, inputs, labels):
    trained.compile("adam", trained.training_loss(), run_eagerly=True)  # No graph for 3 steps.
    trained.fit(inputs, np.array(labels), epochs=3, verbose=0)


def test_a_later_task_leaves_earlier_ones_bit_identical(tiny_base_folder, inputs):
    tf_keras.utils.set_random_seed(0)
    model = AdapterModel(load_base(tiny_base_folder))
    base = {name: v.numpy() for name, v in model.encoder.base_variables().items()}
    seen = {}
    for name in ("two", "three", "norms", "full", "top"):
        labels, config, tuning = TASKS[name]
        trained = model.add_adapter(name, labels, config, tuning=tuning)
        before = model(inputs, adapter=name).numpy()
        _fit(trained, inputs, [0, 1, 0, 1, 1, 0])
        after = model(inputs, adapter=name).numpy()
        assert np.abs(after - before).max() > 1e-4
        for earlier, outputs in seen.items():
            np.testing.assert_array_equal(model(inputs, adapter=earlier), outputs)
        seen[name] = after
    for name, variable in model.encoder.base_variables().items():
        np.testing.assert_array_equal(variable, base[name])


def test_dropped_layers_are_the_base(tiny_base_folder, inputs, tmp_path):
    base = load_base(tiny_base_folder)
    model = AdapterModel(base)
    _add(model, "score", 1)
    model.save_adapter("score", str(tmp_path / "a"))
    model.load_adapter(str(tmp_path / "a"), "dropped", drop_lowest=1)
    config = AdapterConfig(**SMALL.__dict__ | {"layers": (1,)})
    upper = TASK_TYPES["classification"].new_model(base.build_encoder(config), 1)
    load_adapter(str(tmp_path / "a"))
    saved = load_adapter(str(tmp_path / "a")).weights
    for name, variable in upper.named_variables().items():
        if name in saved:
            variable.assign(saved[name])
    np.testing.assert_allclose(model(inputs, adapter="dropped"), upper(inputs), atol=2e-6)
    with raises_code("invalid", "no adapter is left of 2 layers"):
        model.load_adapter(str(tmp_path / "a"), "none", drop_lowest=2)
    with raises_code("invalid", "0 or more"):
        model.load_adapter(str(tmp_path / "a"), "none", drop_lowest=-1)


def test_what_trained_a_task_is_given_back(tiny_base_folder, inputs):
    model = AdapterModel(load_base(tiny_base_folder))
    trained = model.add_adapter("a", ["0", "1"], SMALL)
    _fit(trained, inputs, [0, 1, 0, 1, 1, 0])
    expected, seen = model(inputs, adapter="a").numpy(), weakref.ref(trained)
    del trained
    gc.collect()
    assert seen() is None
    np.testing.assert_array_equal(model(inputs, adapter="a"), expected)
    np.testing.assert_allclose(model.model("a")(inputs), expected, atol=2e-6)


METRIC = {"name": "accuracy", "value": np.float32(0.5), "split": "dev"}


def test_a_metric_goes_with_the_weights_it_is_of(tiny_base_folder, inputs, tmp_path):
    """What is trained further was never scored; a name given at loading is kept."""
    model = AdapterModel(load_base(tiny_base_folder))
    _add(model, "two")
    model.save_adapter("two", tmp_path / "first", METRIC)
    for name in (None, "reviews"):
        model.load_adapter(tmp_path / "first", name or "again")
    model.save_adapter("reviews", tmp_path / "untouched")
    assert load_adapter(tmp_path / "untouched").config["metric"] == METRIC
    _noise(model.model("reviews").trainable_variables, 1)
    assert model.config("reviews")["metric"] is None and model.config("again")["metric"] == METRIC
    gc.collect()  # The model that trained it is gone.
    model.model("reviews")
    model.save_adapter("reviews", tmp_path / "further")
    assert load_adapter(tmp_path / "further").config["metric"] is None
    assert "not evaluated" in (tmp_path / "further" / "README.md").read_text()
    other = AdapterModel(load_base(tiny_base_folder))
    assert other.load_adapter(tmp_path / "further") == "reviews"
    assert other.load_adapter(tmp_path / "first") == "two"
    np.testing.assert_array_equal(other(inputs, "reviews"), model(inputs, "reviews"))


def test_tasks_come_and_go_beside_running_calls(tiny_base_folder, inputs):
    model, stop, failures = AdapterModel(load_base(tiny_base_folder)), threading.Event(), []
    _add(model, "two")

    def come_and_go():
        while not stop.is_set():
            try:
                model.add_adapter("passing", ["a", "b"], SMALL)
                model.delete_adapter("passing")
                model.delete_adapter("two")
                _add(model, "two")
            except Exception as error:
                failures.append(error)

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        for _ in range(40):
            try:
                model(inputs, "two")
            except InputError as error:  # It is not there at this moment.
                assert "No adapter 'two'" in str(error)
    finally:
        stop.set()
        other.join()
    assert not failures


class Fleeting(dict):
    """What is looked up in it is gone at once, as if another thread had taken it."""

    def get(self, key, default=None):
        return self.pop(key, default)

    def __contains__(self, key):
        return self.pop(key, None) is not None


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, inputs: model(inputs, "two"),
        lambda model, inputs: model(inputs, ["two"] * 6),
        lambda model, inputs: model.delete_adapter("two"),
        lambda model, inputs: model.config("two"),
    ],
    ids=["call", "rows", "delete", "config"],
)
def test_a_task_that_goes_meanwhile(ask, tiny_base_folder, inputs):
    model = AdapterModel(load_base(tiny_base_folder))
    _add(model, "two")
    model(inputs, "two")  # Its pass is kept.
    model._tasks = Fleeting(model._tasks)
    model._passes._functions = Fleeting(model._passes._functions)
    ask(model, inputs)
    with raises_code("not_found", "'two'"):
        ask(model, inputs)


def test_a_config_is_a_copy(model):
    model.config("two")["labels"].append("spy")
    assert model.config("two")["labels"] == ["a", "b"]


REFUSED = {
    "unknown": (lambda m, i: m(i, adapter="cola"), "not_found: 'cola'"),
    "unknown in a row": (lambda m, i: m(i, adapter=["two"] * 5 + ["cola"]), "not_found: 'cola'"),
    "too few": (lambda m, i: m(i, adapter=["two"]), "invalid: names"),
    "no rows": (lambda m, i: m({k: v[:0] for k, v in i.items()}, adapter=[]), "invalid: names"),
    "spans and classes": (
        lambda m, i: m(i, adapter=["two", "span"] * 3),
        "conflict: 'span'",
    ),
    "nothing for the rows": (lambda m, i: m(i, adapter=None), "invalid: adapter"),
    "unknown preset": (
        lambda m, i: m.add_adapter("new", ["a"], "no such preset"),
        "invalid: config must be one of",
    ),
    "a dict": (
        lambda m, i: m.add_adapter("new", ["a"], {"depth": 2}),
        "invalid: config must be one of",
    ),
    "labels as text": (lambda m, i: m.add_adapter("new", "ab"), "invalid: labels"),
    "no labels": (lambda m, i: m.add_adapter("new", None), "invalid: labels"),
    "half a metric": (
        lambda m, i: m.save_adapter("two", "none", {"name": "f1", "value": 1.0}),
        "invalid: metric",
    ),
    "a word for a truth": (
        lambda m, i: m.save_adapter("two", "none", overwrite="no"),
        "invalid: 'no'",
    ),
    "too long": (
        lambda m, i: m.add_adapter("new", ["a"], max_seq_length=25),
        "invalid: at most 24",
    ),
    "taken": (lambda m, i: m.add_adapter("two", ["a", "b"]), "invalid: must be unique"),
    "no name": (lambda m, i: m.add_adapter("", ["a", "b"]), "invalid: must be unique"),
    "equal labels": (lambda m, i: m.add_adapter("new", ["a", "a"]), "invalid: different strings"),
    "nothing to delete": (lambda m, i: m.delete_adapter("new"), "not_found: 'new'"),
    "unknown head": (lambda m, i: m.add_adapter("new", ["a"], head="crf"), "invalid: head"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, model, inputs):
    change, message = REFUSED[case]
    with raises_code(message):
        change(model, inputs)
    assert model.list_adapters() == list(TASKS)
