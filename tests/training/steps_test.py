"""The compiled steps: what TPUs demand of them, and what stays float32 in every precision."""

import re

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import PRESETS, AdapterConfig
from adapter_bert_tf.adapters.languages.stack import StackConfig
from adapter_bert_tf.adapters.methods.fusion_config import FusionConfig
from adapter_bert_tf.adapters.methods.hyperformer import HyperFormerConfig
from adapter_bert_tf.adapters.methods.per_task import PerTaskConfig
from adapter_bert_tf.adapters.methods.projected_attention import PalsConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.data.plain_text.masking import POSITIONS
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.heads.masked_words.model import MaskedWordModel
from adapter_bert_tf.heads.mixed.classifier import HeadOf, MixedClassifier
from adapter_bert_tf.heads.span_labeler import SpanLabeler
from adapter_bert_tf.training.device.precision import precision_scope
from adapter_bert_tf.training.loop import TrainingSettings, compile_model
from adapter_bert_tf.training.tuning import METHODS, Tuning, select_trained
from tests import support

BATCH, LENGTH, PLACES = 4, 8, 3
GENERATED = AdapterConfig(4, normalize_output=True)
PARTS = {
    "adapters": AdapterConfig(bottleneck_size=4),
    "fusion": FusionConfig(AdapterConfig(4, init_scale=0.3, identity_init=False), ("a", "b")),
    "multitask_adapters": AdapterConfig(bottleneck_size=4),
    "per_task_adapters": PerTaskConfig(AdapterConfig(bottleneck_size=4), ("a", "b")),
    "hyperformer": HyperFormerConfig(GENERATED, ("a", "b")),
    "hyperformer++": HyperFormerConfig(GENERATED, ("a", "b"), shared=True),
    "pals": PalsConfig(("a", "b"), 12, 3),
}
LANGUAGE = PRESETS["pfeiffer+inv"]
STACK = StackConfig(LANGUAGE, PRESETS["pfeiffer"], "language")
SEVERAL = (HeadOf("a", 3), HeadOf("b", 1, is_score=True))
HEADS = {
    "classes": (lambda encoder: Classifier(encoder, 3), tf.TensorSpec([BATCH], tf.int32)),
    "score": (
        lambda encoder: Classifier(encoder, 1, regression=True),
        tf.TensorSpec([BATCH], tf.float32),
    ),
    "span": (SpanLabeler, tf.TensorSpec([BATCH, 2], tf.int32)),
    "several": (
        lambda encoder: MixedClassifier(encoder, SEVERAL),
        tf.TensorSpec([BATCH, 2], tf.float32),
    ),
    "masked words": (MaskedWordModel, tf.TensorSpec([BATCH, PLACES, 2], tf.float32)),
}
INPUTS = {
    name: tf.TensorSpec([BATCH, LENGTH], tf.int32)
    for name in ("input_word_ids", "input_mask", "input_type_ids")
}
LABELS = {
    "classes": np.array([0, 1, 2, 1], np.int32),
    "score": np.array([0, 1, 2, -1], np.float32),
    "span": np.array([[0, 1], [3, 3], [2, 7], [0, 0]], np.int32),
    "several": np.array([[0, 0], [3, 1], [2, 0], [3, -1]], np.float32),
    # Pieces and weights.
    "masked words": np.array([[[7, 1], [9, 1], [0, 0]]] * BATCH, np.float32),
}
ON_THE_HOST = re.compile("PyFunc|EagerPy|Print|HostCompute|Send|Recv|OutfeedEnqueue|Iterator")


def inputs_of(head):
    """The specs of a model's inputs."""
    more = {
        "several": {"task_ids": tf.TensorSpec([BATCH], tf.int32)},
        "masked words": {POSITIONS: tf.TensorSpec([BATCH, PLACES], tf.int32)},
    }
    return INPUTS | more.get(head, {})


def head_of(tuning):
    """The head of a model that a method trains."""
    return "several" if Tuning(tuning).of_several_tasks else "classes"


def batch_of(head):
    """Inputs and labels of a step."""
    rng = np.random.default_rng(0)
    inputs = {name: rng.integers(0, 2, [BATCH, LENGTH]).astype(np.int32) for name in INPUTS}
    if head == "several":
        inputs["task_ids"] = np.array([0, 1, 0, 1], np.int32)
    if head == "masked words":
        inputs[POSITIONS] = np.array([[1, 4, 0]] * BATCH, np.int32)
    return tf.nest.map_structure(tf.constant, (inputs, LABELS[head]))


def model_of(base, head, tuning=None, adapter=None, precision="float32"):
    of_heads = "per_task_adapters" if head == "several" and not adapter else "adapters"
    tuning = tuning or of_heads
    adapter = adapter or (LANGUAGE if head == "masked words" else PARTS.get(tuning))
    with precision_scope(precision):
        model = HEADS[head][0](load_base(base).build_encoder(adapter))
    select_trained(model, Tuning(tuning, top_k=1))
    compile_model(model, TrainingSettings(steps=10, batch_size=BATCH, learning_rate=1e-3))
    return model


def steps_of(model, head):
    """(training step, evaluation step) as compiled functions of static shapes."""
    train = tf.function(lambda inputs, labels: model.train_step((inputs, labels)), jit_compile=True)
    evaluate = tf.function(lambda inputs: model(inputs, training=False), jit_compile=True)
    return (train.get_concrete_function(inputs_of(head), HEADS[head][1]), train), (
        evaluate.get_concrete_function(inputs_of(head)),
        evaluate,
    )


