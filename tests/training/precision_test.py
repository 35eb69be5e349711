"""Precision: what a card is given, what float16 cannot hold, and computing with equal bytes."""

import contextlib
import functools
import os

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tensorflow.python.framework import config as tf_config

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.adapters.ops import ACTIVATION_FUNCTIONS
from adapter_bert_tf.base import load_base
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.training.device import precision
from adapter_bert_tf.training.loop import TrainingSettings, train
from adapter_bert_tf.training.tuning import METHODS
from tests import support
from tests.refusals import raises_code
from tests.training import tiny
from tests.training.steps_test import batch_of, head_of, model_of, operations

# Operations that raise on a GPU, and only there, if they must be deterministic (TensorFlow 2.20).
RAISING = {
    *("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits"),
    *("Bincount", "DenseBincount", "SparseTensorDenseMatMul", "SparseMatrixMatMul"),
    *("AdjustContrastv2", "CropAndResizeGradBoxes", "CropAndResizeGradImage"),
    *("ResizeNearestNeighborGrad", "FusedBatchNormGrad", "FusedBatchNormGradV3"),
    *("DepthwiseConv2dNativeBackpropFilter", "FakeQuantWithMinMaxVarsGradient"),
}


@pytest.fixture
def numerics(monkeypatch):
    """What a test changes in this process, changed back."""
    monkeypatch.setenv("XLA_FLAGS", "")
    tf32 = tf.config.experimental.tensor_float_32_execution_enabled()
    yield
    tf.config.experimental.enable_tensor_float_32_execution(tf32)
    tf_config.disable_op_determinism()


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ([], "float32"),  # A CPU.
        ([(9, 0)], "bfloat16"),  # H100.
        ([(12, 0)], "bfloat16"),
        ([(8, 9)], "bfloat16"),  # L4.
        ([(8, 0), (8, 0)], "bfloat16"),  # A100.
        ([(7, 5)], "float16"),  # T4.
        ([(7, 0)], "float16"),  # V100.
        ([(6, 1)], "float32"),  # GTX 1080.
        ([(8, 0), (7, 5)], "float16"),
        ([(9, 0), (6, 0)], "float32"),
        ([None], "float32"),  # Not NVIDIA's.
        ([(8, 0), None], "float32"),
    ],
)
def test_the_fastest_precision_of_cards(capabilities, expected):
    assert precision.fastest_precision(capabilities) == expected


@pytest.mark.parametrize(
    ("capabilities", "has_bfloat16", "expected"),
    [([], True, "bfloat16_base"), ([], False, "float32"), ([(6, 1)], True, "float32")],
)
def test_the_processor_decides_without_cards(capabilities, has_bfloat16, expected):
    assert precision.fastest_precision(capabilities, has_bfloat16) == expected


def test_a_scope_ends():
    before = tf_keras.mixed_precision.global_policy().name
    with pytest.raises(KeyError), precision.precision_scope("float16"):
        assert tf_keras.layers.Dense(1).compute_dtype == "float16"
        raise KeyError
    assert tf_keras.mixed_precision.global_policy().name == before


@pytest.mark.parametrize("name", ACTIVATION_FUNCTIONS)
def test_activations_of_large_values_are_finite_in_float16(name):
    """The cube of 41 is above 65,504, and so is three times the square of 148."""
    x = tf.constant([-6e4, -300, -150, -41, -1, 0, 1, 41, 150, 300, 6e4], tf.float16)
    with tf.GradientTape() as tape:
        tape.watch(x)
        values = ACTIVATION_FUNCTIONS[name](x)
    slopes = tape.gradient(values, x)
    expected = ACTIVATION_FUNCTIONS[name](tf.cast(x, tf.float32))
    assert values.dtype == slopes.dtype == tf.float16
    np.testing.assert_allclose(values, expected, rtol=2e-3, atol=1e-3)
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize("half", ["bfloat16", "float16"])
def test_the_known_output_of_frozen_layers_is_not_rounded(half, tiny_base_folder):
    base = load_base(tiny_base_folder)
    with precision.precision_scope(half):
        encoder = base.new_encoder(AdapterConfig(4, layers=(1,)), frozen_layers=1)
        model = Classifier(encoder, 2)
    base.assign(model.named_variables())
    inputs = support.batch()
    known = inputs | {"frozen_output": encoder.frozen_output(inputs)}
    np.testing.assert_array_equal(model(inputs), model(known))


