"""The loop: progress, checkpoints of what is trained, resuming."""

import dataclasses
import io
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from adapter_bert_tf.training import loop
from adapter_bert_tf.training.device.strategy import make_strategy
from adapter_bert_tf.training.loop import TrainingSettings, train
from adapter_bert_tf.training.progress import Progress
from tests import support
from tests.refusals import raises_code
from tests.training import tiny

MOVED = ("head/kernel", "adapters/layer_0/attention/up_kernel", "bert/embeddings/LayerNorm/beta")


def _train(folder, output_dir, steps=6, **changes):
    """A training that moves something; (model, values)."""
    model, trained = tiny.setup(folder)
    before = tiny.values(trained)
    settings = TrainingSettings(
        steps=steps,
        batch_size=4,
        learning_rate=1e-2,
        save_every=2,
        output_dir=output_dir and str(output_dir),
        **changes,
    )
    train(model, trained, tiny.batches(steps), settings)
    after = tiny.values(trained)
    assert all((after[name] != before[name]).any() for name in MOVED)
    return model, after


def _train_toy(output_dir):
    """The same of `tiny.Toy`, for what is of files alone; its values."""
    model, trained = tiny.setup_toy()
    settings = TrainingSettings(6, 4, 1e-2, save_every=2, output_dir=output_dir and str(output_dir))
    train(model, trained, tiny.toy_batches(6), settings)
    return tiny.values(trained)


