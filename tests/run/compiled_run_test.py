"""A whole run as on a machine with a GPU, which is made up: the CPU runs the compiled steps."""

import json
import re

import pytest

from adapter_bert_tf.training.device import compilation
from tests.runs import train, write_mrpc

FLAGS = ("--num_train_epochs=2", "--learning_rate=1e-2", "--do_eval", "--eval_batch_size=10")


@pytest.mark.long
def test_a_gpu_compiles_each_step_once(tiny_base_folder, tmp_path, monkeypatch, capsys):
    """The last batch of the evaluation, of 6 rows, has no program of its own."""
    monkeypatch.setenv("ADAPTER_BERT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compilation, "gpu_count", lambda: 1)
    mrpc = write_mrpc(tmp_path / "MRPC", rows=20)
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *FLAGS)
    printed = capsys.readouterr().out
    found = re.findall(r"XLA compiles the (\w+) step for batches of (\d+) x (\d+)", printed)
    assert [name for name, _, _ in found] == ["training", "evaluation"]
    assert found[1][1] == "10"
    record = json.loads((out / "run.json").read_text())
    assert record["compiled"] and record["flags"]["jit_compile"] is None
    plain = train(mrpc, tiny_base_folder, tmp_path / "plain", *FLAGS, "--nojit_compile")
    assert "XLA" not in capsys.readouterr().out
    assert not json.loads((plain / "run.json").read_text())["compiled"]
