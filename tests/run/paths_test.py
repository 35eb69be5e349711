"""What is refused before anything starts."""

import importlib.metadata
import re
import sys
import types

import pytest
import tensorflow as tf

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.doctor import command as doctor
from adapter_bert_tf.run import planning
from adapter_bert_tf.training.device.strategy import require_tf_config, tpu_runtime
from tests.refusals import raises_code
from tests.runs import command

TPU = ["--task_name=mrpc", "--do_train", "--use_tpu", "--tpu_name=mine"]


def test_with_a_tpu_every_path_must_be_remote():
    error = command(*TPU, "--data_dir=data", "--base_model=gs://b/base", "--output_dir=/tmp/out")
    assert "--data_dir=data; --output_dir=/tmp/out" in error
    assert "gs://b/base" not in error and "gsutil cp" in error


def test_with_a_tpu_what_is_not_given_is_local_too():
    error = command(
        "--task_name=demo_factuality", "--do_train", "--distribution=tpu", "--output_dir=gs://b/out"
    )
    assert "--data_dir (not given" in error and "--base_model (not given" in error


def test_with_a_tpu_the_folders_of_several_tasks_must_be_remote_too():
    error = command(
        "--task_name=cola=gs://b/CoLA,mrpc=data/MRPC",
        "--tuning=multitask_adapters",
        *("--do_train", "--use_tpu", "--tpu_name=mine"),
        "--output_dir=gs://b/out",
    )
    assert "--task_name=data/MRPC; --base_model (not given" in error


@pytest.mark.parametrize("flag", ["output_dir", "adapter_dir", "export_dir"])
def test_what_cannot_be_written_is_said_before_training(flag, tmp_path, capsys):
    error = command(
        "--task_name=demo_factuality",
        "--do_train",
        f"--output_dir={tmp_path}/out",
        "--do_export",
        f"--{flag}=/proc/none/there",
    )
    assert f"--{flag}=/proc/none/there cannot be written" in error
    assert "step" not in capsys.readouterr().out and not list(tmp_path.iterdir())


class CloudTpu:
    """Google's client of the Cloud TPU API, as far as it is asked."""

    def __init__(self, tpu, zone, project):
        if tpu == "absent":
            raise ValueError("no TPU of this name")
        self.place = f"{project}/{zone}/{tpu}"

    def runtime_version(self):
        return f"2.20.0 of {self.place}"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mine", "runtime 2.20.0 of us/here/mine"),
        ("absent", "runtime not known (no TPU of this name)"),
        ("grpc://10.0.0.2:8470", "runtime not known (from an address alone)"),
        ("local", "libtpu 0.0.14"),
    ],
)
def test_the_tpus_software_is_named(name, said, monkeypatch):
    client = types.SimpleNamespace(Client=CloudTpu)
    monkeypatch.setitem(sys.modules, "cloud_tpu_client", client)
    package = types.SimpleNamespace(name="libtpu", version="0.0.14")
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: iter([package]))
    assert tpu_runtime(name, "here", "us") == said


def test_a_tpu_without_packages_is_said_to_be_unknown(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloud_tpu_client", None)
    assert re.match(r"runtime not known \(.*cloud_tpu_client", tpu_runtime("mine"))
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: iter([]))
    assert tpu_runtime("local") == "libtpu of the machine's image (no package)"


def test_the_versions_are_printed_before_the_tpu_is_asked(tmp_path, capsys):
    error = command(
        "--task_name=demo_factuality",
        "--do_train",
        "--use_tpu",
        "--tpu_name=local",
        f"--output_dir={tmp_path}/out",
    )
    assert "No TPU could be reached" in error and '"tensorflow-tpu==' in error
    assert f"tensorflow {tf.__version__}; TPU local: libtpu " in capsys.readouterr().out


def batches(replicas, train=True, **sizes):
    values = {"train_batch_size": 12, "do_train": train, **sizes}
    return planning.batches_of(RunConfig.from_values(Command.CLASSIFIER, values), replicas)


@pytest.mark.parametrize(
    ("replicas", "advice"),
    [(8, "invalid: Use 8 or 16"), (5, "invalid: Use 10 or 15"), (16, "invalid: Use 16 or 16")],
)
def test_the_replicas_must_divide_the_batch(replicas, advice):
    with raises_code(advice):
        batches(replicas)


@pytest.mark.parametrize(
    ("asked", "replicas", "size"), [(8, 1, 8), (8, 8, 8), (9, 8, 16), (1, 4, 4)]
)
def test_evaluation_batches_are_rounded_up(asked, replicas, size):
    assert batches(replicas, train=False, eval_batch_size=asked).evaluate == size


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{",
        "[]",
        '{"cluster": {"worker": ["a:1"]}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}',
    ],
)
def test_several_workers_need_tf_config(text, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if text is not None:
        monkeypatch.setenv("TF_CONFIG", text)
    with raises_code("missing", "TF_CONFIG"):
        require_tf_config()


def test_sweeps_run_on_one_host(tmp_path):
    error = command(
        "--task_name=demo_factuality",
        "--do_train",
        "--do_eval",
        "--num_trials=2",
        f"--output_dir={tmp_path}/out",
        "--distribution=multi_worker",
    )
    assert "on one host" in error and not (tmp_path / "out").exists()


def test_the_doctor_names_versions_devices_and_credentials(capsys, monkeypatch):
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    assert doctor.main([]) == 0
    printed = capsys.readouterr().out
    for name in ("python", *doctor.PACKAGES, "CPU", "GPU", "TPU", "default base", "credentials"):
        assert re.search(rf"^[ !] {name} +\S", printed, re.M), name
    assert tf.__version__ in printed


def test_the_doctor_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "VERSION", "2.19")
    assert doctor.main([]) == 1
    assert 'pip install "tensorflow==2.19.*"' in capsys.readouterr().out


def test_the_doctor_finds_a_wrong_credentials_variable(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    doctor.main([])
    assert re.search(r"^! credentials .*key.json is not there", capsys.readouterr().out, re.M)


def test_the_doctor_tries_folders(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert doctor.main([str(tmp_path), str(tmp_path / "file")]) == 1
    printed = capsys.readouterr().out
    assert "1 entries, can be read and written" in printed
    assert re.search(r"^! .*cannot be written", printed, re.M)
    assert doctor.main([str(tmp_path / "new" / "folder")]) == 0
    assert "not there yet, can be read and written" in capsys.readouterr().out
    assert not (tmp_path / "new").exists()
