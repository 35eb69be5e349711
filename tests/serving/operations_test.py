"""Operations of SavedModels that TensorFlow itself lacks, and the tool that has to import them."""

import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.serving.joined import join

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "serving.md").read_text()
UNKNOWN = """
import sys
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import op_def_registry

model = saved_model_pb2.SavedModel()
model.ParseFromString(open(sys.argv[1], "rb").read())
graph = model.meta_graphs[0].graph_def
nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
print(*{node.op for node in nodes if op_def_registry.get(node.op) is None})
"""

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def served(tiny_base_folder, tmp_path_factory):
    """A SavedModel of the task `mrpc`, of pairs."""
    folder = tmp_path_factory.mktemp("served")
    base = load_base(tiny_base_folder)
    model = AdapterModel(base)
    model.add_adapter("mrpc", ["0", "1"], AdapterConfig(4), texts=2)
    model.save_adapter("mrpc", str(folder / "mrpc"))
    join([str(folder / "mrpc")], base, str(folder / "model"))
    return folder / "model"


def test_the_page_names_the_operations_that_tensorflow_lacks(served):
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([\w>]+)`", row.split("|")[1])}
    assert {*_run("-c", UNKNOWN, served / "saved_model.pb").split()} == named


def test_saved_model_cli_runs_with_the_import(served):
    (block,) = re.findall(r"```\n(python -c .*?)```", PAGE, re.S)
    words = shlex.split(block.replace("\\\n", " ").replace("--dir=served", f"--dir={served}"))
    assert "Result for output key probabilities" in _run(*words[1:])


def _run(*words):
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