def _same(found, expected):
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.fixture(scope="module")
def whole(tiny_base_folder, tmp_path_factory):
    """(folder, values) of a training that nothing stopped; tests must not write to it."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, _train(tiny_base_folder, folder)[1]


def test_checkpoints_hold_what_is_trained_and_nothing_else(whole):
    folder, trained = whole
    latest = tf.train.latest_checkpoint(folder / "checkpoints")
    names = [name for name, _ in tf.train.list_variables(latest)]
    values = [n for n in names if n.startswith("trained/") and "OPTIMIZER_SLOT" not in n]
    assert len(values) == len(trained)
    assert not any("word_embeddings" in name for name in names)


def test_a_finished_run_is_not_repeated(whole, tiny_base_folder, tmp_path, capsys):
    folder, first = whole
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    capsys.readouterr()
    _, second = _train(tiny_base_folder, tmp_path)
    assert "Resuming from step 6" in capsys.readouterr().out
    _same(second, first)


@pytest.mark.parametrize("stop", support.seldom([2, 3, 4], (3, 4)))
def test_an_interrupted_run_ends_with_the_same_bytes(
    stop, whole, tiny_base_folder, tmp_path, capsys
):
    """Dropout is on; the checkpoint is the one of step 2 or 4."""
    model, trained = tiny.setup(tiny_base_folder)
    settings = TrainingSettings(
        steps=6, batch_size=4, learning_rate=1e-2, save_every=2, output_dir=str(tmp_path)
    )
    batches = tiny.batches(6)
    with raises_code("invalid", f"step {stop} of 6"):
        train(model, trained, lambda start, share: batches(start, share).take(stop), settings)
    capsys.readouterr()
    _, resumed = _train(tiny_base_folder, tmp_path)
    assert f"Resuming from step {stop // 2 * 2}:" in capsys.readouterr().out
    _same(resumed, whole[1])
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == sorted({row["step"] for row in rows})


def test_several_steps_in_one_call_are_the_same_steps(whole, tiny_base_folder, tmp_path):
    _, one = whole
    _, four = _train(tiny_base_folder, tmp_path, steps_per_loop=4)  # And then the last two.
    for name, value in one.items():
        np.testing.assert_allclose(four[name], value, atol=1e-6, err_msg=name)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["step"] == 6
    assert tf.train.latest_checkpoint(tmp_path / "checkpoints").endswith("ckpt-6")


def test_this_machine_may_write_the_checkpoints_of_another(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "io_device", lambda strategy: "/job:localhost")  # As with a TPU.
    first = _train_toy(tmp_path)
    assert tf.train.latest_checkpoint(tmp_path / "checkpoints").endswith("ckpt-6")
    _same(_train_toy(tmp_path), first)


def test_data_that_ends_early_is_no_end_of_training(tmp_path):
    model, trained = tiny.setup_toy()
    settings = TrainingSettings(6, 4, 1e-2, save_every=2, output_dir=str(tmp_path))
    with raises_code("invalid", "ended at step 4 of 6"):
        train(model, trained, tiny.toy_batches(4), settings)
    train(model, trained, tiny.toy_batches(6), settings)  # From the checkpoint of step 4.


@pytest.mark.parametrize("error", [tf.errors.OutOfRangeError, tf.errors.ResourceExhaustedError])
def test_a_checkpoint_that_cannot_be_written_ends_the_training(error, tmp_path, monkeypatch):
    """`fit` takes the first of these for the end of the data."""

    def cannot(self, checkpoint_number, **_):
        if checkpoint_number == 4:
            (tmp_path / "checkpoints" / "ckpt-4_temp").mkdir()
            (tmp_path / "checkpoints" / "ckpt-4_temp" / "part-00000").write_bytes(b"half")
            raise error(None, None, "File too large")
        return save(self, checkpoint_number=checkpoint_number, **_)

    model, trained = tiny.setup_toy()
    settings = TrainingSettings(6, 4, 1e-2, save_every=2, output_dir=str(tmp_path))
    save = tf.train.CheckpointManager.save
    monkeypatch.setattr(tf.train.CheckpointManager, "save", cannot)
    with raises_code("unavailable", "of step 4 cannot be written"):
        train(model, trained, tiny.toy_batches(6), settings)
    assert not list((tmp_path / "checkpoints").glob("*_temp"))
    monkeypatch.undo()
    _same(_train_toy(tmp_path), _train_toy(None))


def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    whole, tiny_base_folder, tmp_path, capsys
):
    shutil.copytree(whole[0], tmp_path, dirs_exist_ok=True)
    data = tmp_path / "checkpoints" / "ckpt-6.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    capsys.readouterr()
    _, again = _train(tiny_base_folder, tmp_path)
    assert "Resuming from step 4:" in capsys.readouterr().out
    _same(again, whole[1])


CUT = [lambda index, n=n: index[:n] for n in (0, 1, 100, -1)]


@pytest.mark.parametrize("change", [*CUT, support.past_its_end, support.too_large_for_memory])
@pytest.mark.parametrize("named", [None, 4])
def test_an_index_that_was_cut_short_is_never_a_checkpoint(named, change, tmp_path, capsys):
    """TensorFlow writes the index in place, and what names it comes after that."""
    values = _train_toy(tmp_path)
    folder = tmp_path / "checkpoints"
    index = folder / "ckpt-6.index"
    index.write_bytes(change(index.read_bytes()))
    (folder / "checkpoint").unlink()
    if named:
        (folder / "checkpoint").write_text(f'model_checkpoint_path: "ckpt-{named}"\n')
    else:
        for path in folder.glob("ckpt-4.*"):
            path.unlink()
    capsys.readouterr()
    again = _train_toy(tmp_path)
    assert ("Resuming from step 4:" in capsys.readouterr().out) == bool(named)
    _same(again, values)


def test_one_that_was_not_removed_any_more_goes(tmp_path):
    """A process may be killed after the last save, before the one too many is removed."""
    _train_toy(tmp_path)
    folder = tmp_path / "checkpoints"
    before = {path.name for path in folder.iterdir()}
    for path in folder.glob("ckpt-4.*"):
        shutil.copy(path, folder / path.name.replace("ckpt-4", "ckpt-2"))
    names = "".join(f'all_model_checkpoint_paths: "ckpt-{step}"\n' for step in (2, 4, 6))
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "ckpt-6"\n{names}')
    _train_toy(tmp_path)
    assert {path.name for path in folder.iterdir()} == before
    assert "ckpt-2" not in (folder / "checkpoint").read_text()


def test_no_checkpoint_that_can_be_read(tmp_path):
    _train_toy(tmp_path)
    for path in (tmp_path / "checkpoints").glob("*.data-*"):
        path.write_bytes(b"")
    with raises_code("damaged", "ckpt-6"):
        _train_toy(tmp_path)


def test_metrics_are_logged(whole):
    folder, _ = whole
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["step"] == 6
    assert {"loss", "learning_rate", "examples_per_second"} <= rows[-1].keys()
    assert list(folder.glob("events.out.tfevents.*"))


@pytest.mark.long
def test_xla_gives_the_same_loss(tiny_base_folder):
    """And a lower one than before. Dropout is off: XLA draws other masks."""
    losses = []
    for compiled in (False, True):
        model, trained = tiny.setup(tiny_base_folder)
        before = tiny.training_loss(tiny.without_dropout(model), 8)
        settings = TrainingSettings(8, 4, 1e-2, jit_compile=compiled)
        train(model, trained, tiny.batches(8), settings)
        losses.append(tiny.training_loss(model, 8))
        assert losses[-1] < before - 0.02
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)


@pytest.mark.parametrize(("steps", "moves"), [(1, False), (2, True)])
def test_a_training_that_moves_nothing_says_what_to_do(steps, moves, tiny_base_folder, caplog):
    model, trained = tiny.setup(tiny_base_folder)
    before = tiny.values(trained)
    with caplog.at_level("WARNING"):
        train(model, trained, tiny.batches(steps), TrainingSettings(steps, 4, 1e-2))
    assert (
        any((value != before[name]).any() for name, value in tiny.values(trained).items()) == moves
    )
    warned = "smaller batch than 4" in caplog.text
    caplog.clear()  # Other tests fail by this warning.
    assert warned != moves


def test_the_progress_line_shows_loss_rate_speed_and_time_left():
    stream = io.StringIO()
    progress = Progress(
        steps=10, batch_size=8, schedule=lambda step: 1e-3, every_seconds=0, stream=stream
    )
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
    with raises_code("invalid", "'auto'"):
        make_strategy("two_devices")


def test_mirrored_trains_as_one_device_does(tiny_base_folder, tmp_path):
    """The second time it is taken up again at the end."""
    one, _ = tiny.setup(tiny_base_folder)
    with make_strategy("mirrored").scope():
        two, trained = tiny.setup(tiny_base_folder)
    settings = TrainingSettings(steps=3, batch_size=4, learning_rate=1e-2)
    before = one(support.batch()).numpy()
    for model in (one, two):  # Dropout draws differ between strategies; it is off here.
        tiny.without_dropout(model)
    train(one, {}, tiny.batches(3), settings)
    saved = dataclasses.replace(settings, output_dir=str(tmp_path))
    assert train(two, trained, tiny.batches(3), saved).start == 0
    assert train(two, trained, tiny.batches(3), saved).start == 3
    assert np.abs(one(support.batch()) - before).max() > 1e-3
    np.testing.assert_allclose(one(support.batch()), two(support.batch()), atol=1e-5)
