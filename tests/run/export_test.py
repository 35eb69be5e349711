"""`--do_export`: in the run that trains, and of a saved adapter."""

import os
import re

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.store import load_adapter
from tests.runs import base_flags, command, train, write_mrpc

pytestmark = pytest.mark.long


@pytest.fixture
def mrpc(tmp_path):
    return write_mrpc(tmp_path / "MRPC")


def _probabilities(model, mrpc):
    rows = [line.split("\t") for line in (mrpc / "test.tsv").read_text().splitlines()[1:]]
    served = tf.saved_model.load(str(model)).signatures["serving_default"]
    return served(
        text_a=tf.constant([row[3] for row in rows]), text_b=tf.constant([row[4] for row in rows])
    )["probabilities"].numpy()


@pytest.mark.parametrize("tuning", ["adapters", pytest.param("full", marks=pytest.mark.long)])
def test_it_predicts_what_the_run_predicts(tuning, mrpc, tiny_base_folder, tmp_path):
    out = train(
        mrpc,
        tiny_base_folder,
        tmp_path / "out",
        "--do_predict",
        "--do_export",
        f"--tuning={tuning}",
        "--learning_rate=1e-2",
        "--num_train_epochs=20",
    )
    expected = np.loadtxt(out / "test_results.tsv")
    assert expected.std(0).max() > 1e-3
    np.testing.assert_allclose(_probabilities(out / "saved_model", mrpc), expected, atol=1e-5)
    error = command(
        "--task_name=mrpc",
        "--do_export",
        f"--adapter_dir={out}/adapter",
        f"--data_dir={mrpc}",
        *base_flags(tiny_base_folder),
        f"--output_dir={tmp_path}/again",
        f"--export_dir={tmp_path}/exported",
        "--max_seq_length=16",
    )
    assert error is None
    np.testing.assert_allclose(_probabilities(tmp_path / "exported", mrpc), expected, atol=1e-5)


def test_refused_before_training(mrpc, tiny_base_folder, tmp_path):
    (tmp_path / "thesis").mkdir()
    for name in ("saved_model.pb", "notes.txt"):
        (tmp_path / "thesis" / name).write_text(name)
    flags = [
        "--task_name=mrpc",
        "--do_train",
        "--do_export",
        f"--data_dir={mrpc}",
        *base_flags(tiny_base_folder),
        f"--output_dir={tmp_path}/out",
    ]
    for more in ([], ["--overwrite"], ["--num_trials=2", "--do_eval"]):
        error = command(*flags, f"--export_dir={tmp_path}/thesis", *more)
        assert re.search(r"will not be replaced.*notes.txt", error)
        for path in (tmp_path / "thesis").iterdir():
            assert path.read_text() == path.name
    assert len(os.listdir(tmp_path / "thesis")) == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_best_of_several_seeds_is_exported(mrpc, tiny_base_folder, tmp_path):
    out = train(
        mrpc,
        tiny_base_folder,
        tmp_path / "out",
        "--do_eval",
        "--do_predict",
        "--do_export",
        "--num_trials=2",
        "--num_train_epochs=1",
    )
    expected = np.loadtxt(out / "test_results.tsv")
    np.testing.assert_allclose(_probabilities(out / "saved_model", mrpc), expected, atol=1e-5)
    assert len(list(out.rglob("saved_model.pb"))) == 1


def test_adapter_drop_and_storage(mrpc, tiny_base_folder, tmp_path, caplog):
    out = train(
        mrpc,
        tiny_base_folder,
        tmp_path / "out",
        "--adapter_drop=1",
        "--adapter_dtype=float16",
        "--num_train_epochs=1",
    )
    saved = load_adapter(str(out / "adapter"))
    assert saved.config["adapter"]["layers"] == [1]
    assert not any("adapters/layer_0" in name for name in saved.weights)
    shared = [
        "--task_name=mrpc",
        "--do_eval",
        f"--data_dir={mrpc}",
        "--max_seq_length=16",
        *base_flags(tiny_base_folder),
        f"--adapter_dir={out}/adapter",
    ]
    assert command(*shared, f"--output_dir={tmp_path}/eval", "--adapter_drop=1") is None
    assert "--adapter_drop" not in caplog.text  # It was trained so.
    message = command(*shared, f"--output_dir={tmp_path}/none", "--adapter_drop=2")
    assert "no adapter is left of 2 layers" in message
