"""The loop: progress, checkpoints of what is trained, resuming."""

import io
import json

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from adapter_bert_tf.adapters.config import AdapterConfig
from adapter_bert_tf.base import load_base
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.tasks.classifier import Classifier
from adapter_bert_tf.training.loop import TrainingSettings, train
from adapter_bert_tf.training.progress import Progress
from adapter_bert_tf.training.strategy import make_strategy
from adapter_bert_tf.training.trained import Tuning, select_trained
from tests import support


def _setup(folder, dropout=0.1):
    tf_keras.utils.set_random_seed(3)
    model = Classifier(load_base(folder).build_encoder(AdapterConfig(bottleneck_size=4)), 2)
    return model, select_trained(model, Tuning())


def _batches(steps):
    examples = [(support.batch(seed=i, rows=4), np.array([i % 2, 1, 0, 1])) for i in range(steps)]
    return tf.data.Dataset.from_generator(
        lambda: iter(examples), output_signature=tf.nest.map_structure(
            lambda x: tf.TensorSpec(x.shape, x.dtype), examples[0]))


def _train(folder, output_dir, steps=6, stop_after=None, **changes):
    model, trained = _setup(folder)
    batches = _batches(steps)
    settings = TrainingSettings(steps=steps, batch_size=4, learning_rate=1e-2, save_every=2,
                                output_dir=output_dir and str(output_dir), **changes)
    train(model, trained, batches.take(stop_after or steps), settings)
    return model, {name: v.numpy() for name, v in trained.items()}


def test_checkpoints_hold_what_is_trained_and_nothing_else(tiny_base_folder, tmp_path):
    _, trained = _train(tiny_base_folder, tmp_path)
    latest = tf.train.latest_checkpoint(tmp_path / "checkpoints")
    names = [name for name, _ in tf.train.list_variables(latest)]
    values = [n for n in names if n.startswith("trained/") and "OPTIMIZER_SLOT" not in n]
    assert len(values) == len(trained)
    assert not any("word_embeddings" in name for name in names)


def test_a_finished_run_is_not_repeated(tiny_base_folder, tmp_path, capsys):
    _, first = _train(tiny_base_folder, tmp_path)
    capsys.readouterr()
    _, second = _train(tiny_base_folder, tmp_path)
    assert "Resuming from step 6" in capsys.readouterr().out
    for name, value in first.items():
        np.testing.assert_array_equal(second[name], value)


def test_metrics_are_logged(tiny_base_folder, tmp_path):
    _train(tiny_base_folder, tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["step"] == 6
    assert {"loss", "learning_rate", "examples_per_second"} <= rows[-1].keys()
    assert list(tmp_path.glob("events.out.tfevents.*"))


def test_xla_gives_the_same_loss(tiny_base_folder):
    plain, _ = _train(tiny_base_folder, None, steps=1)
    compiled, _ = _train(tiny_base_folder, None, steps=1, jit_compile=True)
    inputs = support.batch(rows=4)
    np.testing.assert_allclose(plain(inputs), compiled(inputs), atol=1e-2)


def test_the_progress_line_shows_loss_rate_speed_and_time_left():
    stream = io.StringIO()
    progress = Progress(steps=10, batch_size=8, schedule=lambda step: 1e-3, every_seconds=0,
                        stream=stream)
    progress.on_train_begin()
    progress.on_train_batch_end(0, {"loss": 2.0})
    progress.on_train_batch_end(1, {"loss": 1.5})
    first, second = stream.getvalue().splitlines()
    assert first == "step 1/10  loss 2.0000  lr 1.00e-03  0 examples/s  ETA ?"
    assert second.startswith("step 2/10  loss 1.0000")  # The mean since the line before.
    assert "examples/s  ETA 0:00" in second


def test_strategies():
    assert make_strategy("one_device").num_replicas_in_sync == 1
    assert isinstance(make_strategy("mirrored"), tf.distribute.MirroredStrategy)
    with pytest.raises(InputError, match="must be one of"):
        make_strategy("two_devices")


def test_mirrored_trains_as_one_device_does(tiny_base_folder):
    one, _ = _setup(tiny_base_folder)
    with make_strategy("mirrored").scope():
        two, trained = _setup(tiny_base_folder)
    settings = TrainingSettings(steps=3, batch_size=4, learning_rate=1e-2)
    for model in (one, two):  # Dropout draws differ between strategies; it is off here.
        for layer in model.submodules:
            if isinstance(layer, tf_keras.layers.Dropout):
                layer.rate = 0.0
    train(one, {}, _batches(3), settings)
    train(two, trained, _batches(3), settings)
    np.testing.assert_allclose(one(support.batch()), two(support.batch()), atol=1e-5)
