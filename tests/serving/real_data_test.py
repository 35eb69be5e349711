"""The exported model on MRPC's whole dev set, on the real base, from raw text."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests.runs import command

pytestmark = pytest.mark.long
CLIENT = """
import json, sys
import tensorflow as tf, tensorflow_text
serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
texts = json.load(sys.stdin)
rows = [serve(text_a=tf.constant(texts["text_a"][i : i + 64]),
              text_b=tf.constant(texts["text_b"][i : i + 64]))["probabilities"].numpy().tolist()
        for i in range(0, len(texts["text_a"]), 64)]
print(json.dumps(sum(rows, [])))
"""


@pytest.mark.slow
def test_it_predicts_what_the_command_predicts(real_data, minilm, tmp_path):
    data, base = tmp_path / "MRPC", tmp_path / "base"
    data.mkdir()
    shutil.copytree(os.path.dirname(minilm.weights_path), base)
    source = real_data / "glue" / "MRPC"
    shutil.copy(source / "train.tsv", data / "train.tsv")
    lines = (source / "dev.tsv").read_text(encoding="utf-8-sig").rstrip("\n").split("\n")
    rows = [line.split("\t") for line in lines[1:]]
    assert len(rows) == 408
    # The dev set where the command looks for what to predict.
    (data / "test.tsv").write_text(
        "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
        + "".join("\t".join([str(i), *row[1:]]) + "\n" for i, row in enumerate(rows)),
        encoding="utf-8",
    )
    error = command(
        "--task_name=mrpc",
        f"--data_dir={data}",
        f"--base_model={base}",
        "--do_train",
        "--max_train_examples=96",
        "--num_train_epochs=2",
        "--train_batch_size=16",
        "--do_predict",
        "--predict_batch_size=32",
        "--do_export",
        f"--output_dir={tmp_path}/out",
    )
    assert error is None
    expected = np.loadtxt(tmp_path / "out" / "test_results.tsv")
    shutil.move(tmp_path / "out" / "saved_model", tmp_path / "moved")
    for folder in (data, base, tmp_path / "out"):
        shutil.rmtree(folder)
    texts = {"text_a": [row[3] for row in rows], "text_b": [row[4] for row in rows]}
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, tmp_path / "moved"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        input=json.dumps(texts),
    )
    served = np.array(json.loads(done.stdout.splitlines()[-1]))
    assert expected.shape == (408, 2) and expected[:, 1].std() > 1e-3
    np.testing.assert_allclose(served, expected, atol=1e-5)
