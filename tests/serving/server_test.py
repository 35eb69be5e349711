"""The example `examples/serving/server.py` as a process: answers, errors, and a new version."""

import json
import re
import urllib.error
import urllib.request
from concurrent import futures

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

import adapter_bert_tf as abt
from adapter_bert_tf.serving.joined import join
from benchmarks.serving_processes import served
from tests.runs import ROOT

pytestmark = pytest.mark.long

BATCHING = "max_batch_size { value: 8 }\nbatch_timeout_micros { value: 2000 }\n" + (
    "max_enqueued_batches { value: 9 }\nnum_batch_threads { value: 2 }\n"
)
TEXTS = ["the cat sat", "", "rain and sun"]


@pytest.fixture(scope="module")
def versions(tiny_base_folder, tmp_path_factory):
    """A folder of two versions: the second one has another task."""
    folder, rng = tmp_path_factory.mktemp("server"), np.random.default_rng(0)
    model = abt.AdapterModel(abt.load_base(tiny_base_folder))
    for name, labels in {"moods": ["bad", "good"], "stars": ()}.items():
        model.add_adapter(name, labels, abt.AdapterConfig(4), max_seq_length=16)
        for variable in model._tasks[name].values.values():
            variable.assign_add(rng.normal(size=variable.shape) * 0.3)
        model.save_adapter(name, folder / name)
    for number, names in enumerate((["moods"], ["moods", "stars"]), 1):
        output = folder / "versions" / str(number)
        join([str(folder / name) for name in names], model.base, str(output))
    return folder / "versions"


@pytest.fixture(scope="module")
def server(versions):
    with served(versions, BATCHING) as running:
        yield running


def ask(server, body, name="bert"):
    """The status and the JSON of an answer."""
    url = f"http://127.0.0.1:{server.port}/v1/models/{name}:predict"
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_answers_are_those_of_the_saved_model(server):
    loaded = tf.saved_model.load(str(server.base / "1"))
    expected = loaded.signatures["moods"](text_a=tf.constant(TEXTS))
    body = {"signature_name": "moods", "inputs": {"text_a": TEXTS}}
    status, answered = ask(server, body)
    assert status == 200
    np.testing.assert_allclose(answered["outputs"]["logits"], expected["logits"], atol=1e-6)
    labels = [label.decode() for label in expected["label"].numpy()]
    assert answered["outputs"]["label"] == labels
    for rows in ([{"text_a": text} for text in TEXTS], TEXTS):
        _, answered = ask(server, {"signature_name": "moods", "instances": rows})
        assert [row["label"] for row in answered["predictions"]] == labels


def test_no_rows_have_no_answers(server):
    status, answered = ask(server, {"signature_name": "moods", "inputs": {"text_a": []}})
    assert status == 200 and answered["outputs"]["label"] == []


TASK = {"task": ["moods"], "text_a": ["rain"], "text_b": [""]}


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"{", 400, "JSONDecodeError"),
        ([], 400, "AttributeError"),
        ({"inputs": {}}, 400, "serving_default"),
        ({"signature_name": "moods"}, 400, "either inputs or instances"),
        ({"signature_name": "moods", "instances": [{"title": "A."}]}, 400, "The inputs are"),
        ({"signature_name": "moods", "inputs": {"text": ["a"]}}, 400, "inputs are ['text_a']"),
        ({"signature_name": "moods", "inputs": {"text_a": [1]}}, 400, ""),
        ({"signature_name": "tasks", "inputs": TASK | {"task": ["x"]}}, 400, "Unknown task"),
        ({"signature_name": "tasks", "inputs": TASK | {"text_a": []}}, 400, ""),
    ],
)
def test_what_is_wrong_is_said(server, body, status, reason):
    answered = ask(server, body)
    assert answered[0] == status and reason in answered[1]["error"]
    assert ask(server, {}, name="other")[0] == 404


def test_a_new_version_without_a_failed_request(server, versions):
    body = {"signature_name": "moods", "inputs": {"text_a": TEXTS}}
    _, expected = ask(server, body)
    score = {"signature_name": "stars", "inputs": {"text_a": TEXTS}}
    assert ask(server, score)[0] == 400  # It comes with the second version.

    def ask_until(changed):
        answers = []
        while not changed.done():
            answers.append(ask(server, body))
        return answers

    with futures.ThreadPoolExecutor(5) as pool:
        (versions / "2").rename(server.base / "2")
        changed = pool.submit(server.wait_for, 2)
        clients = [pool.submit(ask_until, changed) for _ in range(4)]
        answers = [answer for client in clients for answer in client.result()]
    assert len(answers) > 10
    for status, answered in answers:
        assert status == 200
        logits = answered["outputs"]["logits"]
        np.testing.assert_allclose(logits, expected["outputs"]["logits"], atol=1e-5)
    status, answered = ask(server, score)
    assert status == 200 and len(answered["outputs"]) == 3  # One output has no name.


def test_the_requests_of_the_page_that_warm_up_tensorflow_serving(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "serving_load.md").read_text(), re.S
    )
    exec(code, {})
    file = "staging/2/assets.extra/tf_serving_warmup_requests"
    (record,) = tf.data.TFRecordDataset(file).as_numpy_iterator()
    request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
    assert request.model_spec.signature_name == "tasks"
    assert set(request.inputs) == {"task", "text_a", "text_b"}
