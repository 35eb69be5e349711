"""Checkpoints of what is trained and its optimizer; the number of steps says where the data is."""

import contextlib
import glob
import math
import os
import re
import shutil

import tensorflow as tf
import tf_keras
from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError

KEPT = 2
STATE, PREFIX = "checkpoint", "ckpt-"  # TensorFlow's names for its files.
# What a full disk, a limit, or a folder that is gone or closed becomes.
UNWRITTEN = (
    tf.errors.OutOfRangeError,
    tf.errors.ResourceExhaustedError,
    tf.errors.PermissionDeniedError,
    tf.errors.NotFoundError,
    tf.errors.FailedPreconditionError,
    tf.errors.DataLossError,
)


class Checkpoints:
    """The checkpoints of one run.

    A checkpoint counts once its index is there, which TensorFlow writes last, and in place: one
    that was cut short cannot be read, and the file `checkpoint` does not name it yet. For gs:// all
    this happens in a local folder, whose files are then copied in that order.

    Args:
      folder: path.
      trained: dict from common name to variable.
      optimizer: `BertAdam`; its `iterations` are the position in the data as well.
      io_device: the device whose host reads and writes the files, for example `/job:localhost`;
        None for that of each variable.
    """

    def __init__(self, folder, trained, optimizer, io_device=None):
        self.options = tf.train.CheckpointOptions(experimental_io_device=io_device)
        self.folder, self.optimizer = folder, optimizer
        self.local = storage.working_folder(folder)
        if self.local != folder and storage.isdir(folder):
            storage.copy_files(folder, self.local)
        self.checkpoint = tf.train.Checkpoint(optimizer=optimizer, trained=trained)
        # Made now: inside `fit` it would be a variable of all workers, and one worker alone saves.
        self.saves = self.checkpoint.save_counter
        self._remove_unfinished()
        self._require_state()
        self.manager = tf.train.CheckpointManager(self.checkpoint, self.local, max_to_keep=KEPT)

    def restore(self):
        """Restores the latest checkpoint that can be read; returns its step, 0 if there is none.

        Raises:
          InputError: when there are checkpoints and none can be read.
        """
        paths = self._whole()
        for path in paths:
            try:
                self.checkpoint.restore(path, self.options).expect_partial()
            except storage.DAMAGED_CHECKPOINT as error:
                logging.warning("The checkpoint %s is damaged: %s", path, error)
                continue
            step = int(self.optimizer.iterations.numpy())
            print(f"Resuming from step {step}: {path}", flush=True)
            return step
        if paths:
            raise InputError(
                f"The checkpoint {paths[0]} is damaged, and there is no other that "
                f"can be read. Remove {self.folder} to start again."
            )
        return 0

    def _room(self):
        """How much is free, which TensorFlow does not say."""
        if not os.path.isdir(self.local):
            return ""
        return f" ({shutil.disk_usage(self.local).free:,} bytes are free there)"

    def _remove_unfinished(self):
        """Removes the latest checkpoint, if a process was killed while it wrote the index."""
        for prefix in self._whole()[:1]:
            if prefix not in self._named() and not _has_index(prefix):
                logging.warning("The checkpoint %s was never finished, and is removed.", prefix)
                _remove(prefix)

    def _require_state(self):
        """Writes TensorFlow's file `checkpoint` anew where it does not say what is there.

        A power cut may leave it empty; in a folder that was copied it may name the checkpoints of
        the other one, which TensorFlow would remove when its turn comes. A killed process may not
        have named its last one, which TensorFlow would then keep for ever, and remove none for it;
        or not have removed the one for which there was no room any more.
        """
        path, whole = os.path.join(self.local, STATE), self._whole()
        named = self._named()
        sound = set(whole[:1]) <= named <= set(whole) and len(whole) <= KEPT
        if sound or not (whole or os.path.exists(path)):
            return
        if not whole:
            os.remove(path)
            return
        names = [os.path.basename(prefix) for prefix in whole[:KEPT]]
        lines = [f'model_checkpoint_path: "{names[0]}"']
        lines += [f'all_model_checkpoint_paths: "{name}"' for name in reversed(names)]
        # An early time: else TensorFlow would keep them for ever.
        lines += ["all_model_checkpoint_timestamps: 1"] * len(names)
        storage.write_text(path, "\n".join(lines) + "\n")
        for prefix in whole[KEPT:]:
            _remove(prefix)

    def _named(self):
        """Set of the prefixes that the file `checkpoint` names; of `None`, if it cannot be read."""
        try:
            state = tf.train.get_checkpoint_state(self.local)
        except (ValueError, tf.errors.OpError):
            state = None
        return {state.model_checkpoint_path, *state.all_model_checkpoint_paths} if state else {None}

    def _whole(self):
        """Prefixes of the checkpoints that are there, the latest first. An index comes last."""
        names = os.listdir(self.local) if os.path.isdir(self.local) else []
        steps = [
            int(found[1])
            for name in names
            if (found := re.fullmatch(rf"{PREFIX}(\d+)\.index", name))
        ]
        return [os.path.join(self.local, f"{PREFIX}{step}") for step in sorted(steps, reverse=True)]

    def save(self, step):
        """Saves, as of a step.

        Raises:
          InputError: when the folder cannot be written. Of TensorFlow's own errors `fit` takes
            some, such as that of a file that may not grow, for the end of the data.
        """
        try:
            self.manager.save(checkpoint_number=step, options=self.options)
        except UNWRITTEN as error:
            raise InputError(
                f"The checkpoint of step {step} cannot be written to {self.folder}: "
                f"{storage.reason(error)}{self._room()}. Those before it are whole: make room, and "
                "the same command goes on from there."
            ) from error
        if self.local == self.folder:
            return
        names = os.listdir(self.local)
        for name in [*sorted(n for n in names if n.startswith(f"{PREFIX}{step}.")), STATE]:
            storage.copy(os.path.join(self.local, name), os.path.join(self.folder, name))
        for name in storage.listdir(self.folder):
            if name.startswith(PREFIX) and name not in names:
                storage.remove(os.path.join(self.folder, name))


