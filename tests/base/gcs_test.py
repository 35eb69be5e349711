"""Bases in gs:// folders, through TensorFlow's own client, against a fake of the service."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from adapter_bert_tf.base.readers import read_weights
from tests.fake_gcs import FakeGcs
from tests.support import GOLDEN, write_hugging_face

ROOT = pathlib.Path(__file__).parents[2]
GOOGLE_FILES = (
    "bert_config.json",
    "vocab.txt",
    "bert_model.ckpt.index",
    "bert_model.ckpt.data-00000-of-00001",
)
HUGGING_FACE_FILES = ("config.json", "vocab.txt", "model.safetensors")

GOOGLE_SOURCES = ("gs://bucket/google", "gs://bucket/google/", "gs://bucket/google/bert_model.ckpt")
HUGGING_FACE_SOURCES = ("gs://bucket/team/hf", "gs://bucket/team/hf/model.safetensors")
ERRORS = {
    "gs://bucket/missing": "No base at 'gs://bucket/missing': it is not a folder",
    "gs://missing/google": "No base at 'gs://missing/google': it is not a folder",
    "gs://bucket/team": "No configuration (bert_config.json or config.json) in "
    "'gs://bucket/team'. Found: ['hf/']",
}

# Run in a process of its own: TensorFlow's client reads the environment once.
SCRIPT = """
import json, sys
import numpy as np
from adapter_bert_tf.base import load_base
from adapter_bert_tf.errors import InputError

def load(source, batch):
    try:
        base = load_base(source)
        outputs = base.build_encoder()(batch)
    except InputError as error:
        return {"error": str(error)}
    return {"fingerprint": base.fingerprint()} | {k: v.numpy().tolist() for k, v in outputs.items()}

expected = np.load(sys.argv[1])
batch = {"input_word_ids": expected["input_ids"], "input_mask": expected["input_mask"],
         "input_type_ids": expected["segment_ids"]}
print(json.dumps({source: load(source, batch) for source in sys.argv[2:]}))
"""


@pytest.fixture(scope="module")
def hugging_face_folder(tmp_path_factory):
    """The golden base, written as Hugging Face's libraries do."""
    folder = tmp_path_factory.mktemp("base") / "hugging_face"
    config = json.loads((GOLDEN / "bert_config.json").read_text(encoding="utf-8"))
    config["hidden_act"] = "gelu_new"  # Their name for the tanh form, which Google calls gelu.
    vocabulary = (GOLDEN / "vocab.txt").read_text(encoding="utf-8").splitlines()
    weights = read_weights(str(GOLDEN / "bert_model.ckpt"))
    write_hugging_face(folder, weights, config, vocabulary)
    return folder


@pytest.fixture(scope="module")
def fake(hugging_face_folder):
    """The service with both bases; its lists come in pages of two."""
    objects = {"bucket/google/": b""}  # Google's console marks a folder with an empty object.
    objects |= {f"bucket/google/{name}": (GOLDEN / name).read_bytes() for name in GOOGLE_FILES}
    objects |= {
        f"bucket/team/hf/{name}": (hugging_face_folder / name).read_bytes()
        for name in HUGGING_FACE_FILES
    }
    with FakeGcs(objects, page_size=2) as fake:
        yield fake


@pytest.fixture(scope="module")
def loaded(fake, hugging_face_folder):
    """Dict from source, local ones too, to the base's fingerprint and outputs, or the error."""
    sources = [str(GOLDEN), str(hugging_face_folder)]
    sources += [*GOOGLE_SOURCES, *HUGGING_FACE_SOURCES, *ERRORS]
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(GOLDEN / "expected.npz"), *sources],
        cwd=ROOT,
        env=os.environ | fake.environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("source", GOOGLE_SOURCES)
def test_google_checkpoint_gives_what_the_local_one_gives(loaded, source):
    assert_same(loaded[source], loaded[str(GOLDEN)])


@pytest.mark.parametrize("source", HUGGING_FACE_SOURCES)
def test_safetensors_give_what_the_local_ones_give(loaded, hugging_face_folder, source):
    assert_same(loaded[source], loaded[str(hugging_face_folder)])


def test_both_formats_give_the_same(loaded):
    assert_same(loaded["gs://bucket/google"], loaded["gs://bucket/team/hf"])


@pytest.mark.parametrize(
    "key",
    [
        *(f"google%2F{name}" for name in GOOGLE_FILES),
        *(f"team%2Fhf%2F{name}" for name in HUGGING_FACE_FILES),
    ],
)
def test_files_are_read_from_the_service_without_credentials(loaded, fake, key):
    reads = [request for request in fake.requests if request.path == f"/bucket/{key}"]

    assert reads
    assert not any("authorization" in request.headers for request in reads)


def test_long_lists_are_read_to_the_end(loaded, fake):
    assert any("pageToken" in request.query for request in fake.requests)


@pytest.mark.parametrize("source", ERRORS)
def test_says_what_is_missing(loaded, source):
    assert loaded[source]["error"].startswith(ERRORS[source])


def assert_same(actual, expected):
    """The same fingerprint, and the same outputs to the last bit."""
    assert "error" not in actual, actual["error"]
    assert actual["fingerprint"] == expected["fingerprint"]
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_array_equal(actual[name], expected[name])
        assert np.std(actual[name]) > 0.1  # They are no zeros.