@pytest.mark.parametrize("half", ["bfloat16", "float16"])
def test_skip_connections_and_layer_norms_are_float32(half, tiny_base_folder):
    base = load_base(tiny_base_folder)
    with precision.precision_scope(half):
        model = Classifier(base.new_encoder(AdapterConfig(4, layer_norm=True)), 2)
    base.assign(model.named_variables())
    forward = tf.function(lambda inputs: model(inputs, training=True), autograph=False)
    found = operations(forward.get_concrete_function(support.batch()))
    sums = [dtypes for kind, _, dtypes in found if kind == "AddN"]
    assert sums and all(dtypes == {tf.float32} for dtypes in sums)
    assert np.isfinite(forward(support.batch())).all()


@pytest.mark.parametrize(("half", "is_held"), [("bfloat16", True), ("float16", False)])
def test_answers_that_float16_cannot_hold_are_refused(half, is_held, tiny_base_folder):
    with precision.precision_scope(half):
        model, _ = tiny.setup(tiny_base_folder)
    model.compile()
    kernel = model.named_variables()["bert/encoder/layer_0/output/dense/kernel"]
    kernel.assign(kernel * 1e7)
    with contextlib.nullcontext() if is_held else raises_code("unsupported", "precision='float32'"):
        assert np.isfinite(tiny.predicted(model, [support.batch()])).all()


@pytest.mark.parametrize("tf32", [False, True])
def test_tf32(tf32, numerics):
    precision.configure_numerics(tf32=tf32, deterministic=False)
    assert tf.config.experimental.tensor_float_32_execution_enabled() is tf32
    assert not tf_config.is_op_determinism_enabled() and not os.environ["XLA_FLAGS"]
    product = tf.function(lambda x: tf.matmul(x, x), jit_compile=True, autograph=False)
    program = product.experimental_get_compiler_ir(tf.ones([2, 2]))(stage="hlo")
    assert ("operand_precision={highest,highest}" in program) is not tf32


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "--xla_gpu_deterministic_ops=true"),
        ("--xla_dump_to=a", "--xla_dump_to=a --xla_gpu_deterministic_ops=true"),
        ("--xla_gpu_deterministic_ops=true", "--xla_gpu_deterministic_ops=true"),
    ],
)
def test_deterministic_settings(before, after, numerics, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", before)
    for _ in range(2):
        precision.configure_numerics(tf32=True, deterministic=True)
    assert tf_config.is_op_determinism_enabled()
    assert os.environ["XLA_FLAGS"] == after


@pytest.mark.parametrize("tuning", support.seldom(METHODS, ("adapters", "full")))
def test_every_method_takes_a_deterministic_step(tuning, numerics, tiny_base_folder):
    precision.configure_numerics(tf32=True, deterministic=True)
    losses = [_losses(tiny_base_folder, head_of(tuning), tuning) for _ in range(2)]
    assert losses[0] == losses[1] and np.isfinite(losses).all()


@pytest.mark.parametrize("head", ["score", "span"])
def test_every_head_takes_a_deterministic_step(head, numerics, tiny_base_folder):
    precision.configure_numerics(tf32=True, deterministic=True)
    assert np.isfinite(_losses(tiny_base_folder, head)).all()


def _losses(base, head, tuning=None):
    """The losses of two steps, whose operations all have deterministic forms on a GPU."""
    tf_keras.utils.set_random_seed(1)
    step, batch = tf.function(model_of(base, head, tuning).train_step), batch_of(head)
    kinds = {kind for kind, *_ in operations(step.get_concrete_function(batch))}
    assert not kinds & RAISING and "MatMul" in kinds
    return [float(step(batch)["loss"]) for _ in range(2)]


@pytest.mark.parametrize("half", support.seldom(["float32", "float16"], ("float16",)))
def test_a_deterministic_run_that_was_stopped_ends_with_the_same_bytes(
    half, numerics, tiny_base_folder, tmp_path
):
    precision.configure_numerics(tf32=True, deterministic=True)
    ends = []
    for name, stops in (("one", (6,)), ("another", (6,)), ("stopped", (3, 6))):
        settings = TrainingSettings(6, 4, 1e-2, save_every=1, output_dir=str(tmp_path / name))
        for steps in stops:
            with precision.precision_scope(half):
                model, trained = tiny.setup(tiny_base_folder)
            with pytest.raises(InputError) if steps < 6 else contextlib.nullcontext():
                train(model, trained, functools.partial(_ending, steps), settings)
        ends.append(tiny.values(trained))
    for name, value in ends[0].items():
        np.testing.assert_array_equal(ends[1][name], value, err_msg=name)
        np.testing.assert_array_equal(ends[2][name], value, err_msg=name)


def _ending(steps, start, share):
    return tiny.batches(6)(start, share).take(steps)