def _has_index(prefix):
    """Whether the index of a checkpoint can be read: TensorFlow writes its end last."""
    try:
        tf.train.load_checkpoint(prefix)
    except storage.DAMAGED_CHECKPOINT:
        return False
    return True


def _remove(prefix):
    """Removes a checkpoint, the index first: without it the rest does not count."""
    for path in sorted(glob.glob(f"{glob.escape(prefix)}.*"), key=lambda p: ".index" not in p):
        with contextlib.suppress(FileNotFoundError):  # Another worker did it.
            os.remove(path)


class SaveCheckpoints(tf_keras.callbacks.Callback):
    """Saves every so many steps, after the last, and when the process is asked to stop.

    Then it raises `Interrupted`. The last is also one at which a callback before this one ends the
    training.

    Args:
      checkpoints: `Checkpoints`.
      stop: `StopRequest`.
      start: steps already done.
      every: steps between checkpoints.
      steps: number of training steps.
      before: function called before a save, for what must not be older than the checkpoint.

    Attributes:
      saved: step of the latest checkpoint.
    """

    _supports_tf_logs = True

    def __init__(self, checkpoints, stop, start, every, steps, before=lambda: None):
        super().__init__()
        self.before = before
        self.checkpoints, self.stop = checkpoints, stop
        self.start, self.every, self.steps = start, every, steps
        self.saved = start

    def on_train_batch_end(self, batch, logs=None):
        step = self.start + batch + 1
        asked = self.stop.signal_number is not None
        last = step == self.steps or getattr(self.model, "stop_training", False)
        due = step // self.every > self.saved // self.every or last or asked
        if due and math.isfinite(float(logs["loss"])):
            self.before()
            self.checkpoints.save(step)
            self.saved = step
        if asked and self.saved == step:  # Else the loss is not finite, and `fit` ends by itself.
            # Of several workers this one alone stops; what `fit` does at its end takes all of them.
            raise self.stop.interrupted(step)
