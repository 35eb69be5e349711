"""Loss scaling: float16 trains as float32, and an overflow is a step that changes nothing."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.training.device import loss_scaling
from adapter_bert_tf.training.device.precision import precision_scope
from adapter_bert_tf.training.device.strategy import make_strategy
from adapter_bert_tf.training.loop import TrainingSettings, compile_model, train
from adapter_bert_tf.training.tuning import METHODS
from tests import support
from tests.refusals import raises_code
from tests.runs import ROOT
from tests.training import tiny
from tests.training.steps_test import batch_of, head_of, model_of

STEPS = 6


def toy(precision="float16"):
    """(`Toy`, trained variables) in a precision."""
    with precision_scope(precision):
        return tiny.setup_toy()


def trained_toy(output_dir=None, precision="float16", batches=None, **options):
    """(progress, optimizer, values) of a trained `Toy`."""
    model, trained = toy(precision)
    out = output_dir and str(output_dir)
    settings = TrainingSettings(STEPS, 4, 1e-2, save_every=1, output_dir=out, **options)
    progress = train(model, trained, batches or tiny.toy_batches(STEPS), settings)
    return progress, model.optimizer, tiny.values(trained)


@pytest.mark.parametrize(
    "options",
    [
        {"microbatches": 2},
        pytest.param({}, marks=pytest.mark.long),
        pytest.param({"steps_per_loop": 4}, marks=pytest.mark.long),
        pytest.param({"jit_compile": True}, marks=pytest.mark.long),
    ],
)
def test_float16_trains_to_the_losses_of_float32(options, tiny_base_folder):
    found = []
    for precision in ("float32", "float16"):
        with precision_scope(precision):
            model, trained = tiny.setup(tiny_base_folder)
        tiny.without_dropout(model)
        settings = TrainingSettings(STEPS, 4, 1e-2, **options)
        progress = train(model, trained, tiny.batches(STEPS), settings)
        found.append((progress.mean_loss, tiny.training_loss(model, STEPS)))
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)
    assert progress.skipped_steps == 0


@pytest.mark.parametrize("tuning", support.seldom(METHODS, ("fusion",)))
def test_every_method_takes_steps_in_float16(tuning, tiny_base_folder):
    losses = []
    for precision in ("float32", "float16"):
        tf_keras.utils.set_random_seed(1)
        model = tiny.without_dropout(
            model_of(tiny_base_folder, head_of(tuning), tuning, precision=precision)
        )
        step, batch = tf.function(model.train_step), batch_of(head_of(tuning))
        losses.append([float(step(batch)["loss"]) for _ in range(3)])
    assert losses[0][2] < losses[0][0] - 1e-4 and not int(model.optimizer.skipped_steps)
    np.testing.assert_allclose(losses[0], losses[1], rtol=2e-3)


@pytest.mark.parametrize("options", [{}, {"microbatches": 2}, {"steps_per_loop": 4}])
def test_an_overflow_changes_neither_weights_nor_moments(options, monkeypatch, capsys):
    """2**40 times any gradient of float16 is infinite, and six halves of it are, too."""
    monkeypatch.setattr(loss_scaling, "FIRST_SCALE", 2.0**40)
    _, before = toy()
    progress, optimizer, values = trained_toy(**options)
    for name, variable in before.items():
        np.testing.assert_array_equal(values[name], variable.numpy(), err_msg=name)
    moments = [v for v in optimizer.variables() if v.name.endswith(("/m:0", "/v:0"))]
    assert len(moments) == 8 and not any(moment.numpy().any() for moment in moments)
    assert progress.skipped_steps == int(optimizer.skipped_steps) == STEPS
    assert float(optimizer.iterations) == STEPS and float(optimizer.loss_scale) == 2.0**34
    assert np.isfinite(progress.mean_loss)
    assert "6 of 6 steps were skipped" in capsys.readouterr().out


def test_a_step_after_an_overflow_is_as_one_with_that_scale():
    """The scale halves until gradients fit; they do not depend on a scale that is a power of 2."""
    model, trained = toy()
    compile_model(model, TrainingSettings(STEPS, 4, 1e-2))
    model.optimizer._loss_scale.current_loss_scale.assign(2.0**24)
    step, scales = tf.function(model.train_step), []
    batch = tf.nest.map_structure(tf.constant, tiny.vectors(0))
    while not scales or int(model.optimizer.skipped_steps) == len(scales):
        scales.append(float(model.optimizer.loss_scale))
        step(batch)
    assert scales == [2.0 ** (24 - i) for i in range(len(scales))] and len(scales) > 2
    assert float(model.optimizer.loss_scale) == scales[-1]
    assert int(model.optimizer.dynamic_counter) == 1
    assert all(np.isfinite(value).all() for value in tiny.values(trained).values())


def test_the_scale_grows_without_counting_as_an_overflow():
    model, _ = toy()
    compile_model(model, TrainingSettings(STEPS, 4, 1e-2))
    model.optimizer.dynamic_counter.assign(model.optimizer.dynamic_growth_steps - 1)
    model.train_step(tf.nest.map_structure(tf.constant, tiny.vectors(0)))
    assert float(model.optimizer.loss_scale) == 2 * loss_scaling.FIRST_SCALE
    assert int(model.optimizer.skipped_steps) == 0


@pytest.mark.parametrize("scale", [2.0**15, 2.0**24])
def test_a_stopped_run_ends_with_the_same_bytes(scale, monkeypatch, tmp_path, capsys):
    """With the larger scale it is stopped among skipped steps."""
    monkeypatch.setattr(loss_scaling, "FIRST_SCALE", scale)
    whole = trained_toy()
    batches = tiny.toy_batches(STEPS)
    with raises_code("invalid", f"step 2 of {STEPS}"):
        trained_toy(tmp_path, batches=lambda start, share: batches(start, share).take(2))
    resumed = trained_toy(tmp_path)
    assert "Resuming from step 2" in capsys.readouterr().out
    for name, value in whole[2].items():
        np.testing.assert_array_equal(resumed[2][name], value, err_msg=name)
    for one, other in zip(whole[1].variables(), resumed[1].variables(), strict=True):
        np.testing.assert_array_equal(one, other, err_msg=one.name)
    for name in ("loss_scale", "dynamic_counter"):
        assert float(getattr(whole[1], name)) == float(getattr(resumed[1], name))
    assert resumed[0].skipped_steps == whole[0].skipped_steps
    assert (whole[0].skipped_steps > 2) == (scale > 2.0**15)


@pytest.mark.parametrize("first", [1.0, 2.0, 8.0])
def test_inputs_that_no_scale_helps_end_the_training(first, monkeypatch, tmp_path):
    """A scale of 8 is at its lowest after three steps; those before it are skipped."""
    monkeypatch.setattr(loss_scaling, "FIRST_SCALE", first)

    def batches(start, share):
        inputs, labels = tiny.vectors(0)
        return tiny.dataset([(inputs * np.float32("inf"), labels)] * (STEPS - start), share)

    with raises_code("diverged", f"at step {int(np.log2(first)) + 1}:", "learning_rate"):
        trained_toy(tmp_path, batches=batches)


def test_one_batch_that_overflows_does_not_end_the_training():
    """Its loss is not finite; the mean of the others is reported."""
    elements = [tiny.vectors(i) for i in range(STEPS)]
    elements[2] = (elements[2][0] * np.float32("inf"), elements[2][1])
    progress, _, values = trained_toy(
        batches=lambda start, share: tiny.dataset(elements[start:], share)
    )
    assert progress.skipped_steps == 1 and 0 < progress.mean_loss < 10
    assert all(np.isfinite(value).all() for value in values.values())


@pytest.mark.long
def test_two_devices_skip_the_same_steps():
    """An overflow of one replica is one of all; the losses are those of one device."""
    found = []
    for devices in (1, 2):
        done = subprocess.run(
            [sys.executable, "tests/launch.py", str(devices), __file__],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        found.append(json.loads(done.stdout.splitlines()[-1]))
    one, two = found
    assert (one.pop("replicas"), two.pop("replicas")) == (1, 2)
    assert one["skipped_steps"] == 1
    assert one == pytest.approx(two, abs=2e-3)


def main():
    """Trains a `Toy` on all devices, where one row is infinite, and prints what came out."""
    elements = [tiny.vectors(i) for i in range(STEPS)]
    elements[2][0][-1] *= np.float32("inf")
    strategy = make_strategy("mirrored")
    with strategy.scope():
        model, trained = toy()
    tiny.without_dropout(model)
    progress = train(
        model,
        trained,
        lambda start, share: tiny.dataset(elements[start:], share),
        TrainingSettings(STEPS, 4, 1e-2),
    )
    found = {
        "replicas": strategy.num_replicas_in_sync,
        "skipped_steps": progress.skipped_steps,
        "loss_scale": float(model.optimizer.loss_scale),
    }
    found |= {name: float(np.linalg.norm(value)) for name, value in tiny.values(trained).items()}
    print(json.dumps(found))


def test_other_precisions_have_no_loss_scaling():
    for precision in ("float32", "bfloat16"):
        model, _ = toy(precision)
        compile_model(model, TrainingSettings(STEPS, 4, 1e-2))
        assert not hasattr(model.optimizer, "loss_scale")


if __name__ == "__main__":
    main()
