"""Checkpoints of trained variables and the optimizer; its step is the position in the data."""

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
from adapter_bert_tf.base.readers import checkpoint_errors
from adapter_bert_tf.errors import Damaged, Unavailable

MAX_TO_KEEP = 2
STATE_FILE, PREFIX = "checkpoint", "ckpt-"  # TensorFlow's names for its files.
FILES = re.compile(rf"{PREFIX}\d+\.(index|data-).*")
INCOMPLETE = re.compile(rf"{STATE_FILE}\.tmp.*|{PREFIX}\d+_temp")  # Only while TensorFlow writes.
COMPLETED_BY = (re.compile(rf"({PREFIX}\d+)\.data-.*"), r"\1.index")
# Raised for a full disk, a file size limit, or a folder that is missing or read-only.
WRITE_ERRORS = (
    tf.errors.OutOfRangeError,
    tf.errors.ResourceExhaustedError,
    tf.errors.PermissionDeniedError,
    tf.errors.NotFoundError,
    tf.errors.FailedPreconditionError,
    tf.errors.DataLossError,
)


class Checkpoints:
    """The checkpoints of one run, in a folder, local or gs://.

    TensorFlow writes the index of a checkpoint last, and in place. A checkpoint is complete when
    its index can be read; an incomplete one is not yet listed in the file `checkpoint`. For gs://
    the files are written to a local folder and copied in the same order. `io_device` is the device
    whose host reads and writes the files; None for the device of each variable.
    """

    def __init__(self, folder, trained, optimizer, io_device=None):
        self.options = tf.train.CheckpointOptions(experimental_io_device=io_device)
        self.folder, self.optimizer = folder, optimizer
        self.local = storage.working_folder(folder)
        if self.local != folder and storage.isdir(folder):
            storage.copy_files(folder, self.local)
        self.checkpoint = tf.train.Checkpoint(optimizer=optimizer, trained=trained)
        # Creates the variable now: created inside `fit`, all workers would share it, and only one
        # worker saves.
        self.saves = self.checkpoint.save_counter
        self._remove_unfinished()
        self._repair_state_file()
        self.manager = tf.train.CheckpointManager(
            self.checkpoint, self.local, max_to_keep=MAX_TO_KEEP
        )

    def restore(self):
        """Restores the latest readable checkpoint; returns its step or 0. Raises `InputError`."""
        paths = self._prefixes()
        for path in paths:
            try:
                self.checkpoint.restore(path, self.options).expect_partial()
            except checkpoint_errors() as error:
                logging.warning("The checkpoint %s is damaged: %s", path, error)
                continue
            step = int(self.optimizer.iterations.numpy())
            print(f"Resuming from step {step}: {path}", flush=True)
            return step
        if paths:
            raise Damaged(
                f"The checkpoint {paths[0]} is damaged, and no other checkpoint can be read. "
                f"Remove {self.folder} to start again."
            )
        return 0

    def _remove_unfinished(self):
        """Removes the latest checkpoint, if a process was killed while it wrote the index."""
        for prefix in self._prefixes()[:1]:
            if prefix not in self._listed_prefixes() and not _is_readable(prefix):
                logging.warning("The incomplete checkpoint %s is removed.", prefix)
                _remove(prefix)

    def _repair_state_file(self):
        """Rewrites TensorFlow's file `checkpoint` if it does not match the checkpoints.

        A power cut may leave it empty. In a copied folder it may name checkpoints of the original
        folder, which TensorFlow would later remove. After a kill it may miss the last checkpoint,
        which TensorFlow would then never remove, or there may be one checkpoint too many.
        """
        path, prefixes = os.path.join(self.local, STATE_FILE), self._prefixes()
        listed = self._listed_prefixes()
        valid = set(prefixes[:1]) <= listed <= set(prefixes) and len(prefixes) <= MAX_TO_KEEP
        if valid or not (prefixes or os.path.exists(path)):
            return
        if not prefixes:
            os.remove(path)
            return
        names = [os.path.basename(prefix) for prefix in prefixes[:MAX_TO_KEEP]]
        lines = [f'model_checkpoint_path: "{names[0]}"']
        lines += [f'all_model_checkpoint_paths: "{name}"' for name in reversed(names)]
        # With the current time, TensorFlow would never remove them.
        lines += ["all_model_checkpoint_timestamps: 1"] * len(names)
        storage.write_text(path, "\n".join(lines) + "\n")
        for prefix in prefixes[MAX_TO_KEEP:]:
            _remove(prefix)

    def _listed_prefixes(self):
        """The set of prefixes in the file `checkpoint`; `{None}` if it cannot be read."""
        try:
            state = tf.train.get_checkpoint_state(self.local)
        except (ValueError, OSError, tf.errors.OpError):
            state = None
        return {state.model_checkpoint_path, *state.all_model_checkpoint_paths} if state else {None}

    def _prefixes(self):
        """The prefixes of all checkpoints with an index, the latest first."""
        names = os.listdir(self.local) if os.path.isdir(self.local) else []
        matches = [re.fullmatch(rf"{PREFIX}(\d+)\.index", name) for name in names]
        steps = [int(match[1]) for match in matches if match]
        return [os.path.join(self.local, f"{PREFIX}{step}") for step in sorted(steps, reverse=True)]

    def save(self, step):
        """Saves the checkpoint of a step. Raises `InputError` if the folder cannot be written."""
        try:
            self.manager.save(checkpoint_number=step, options=self.options)
        except WRITE_ERRORS as error:  # `fit` takes an `OutOfRangeError` for the end of its data.
            unfinished = os.path.join(self.local, f"{PREFIX}{step}_temp")
            shutil.rmtree(unfinished, ignore_errors=True)  # It may fill a disk.
            free = ""  # TensorFlow's errors do not name the free space.
            if os.path.isdir(self.local):
                free = f" ({shutil.disk_usage(self.local).free:,} bytes are free there)"
            raise Unavailable(
                f"The checkpoint of step {step} cannot be written to {self.folder}: "
                f"{storage.reason(error)}{free}. Earlier checkpoints are complete. Free some space "
                "and run the same command to continue from the latest one."
            ) from error
        if self.local == self.folder:
            return
        names = os.listdir(self.local)
        for name in [*sorted(n for n in names if n.startswith(f"{PREFIX}{step}.")), STATE_FILE]:
            storage.copy(os.path.join(self.local, name), os.path.join(self.folder, name))
        for name in storage.listdir(self.folder):
            if name.startswith(PREFIX) and name not in names:
                storage.remove(os.path.join(self.folder, name))


