"""Which signatures can share a batch among requests, and that this changes no answer."""

import importlib.util
from concurrent import futures

import numpy as np
import pytest
import tensorflow as tf

import adapter_bert_tf as abt
from adapter_bert_tf.heads.serving_tags import SPLITS
from adapter_bert_tf.serving.joined import join
from tests.runs import ROOT

pytestmark = pytest.mark.long

SHORT = {"max_seq_length": 16}
TASKS = {  # Name: labels, inputs.
    "moods": (["bad", "good"], SHORT),
    "pairs": (["x", "y", "z"], {"texts": 2, "max_seq_length": 8}),
    "topics": (["a", "b", "c"], SHORT | {"head": "multi_label"}),
    "questions": ((), {"head": "span", "max_seq_length": 24, "max_query_length": 8}),
}
ROWS = ["the cat sat on the house and ran", "rain", "", "it is not bad", "why?", "red house"]


@pytest.fixture(scope="module")
def signatures(tiny_base_folder, tmp_path_factory):
    """The signatures of a SavedModel of tasks with random weights, and `tasks`."""
    folder, rng = tmp_path_factory.mktemp("batches"), np.random.default_rng(0)
    model = abt.AdapterModel(abt.load_base(tiny_base_folder))
    for name, (labels, inputs) in TASKS.items():
        model.add_adapter(name, labels, abt.AdapterConfig(4), **inputs)
        for variable in model._tasks[name].values.values():
            variable.assign_add(rng.normal(size=variable.shape) * 0.3)
        model.save_adapter(name, folder / name)
    join([str(folder / name) for name in TASKS], model.base, str(folder / "served"))
    loaded = tf.saved_model.load(str(folder / "served"))  # It holds the variables.
    yield loaded.signatures


def requests(function):
    """A request of each row, dicts of lists."""
    names = ["moods", "pairs"]
    return [
        {
            name: [names[i % 2] if name == "task" else ROWS[(i + place) % len(ROWS)]]
            for place, name in enumerate(sorted(function.structured_input_signature[1]))
        }
        for i in range(len(ROWS))
    ]


def answer(function, request):
    values = function(**{name: tf.constant(texts) for name, texts in request.items()})
    return {name: value.numpy() for name, value in values.items()}


def assert_same(answered, expected):
    assert answered.keys() == expected.keys()
    for name, value in expected.items():
        if value.dtype == object:
            assert answered[name].tolist() == value.tolist()
        else:
            np.testing.assert_allclose(answered[name], value, atol=1e-6)


@pytest.mark.parametrize("name", [*TASKS, "tasks"])
def test_a_batch_of_requests_has_the_answers_of_each(name, signatures):
    function = signatures[name]
    asked = requests(function)
    together = answer(function, {key: [row[key][0] for row in asked] for key in asked[0]})
    for i, request in enumerate(asked):
        assert_same({key: value[i : i + 1] for key, value in together.items()},
                    answer(function, request))  # fmt: skip


@pytest.fixture(scope="module")
def server():
    """The module of the example."""
    path = ROOT / "examples" / "serving" / "server.py"
    spec = importlib.util.spec_from_file_location("serving_example", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SETTINGS = {
    "max_batch_size": 8,
    "batch_timeout_micros": 20_000,
    "max_enqueued_batches": 100,
    "num_batch_threads": 2,
}


def test_the_example_knows_the_output_that_cannot_be_cut_by_row(server):
    """It has a value more than rows (`mixed_test.py`), so that a server cannot cut it."""
    assert server.SPLITS == SPLITS


def test_concurrent_requests_have_their_own_answers_and_a_bad_one_fails_alone(signatures, server):
    function = signatures["tasks"]
    shared = server.Signature(function, "tasks", SETTINGS)
    asked = requests(function) * 3
    shared(asked[0])  # First calls at the same time would each prepare the graph.
    unknown = asked[0] | {"task": ["unknown"]}
    with futures.ThreadPoolExecutor(len(asked) + 1) as pool:
        *good, bad = [pool.submit(shared, request) for request in [*asked, unknown]]
        for request, future in zip(asked, good, strict=True):
            assert_same(future.result(), answer(function, request))
        with pytest.raises(tf.errors.InvalidArgumentError, match="Unknown task"):
            bad.result()
