"""The optimizer: one step by hand, the schedule, and the original code's 20 steps."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import PRESETS
from adapter_bert_tf.base import load_base
from adapter_bert_tf.base.readers import read_weights
from adapter_bert_tf.heads.classifier import Classifier
from adapter_bert_tf.training.optimizer import OPTIMIZERS, BertAdam, Schedule
from adapter_bert_tf.training.tuning import Tuning, select_trained
from tests.support import GOLDEN


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_by_hand(name):
    bias_correction, clips = OPTIMIZERS[name].values()
    beta_2, sizes = 0.999, [0.1] * 7 + [0.9]  # The last gradients are suddenly larger.
    kernel, bias = tf.Variable([2.0], name="kernel"), tf.Variable([3.0], name="bias")
    optimizer = BertAdam(0.1, **OPTIMIZERS[name])
    values, moments = {"kernel": 2.0, "bias": 3.0}, {"kernel": (0, 0), "bias": (0, 0)}
    for step, size in enumerate(sizes, start=1):
        gradients = {"kernel": 0.3 * size, "bias": 0.4 * size}
        optimizer.apply_gradients(
            [(tf.constant([gradients["kernel"]]), kernel), (tf.constant([gradients["bias"]]), bias)]
        )
        factor = np.sqrt(1 - beta_2**step) / (1 - 0.9**step) if bias_correction else 1.0
        for name, gradient in gradients.items():
            m = 0.9 * moments[name][0] + 0.1 * gradient
            v = beta_2 * moments[name][1] + (1 - beta_2) * gradient**2
            moments[name] = (m, v)
            decay = 0.01 * values[name] if name == "kernel" else 0.0
            update = gradient / np.sqrt(v / (1 - beta_2**step))
            rate = 0.1 / max(1.0, update / 2) if clips else 0.1
            assert (update > 2.5) == (step == len(sizes))  # So that clipping shows.
            values[name] -= rate * (factor * m / (np.sqrt(v) + 1e-6) + decay)
    assert kernel.numpy()[0] == pytest.approx(values["kernel"], rel=3e-5)
    assert bias.numpy()[0] == pytest.approx(values["bias"], rel=3e-5)


@pytest.mark.parametrize("name", [name for name, o in OPTIMIZERS.items() if not o["clip_update"]])
def test_rows_of_an_embedding_are_updated_as_other_weights(name):
    """The gradient of looked-up rows is sparse, and tf_keras computes its update elsewhere."""
    rows, whole = (tf.Variable(tf.ones([2, 3]), name=f"{n}/embeddings") for n in "ab")
    optimizer = BertAdam(0.1, **OPTIMIZERS[name])
    for size in (0.1, 0.2, 0.4):
        sparse = tf.IndexedSlices(tf.fill([2, 3], size), tf.constant([0, 1]), tf.constant([2, 3]))
        optimizer.apply_gradients([(sparse, rows), (tf.fill([2, 3], size), whole)])
    np.testing.assert_allclose(rows, whole, rtol=1e-5)
    assert np.all(whole.numpy() < 0.9)


def test_what_multiplies_does_not_decay():
    """Vectors of (IA)^3 start at one, where they change nothing."""
    names = ("adapters/layer_0/key/scale", "a/tasks/b/adapters/layer_1/value/scale", "a/kernel")
    variables = [tf.Variable([1.0], name=name) for name in names]
    optimizer = BertAdam(0.1)
    optimizer.apply_gradients([(tf.zeros([1]), variable) for variable in variables])
    assert [float(variable[0]) for variable in variables] == [1.0, 1.0, pytest.approx(0.999)]


def test_gradients_are_clipped_to_a_global_norm_of_one():
    first, second = tf.Variable([0.0], name="a/bias"), tf.Variable([0.0], name="b/bias")
    optimizer = BertAdam(1.0, bias_correction=False)
    optimizer.apply_gradients([(tf.constant([30.0]), first), (tf.constant([40.0]), second)])
    assert optimizer.get_slot(first, "m").numpy()[0] == pytest.approx(0.1 * 0.6)
    assert optimizer.get_slot(second, "m").numpy()[0] == pytest.approx(0.1 * 0.8)


def test_schedule_rises_and_falls_linearly():
    schedule = Schedule(1e-3, steps=20, warmup_proportion=0.2)
    rates = [float(schedule(step)) for step in range(20)]
    expected = [2.5e-4, 5e-4, 7.5e-4, *(1e-3 * (1 - k / 20) for k in range(4, 21))]
    np.testing.assert_allclose(rates, expected, rtol=1e-5, atol=1e-10)


def test_configs_rebuild_schedule_and_optimizer():
    config = BertAdam(Schedule(1e-3, 20), **OPTIMIZERS["adapter_bert"]).get_config()
    assert (config["bias_correction"], config["clip_update"]) == (False, False)
    assert Schedule.from_config(Schedule(1e-3, 20).get_config()).config["steps"] == 20


def _golden_model():
    base = load_base(str(GOLDEN / "adapter_model.ckpt"))
    model = Classifier(base.build_encoder(PRESETS["houlsby"]), 3, dropout=0.0)
    assert base.assign(model.named_variables()) == []
    return model


def _golden_inputs(expected):
    return {
        "input_word_ids": expected["input_ids"],
        "input_mask": expected["input_mask"],
        "input_type_ids": expected["segment_ids"],
    }


def test_golden_logits():
    expected = np.load(GOLDEN / "expected.npz")
    logits = _golden_model()(_golden_inputs(expected))
    np.testing.assert_allclose(logits, expected["logits"], atol=1e-5)
    np.testing.assert_allclose(tf.nn.softmax(logits), expected["probabilities"], atol=1e-5)


def test_golden_training(tmp_path):
    """20 steps of the original adapter-bert, loss by loss and variable by variable."""
    expected = np.load(GOLDEN / "expected.npz")
    model = _golden_model()
    trained = select_trained(model, Tuning())
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = BertAdam(Schedule(1e-3, 20, 0.2), **OPTIMIZERS["adapter_bert"])
    model.compile(optimizer=optimizer, loss=loss)
    inputs, labels = _golden_inputs(expected), expected["labels"]
    losses = [model.train_on_batch(inputs, labels)]
    for step in range(1, 21):
        if step in (1, 5, 20):
            _compare_variables(trained, expected, step, tmp_path)
        losses.append(
            model.train_on_batch(inputs, labels)
            if step < 20
            else float(loss(labels, model(inputs)))
        )
    np.testing.assert_allclose(losses, expected["losses"], atol=1e-4)


def _compare_variables(trained, expected, step, folder):
    """Renames the original's variables by reading them as a checkpoint of the original."""
    from tests.support import write_tf1

    found = {
        name.split("|")[1]: expected[name] for name in expected if name.startswith(f"step{step}|")
    }
    table = {"bert/embeddings/word_embeddings": np.zeros((1, 1), "f4")}
    write_tf1(folder / f"step{step}", found | table)
    values = read_weights(str(folder / f"step{step}"))
    del values["bert/embeddings/word_embeddings"]
    assert values.keys() == trained.keys()
    for name, value in values.items():
        np.testing.assert_allclose(
            trained[name],
            value.reshape(trained[name].shape),
            atol=1e-5,
            err_msg=f"{name} after step {step}",
        )


@pytest.mark.parametrize("most", [0, 2, 100])
def test_variables_of_one_shape_are_bounded_one_by_one(most, monkeypatch):
    """Whether they are computed together or not; the third has no gradient at first."""
    monkeypatch.setattr("adapter_bert_tf.training.optimizer.LARGEST_STACKED", most)
    rng = np.random.default_rng(0)
    variables = [tf.Variable(tf.ones([2]), name=f"v{i}/kernel") for i in range(3)]
    variables += [tf.Variable(tf.ones([2, 2]), name="w/kernel")]
    optimizer = BertAdam(0.1)
    for step in range(6):
        scales = [0.1, 0.1 if step < 5 else 0.9, 0.0 if step < 3 else 0.1, 0.1]
        gradients = [
            tf.constant(scale * rng.normal(size=v.shape).astype("f4"))
            for scale, v in zip(scales, variables, strict=True)
        ]
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
    values = np.concatenate([v.numpy().ravel() for v in variables])
    expected = [1.228585, 0.951212, 1.078229, 0.694060, 0.897168, 0.901626]  # One by one.
    expected += [0.853788, 0.820972, 1.087288, 0.956580]
    np.testing.assert_allclose(values, expected, rtol=1e-5)
