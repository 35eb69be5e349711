"""LoRA and (IA)^3 in the weights of the base: the same answers, and no further operation."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.adapters.methods.ia3 import Ia3Config
from adapter_bert_tf.adapters.methods.lora import LoraConfig
from adapter_bert_tf.adapters.modules import PROJECTIONS
from adapter_bert_tf.adapters.presets import PRESETS
from adapter_bert_tf.adapters.variable_specs import DENSE_PATHS
from adapter_bert_tf.base import load_base
from adapter_bert_tf.multi_adapter.model import AdapterModel
from adapter_bert_tf.serving.export import export_task
from adapter_bert_tf.serving.merged import merged_model
from adapter_bert_tf.training.tuning import Tuning
from tests import support
from tests.refusals import raises_code
from tests.runs import base_flags, command, train, try_to_train, write_mrpc

MERGED = {
    "lora": LoraConfig(4, 6),
    "lora everywhere": LoraConfig(
        4, 6, projections=tuple(DENSE_PATHS), rank_stabilized=True, ranks={"layer_1/output": 2}
    ),
    "lora above": LoraConfig(4, layers=(1,)),
    "ia3": Ia3Config(),
    "ia3 everywhere": Ia3Config(tuple(n for names in PROJECTIONS.values() for n in names)),
}
HEADS = {"classification": ["no", "yes"], "span": []}


@pytest.fixture(scope="module")
def base(tiny_base_folder):
    return load_base(tiny_base_folder)


def model_with(base, config, head="classification", tuning=None):
    """A model with a task of random weights."""
    model, rng = AdapterModel(base), np.random.default_rng(0)
    trained = model.add_adapter("a", HEADS[head], config, head, tuning)
    for variable in trained.trainable_variables:
        variable.assign_add(rng.normal(size=variable.shape) * 0.15)
    return model


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("case", MERGED)
def test_it_computes_the_same(case, head, base):
    model = model_with(base, MERGED[case], head)
    task, inputs = model.model("a"), support.batch(rows=4)
    before = {name: value.numpy() for name, value in task.named_variables().items()}
    merged = merged_model(task, model.config("a"))
    assert not any(name.startswith("adapters/") for name in merged.named_variables())
    np.testing.assert_allclose(merged(inputs), task(inputs), atol=1e-5)
    for name, value in task.named_variables().items():
        np.testing.assert_array_equal(value, before[name])
    bare = model_with(base, None, head, Tuning("layer_norm"))
    assert np.abs(task(inputs) - bare.model("a")(inputs)).max() > 1e-2


def operations(folder):
    """How often each operation is in the functions of a SavedModel."""
    graph = tf.saved_model.load(str(folder)).signatures["ids"].graph
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    return collections.Counter(node.op for node in nodes)


@pytest.mark.parametrize("case", ["lora", "ia3"])
def test_the_saved_model_has_no_further_operation(case, base, tmp_path):
    model = model_with(base, MERGED[case])
    config = model.config("a")
    bare = model_with(base, None, tuning=Tuning("layer_norm"))
    for name, task in {
        "bare": merged_model(bare.model("a"), bare.config("a")),
        "merged": merged_model(model.model("a"), config),
        "unmerged": model.model("a"),
    }.items():
        export_task(str(tmp_path / name), task, config, base.vocabulary)
    found = {name: operations(tmp_path / name) for name in ("bare", "merged", "unmerged")}
    assert found["merged"] == found["bare"]
    assert found["unmerged"].total() > found["bare"].total()


@pytest.mark.parametrize("preset", [n for n, config in PRESETS.items() if config.why_unmerged])
def test_what_no_weights_of_the_base_replace_is_refused(preset, base):
    model = model_with(base, PRESETS[preset])
    with raises_code("unsupported", PRESETS[preset].why_unmerged):
        merged_model(model.model("a"), model.config("a"))


def test_the_command(tiny_base_folder, tmp_path):
    """Refused before training, and equal to the export without it."""
    mrpc = write_mrpc(tmp_path / "MRPC")
    for wrong in ("--adapter=houlsby", "--adapter=prefix"):
        error = try_to_train(
            mrpc, tiny_base_folder, tmp_path / "no", wrong, "--do_export", "--merge"
        )
        assert "--merge" in error and not (tmp_path / "no" / "adapter").exists()
    options = ["--adapter=lora", "--learning_rate=1e-2", "--do_export", "--merge"]
    out = train(mrpc, tiny_base_folder, tmp_path / "out", *options)
    again = [f"--adapter_dir={out}/adapter", f"--output_dir={tmp_path}/again"]
    data = ["--task_name=mrpc", f"--data_dir={mrpc}", "--max_seq_length=16"]
    assert command(*data, *base_flags(tiny_base_folder), *again, "--do_export") is None
    answers = [
        tf.saved_model.load(str(folder / "saved_model")).signatures["serving_default"](
            text_a=tf.constant(["the cat ran"]), text_b=tf.constant(["rain"])
        )["logits"]
        for folder in (out, tmp_path / "again")
    ]
    np.testing.assert_allclose(*answers, atol=1e-5)
