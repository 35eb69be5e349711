"""Runs with every path in gs://, on a service that stumbles; what is forbidden stops at once."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests import support
from tests.fake_gcs import FakeGcs, Faults
from tests.runs import ROOT, write_mrpc

pytestmark = pytest.mark.long
FLAGS = [
    "--task_name=mrpc",
    "--data_dir=gs://data/MRPC",
    "--base_model=gs://data/base",
    "--do_train",
    "--max_seq_length=16",
    "--train_batch_size=8",
    "--num_train_epochs=7.5",
    "--learning_rate=1e-2",
    "--save_checkpoints_steps=20",
]


@pytest.fixture(scope="module")
def objects(tiny_base_folder, tmp_path_factory):
    """What the bucket `data` holds: the task and the base."""
    mrpc = write_mrpc(tmp_path_factory.mktemp("data") / "MRPC")
    folders = {"data/MRPC": mrpc, "data/base": pathlib.Path(tiny_base_folder)}
    return {
        f"{name}/{path.name}": path.read_bytes()
        for name, folder in folders.items()
        for path in folder.iterdir()
    }


def run(fake, cache, *more):
    """The command in a process that takes the fake for Google's; (status, what it printed)."""
    environment = (
        os.environ
        | fake.environment
        | {
            "ADAPTER_BERT_CACHE": str(cache),
            "ADAPTER_BERT_RETRY_SECONDS": "0.05",
            "GCS_RETRY_CONFIG_MAX_RETRIES": "0",
        }
    )  # So that it is our turn each time.
    done = subprocess.run(
        [sys.executable, "run_classifier.py", *FLAGS, *more],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
        check=False,
    )
    return done.returncode, done.stdout


def below(fake, prefix):
    return {
        key[len(prefix) :]: value for key, value in fake.objects.items() if key.startswith(prefix)
    }


@pytest.fixture(scope="module")
def undisturbed(objects, tmp_path_factory):
    """What a run without faults leaves in its bucket."""
    with FakeGcs(dict(objects), buckets=("out",)) as fake:
        status, text = run(
            fake,
            tmp_path_factory.mktemp("cache"),
            "--output_dir=gs://out/run",
            "--do_eval",
            "--do_predict",
            "--do_export",
        )
        assert status == 0, text
        return below(fake, "out/run/")


def test_everything_is_in_the_bucket(undisturbed):
    names = set(undisturbed)
    assert {
        "adapter/adapter_config.json",
        "adapter/adapter.safetensors",
        "adapter/README.md",
        "eval_results.txt",
        "test_results.tsv",
        "MRPC.tsv",
        "metrics.jsonl",
        "run.json",
        "eval_details.json",
        "report.html",
        "saved_model/saved_model.pb",
        "checkpoints/checkpoint",
        "checkpoints/flags.json",
        "checkpoints/ckpt-60.index",
        "checkpoints/ckpt-40.index",
    } <= names
    assert any("tfevents" in name for name in names)
    assert not [name for name in names if re.search(r"\.tmp|\.lock|\.writable|ckpt-20", name)]
    assert undisturbed["metrics.jsonl"].count(b"\n") >= 3


@pytest.mark.slow
def test_a_tenth_of_the_requests_failing_changes_nothing(objects, undisturbed, tmp_path):
    with FakeGcs(dict(objects), buckets=("out",), faults=Faults(share=0.1, seed=1)) as fake:
        status, text = run(fake, tmp_path, "--output_dir=gs://out/run", "--do_eval")
        assert status == 0, text
        assert sum(fake.injected.values()) >= 5
        left = below(fake, "out/run/")
    assert re.search(r"gs://\S+: .* Trying again in [\d.]+ s \(1 of 7\)", text)
    for name in ("adapter/adapter.safetensors", "eval_results.txt"):
        assert left[name] == undisturbed[name]
    assert not [name for name in left if re.search(r"\.tmp|\.lock|\.writable", name)]