def operations(function):
    """(type, name, dtypes) of the operations of a graph and of the functions that it calls."""
    for operation in function.graph.get_operations():
        tensors = (*operation.inputs, *operation.outputs)
        yield operation.type, operation.name, {tensor.dtype.base_dtype for tensor in tensors}
    for inner in function.graph.as_graph_def().library.function:
        for node in inner.node_def:
            kinds = {tf.as_dtype(value.type) for value in node.attr.values() if value.type}
            yield node.op, node.name, kinds


def called(operation):
    """The name of the function that an operation calls; empty if it calls none."""
    return operation.get_attr("f").name if "PartitionedCall" in operation.type else ""


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("head", HEADS)
def test_nothing_inside_that_a_tpu_does_not_know(head, precision, tiny_base_folder):
    for function, _ in steps_of(model_of(tiny_base_folder, head, precision=precision), head):
        for kind, name, dtypes in operations(function):
            assert not ON_THE_HOST.search(kind), name
            assert not {tf.string, tf.int64, tf.float64} & dtypes, (kind, name, dtypes)
        for tensor in (*function.inputs, *function.outputs):
            assert tensor.dtype == tf.resource or tensor.shape.is_fully_defined()


@pytest.mark.parametrize("head", support.seldom(HEADS, ("span", "several", "masked words")))
def test_the_lowered_steps_hold_no_64_bits_and_no_calls_to_the_host(head, tiny_base_folder):
    values = tf.nest.map_structure(
        lambda spec: tf.zeros(spec.shape, spec.dtype), (inputs_of(head), HEADS[head][1])
    )
    (_, train), (_, evaluate) = steps_of(model_of(tiny_base_folder, head), head)
    for text in (
        train.experimental_get_compiler_ir(*values)(stage="hlo_no_metadata"),
        evaluate.experimental_get_compiler_ir(values[0])(stage="hlo_no_metadata"),
    ):
        assert "HloModule" in text
        # XLA's own random numbers: a 64-bit counter, which TPUs compute with.
        text = re.sub(r".* = s64\[2\]\{0\} bitcast-convert\(u64\[2\].*\n", "", text)
        for word in ("s64[", "f64[", "custom-call", "outfeed", "infeed", " send(", "rng("):
            assert word not in text, re.search(f".*{re.escape(word)}.*", text)[0]
        assert not re.search(r"\[<=|\?", text)  # No dynamic shape.


@pytest.mark.parametrize(
    "case",
    support.seldom(
        (*METHODS, *PRESETS, "masked words", "stack"),
        ("adapters", "hyperformer++", "masked words", "stack"),
    ),
)
def test_the_compiled_steps_compute_as_the_others(case, tiny_base_folder):
    """Each method, each preset, masked words and a stack: three training steps, an evaluation."""
    adapter = {**PRESETS, "stack": STACK}.get(case)
    tuning = case if case in METHODS else "adapters"
    head = case if case in HEADS else head_of(tuning)
    inputs, labels = batch_of(head)
    losses, logits = [], []
    for compiled in (False, True):
        tf_keras.utils.set_random_seed(1)
        model = model_of(tiny_base_folder, head, tuning, adapter)
        for layer in model.submodules:  # XLA draws other masks.
            if isinstance(layer, tf_keras.layers.Dropout):
                layer.rate = 0.0
        step = tf.function(model.train_step, jit_compile=True) if compiled else model.train_step
        losses.append([float(step((inputs, labels))["loss"]) for _ in range(3)])
        run = tf.function(lambda batch, model=model: model(batch), jit_compile=compiled)
        logits.append(run(inputs).numpy())
    assert losses[0][2] < losses[0][0] - 1e-4
    np.testing.assert_allclose(losses[0], losses[1], atol=1e-4)
    np.testing.assert_allclose(logits[0], logits[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("adapter", support.seldom(PRESETS, ("houlsby",)))
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_what_must_be_exact_is_float32(precision, head, adapter, tiny_base_folder):
    half = tf.as_dtype(precision)
    model = model_of(tiny_base_folder, head, adapter=PRESETS[adapter], precision=precision)
    train = tf.function(lambda inputs, labels: model.train_step((inputs, labels)))
    function = train.get_concrete_function(inputs_of(head), HEADS[head][1])
    zeros = tf.nest.map_structure(lambda s: tf.zeros(s.shape, s.dtype), inputs_of(head))
    logits = model(zeros)
    found = {
        "Softmax": 0,
        "SparseSoftmaxCrossEntropyWithLogits": 0,
        "SquaredDifference": 0,
        "Rsqrt": 0,
        "FusedBatchNormV3": 0,
    }
    wide = 0
    for kind, name, dtypes in operations(function):
        wide += kind in ("MatMul", "Einsum", "BatchMatMulV2") and half in dtypes
        if kind in found:
            found[kind] += 1
            assert half not in dtypes, name
    assert found["Softmax"] >= 2  # One a layer.
    norms = [op for op in function.graph.get_operations() if "forward__layer_norm" in called(op)]
    assert found["Rsqrt"] and len(norms) >= 5  # One a LayerNorm, all of the same function.
    assert wide > 10  # The rest is of half the width.
    assert logits.dtype == tf.float32
    assert head == "score" or found["SparseSoftmaxCrossEntropyWithLogits"] == 1
    assert {v.dtype for v in model.variables} <= {tf.float32}