def _is_readable(prefix):
    """Whether the index of a checkpoint is complete; TensorFlow writes its end last."""
    try:
        tf.train.load_checkpoint(prefix)
    except checkpoint_errors():
        return False
    return True


def _remove(prefix):
    """Removes a checkpoint, the index first, so that a partly removed one is never read."""
    for path in sorted(glob.glob(f"{glob.escape(prefix)}.*"), key=lambda p: ".index" not in p):
        with contextlib.suppress(FileNotFoundError):  # Another worker may have removed it.
            os.remove(path)


class SaveCheckpoints(tf_keras.callbacks.Callback):
    """Saves checkpoints every `every` steps, after the last step, and on a request to stop.

    After a request to stop it raises `Interrupted`. If an earlier callback ends the training early,
    that step is the last one. `before_save` writes files which must not be older than the
    checkpoint; `saved` is the step of the latest checkpoint, at first `start`.
    """

    _supports_tf_logs = True

    def __init__(self, checkpoints, stop, start, every, steps, before_save=lambda: None):
        super().__init__()
        self.before_save = before_save
        self.checkpoints, self.stop = checkpoints, stop
        self.start, self.every, self.steps = start, every, steps
        self.saved = start

    def on_train_batch_end(self, batch, logs=None):
        step = self.start + batch + 1
        stopping = self.stop.signal_number is not None
        last = step == self.steps or getattr(self.model, "stop_training", False)
        due = step // self.every > self.saved // self.every or last or stopping
        if due and math.isfinite(float(logs["loss"])):
            self.before_save()
            self.checkpoints.save(step)
            self.saved = step
        if stopping and self.saved == step:  # With a loss that is not finite, `fit` ends by itself.
            # Ending `fit` normally would wait for the other workers, which do not stop.
            raise self.stop.interrupted(step)