@pytest.mark.slow
def test_an_interrupted_run_goes_on_from_the_bucket(objects, undisturbed, tmp_path):
    kept = {
        f"out/run/{name}": content
        for name, content in undisturbed.items()
        if ("checkpoints/" in name and "ckpt-60" not in name) or "metrics" in name
    }
    kept["out/run/checkpoints/checkpoint"] = (  # As TensorFlow writes it after step 40.
        b'model_checkpoint_path: "ckpt-40"\nall_model_checkpoint_paths: "ckpt-40"\n'
        b"all_model_checkpoint_timestamps: 1.0\nlast_preserved_timestamp: 1.0\n"
    )
    with FakeGcs(objects | kept) as fake:
        status, text = run(
            fake, tmp_path, "--output_dir=gs://out/run", "--do_eval", "--do_predict", "--do_export"
        )
        left = below(fake, "out/run/")
    assert status == 0, text
    assert "Resuming from step 40" in text
    assert left["adapter/adapter.safetensors"] == undisturbed["adapter/adapter.safetensors"]


FORBIDDEN = {
    "an output bucket that cannot be written": (
        ["--output_dir=gs://closed/run"],
        {"read_only": ("closed",), "buckets": ("closed",)},
        "--output_dir=gs://closed/run cannot be written.*denied",
    ),
    "a bucket of another": (
        ["--output_dir=gs://other/run"],
        {"forbidden": ("other",), "buckets": ("other",)},
        "--output_dir=gs://other/run cannot be written.*denied",
    ),
    "a bucket that is not there": (
        ["--output_dir=gs://missing/run"],
        {},
        "--output_dir=gs://missing/run cannot be written",
    ),
    "data that is not there": (
        ["--output_dir=gs://out/run", "--data_dir=gs://data/MPRC"],
        {"buckets": ("out",)},
        "--data_dir=gs://data/MPRC is not there",
    ),
}


@pytest.mark.parametrize(
    "case", support.seldom(FORBIDDEN, ("a bucket of another", "data that is not there"))
)
def test_what_cannot_be_stops_before_training(case, objects, tmp_path):
    flags, service, message = FORBIDDEN[case]
    with FakeGcs(dict(objects), **service) as fake:
        status, text = run(fake, tmp_path, *flags)
        assert len(fake.requests) < 40  # No patience with what will not change.
    assert status == 1 and re.search(f"error: {message}", text, re.S), text
    assert "What MRPC holds" not in text and "Trying again" not in text


@pytest.mark.slow
def test_a_fusion_and_its_members_in_a_bucket(objects, tmp_path):
    """Members are read from the bucket and copied into it; the fusion is whole without them."""
    with FakeGcs(dict(objects), buckets=("out",), faults=Faults(0.05)) as fake:
        small = ("--adapter=pfeiffer", "--adapter_size=4", "--notrain_layer_norm")
        for seed in "01":
            flags = (*small, f"--seed={seed}", "--num_train_epochs=1")
            status, text = run(fake, tmp_path, f"--output_dir=gs://out/{seed}", *flags)
            assert status == 0, text
        fuse = "--fuse=a=gs://out/0/adapter,b=gs://out/1/adapter"
        flags = ("--tuning=fusion", fuse, "--num_train_epochs=1", "--do_predict")
        status, text = run(fake, tmp_path, "--output_dir=gs://out/fused", *flags)
        assert status == 0, text
        found = below(fake, "out/fused/")
        assert sum(name.endswith("/adapter.safetensors") for name in found) == 3
        for name in [name for name in fake.objects if name.startswith(("out/0/", "out/1/"))]:
            del fake.objects[name]
        flags = ("--nodo_train", "--do_predict", "--adapter_dir=gs://out/fused/adapter")
        status, text = run(fake, tmp_path, "--output_dir=gs://out/again", *flags)
        assert status == 0, text
        assert below(fake, "out/again/")["MRPC.tsv"] == found["MRPC.tsv"]
