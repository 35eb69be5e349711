"""Whose files an output folder holds: what is taken up again, what is refused, what is removed."""

import dataclasses
import functools
import json
import os
import re
from collections.abc import Collection, Mapping
from typing import Any

from absl import logging

from adapter_bert_tf import storage
from adapter_bert_tf.command import table
from adapter_bert_tf.command.row import Value
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.received import shown
from adapter_bert_tf.run.identity import agrees, decisive, is_own_place, not_replaced, run_digest
from adapter_bert_tf.run.output_files import is_whole, read_record, remove
from adapter_bert_tf.store.directory import adapter_exists, adapter_is_whole
from adapter_bert_tf.store.folders import TEMPORARY
from adapter_bert_tf.store.place import require_adapter_place, run_of
from adapter_bert_tf.training.best import Best
from adapter_bert_tf.training.checkpoints import PREFIX, STATE

# What a run leaves behind; `--overwrite` removes these and nothing else.
RUN_FILES = (
    "eval_results.txt",
    "metrics.jsonl",
    "run.json",
    "sweep.json",
    "sweep.csv",
    "events.out.tfevents.*",
    "error-*.log",
)
OWNER = "flags.json"
MADE_OF = "made of"  # What the training read, among the owner's flags.
CHECKPOINT = re.compile(rf"{PREFIX}\d+(\.index|\.data-|_temp/?$)")
HALF_FOLDER = re.compile(rf"(adapter|saved_model){re.escape(TEMPORARY)}[0-9a-f]{{12}}")
LEFT = re.compile(r".*\.[0-9a-f]{8}\.tmp|\.lock\.[0-9a-f]{32}")  # By a killed process.


@dataclasses.dataclass(frozen=True)
class Folder:
    """An output folder, and the run that is to use it.

    Args:
      path: of the folder.
      adapter_dir: where the run's adapter is.
      flags: of the run, all of them.
      defaults: of the flags: what a record says that was written before there was a flag.
      asked: names of the actions besides training whose results must be there.
      content: what the run is made of besides its flags, as `run.json` says it.
    """

    path: str
    adapter_dir: str
    flags: Mapping[str, Value]
    defaults: Mapping[str, Value]
    asked: tuple[str, ...]
    content: Mapping[str, Any]

    def check_same_run(self) -> None:
        """Checkpoints in the folder must be of a run with the same flags. Raises `InputError`."""
        owner = self._owner()
        if owner is None:
            self._check_unowned()
            return
        theirs = decisive({**self.defaults, **owner})
        different = [
            f"--{name}: {shown(theirs[name])} there, {value!r} here"
            for name, value in decisive(self.flags, table.ONLY_RESULTS).items()
            if theirs[name] != value
        ]
        if different:
            raise InputError(
                f"{self.path} holds the checkpoints of another run: "
                f"{'; '.join(different)}. Use its flags to take it up again, another "
                "--output_dir, or --overwrite."
            )

    def _check_unowned(self) -> None:
        if _checkpoint_files(self.path):
            raise InputError(
                f"{os.path.dirname(self._owner_path)} holds checkpoints, and nothing "
                f"says of which run: there is no {OWNER}. Choose another --output_dir, or "
                "remove them with --overwrite."
            )

    def check_same_content(self) -> None:
        """Checkpoints in the folder must be made of the same. Raises `InputError`."""
        owner = self._owner()
        if owner is None:
            return
        theirs = owner.get(MADE_OF)
        theirs = theirs if isinstance(theirs, dict) else {}
        ours = self._read_in_training()
        different = [name for name, value in ours.items() if not agrees(theirs.get(name), value)]
        if different:
            raise InputError(
                f"{self.path} holds the checkpoints of a run whose "
                f"{' and '.join(different)} had another content. Choose another "
                "--output_dir, or use --overwrite."
            )

    @functools.cached_property
    def run_id(self) -> str:
        """A digest of what decides the training; see `run_digest`."""
        return run_digest(self.flags, self.defaults, self._read_in_training())

    def check_adapter(self, overwrite: bool) -> None:
        """An adapter that is where the run's own goes must be its own. Raises `InputError`.

        In the folder's own `adapter` another run's may be replaced with `--overwrite`; and one that
        does not say whose it is, from before they did, is this run's if the checkpoints are.
        """
        if not adapter_exists(self.adapter_dir):
            return
        theirs = run_of(self.adapter_dir)
        own_place = is_own_place(self.path, self.adapter_dir)
        older = theirs is None and self._owner() is not None
        if theirs != self.run_id and not (own_place and (overwrite or older)):
            raise InputError(not_replaced(self.path, self.adapter_dir))

    def check_adapter_still(self, overwrite: bool) -> None:
        """As `check_adapter`, for a run that has trained meanwhile. Raises `InputError`."""
        try:
            self.check_adapter(overwrite)
        except InputError as error:
            raise InputError(
                f"{self.adapter_dir} holds an adapter that another run has written since this one "
                "began, and that is not replaced. This run's weights are in its checkpoints: move "
                "the other adapter away, and give the same command again."
            ) from error

    def is_finished(self) -> bool:
        """Whether the folder holds the whole result of these very flags and this very content."""
        record = read_record(os.path.join(self.path, "run.json"))
        results = os.path.join(self.path, "eval_results.txt")
        scored = "do_eval" not in self.asked or storage.exists(results)
        whole = record and is_whole(record, "do_eval" in self.asked)
        if not whole or not adapter_is_whole(self.adapter_dir) or not scored:
            return False
        if run_of(self.adapter_dir) not in (None, self.run_id):
            return False
        theirs = {**self.defaults, **record["flags"]}
        same_flags = decisive(self.flags) == decisive(theirs)
        decided = ("data_sha256", "base", "adapter", "init_from")
        return (
            same_flags
            and all(theirs.get(name) for name in self.asked)
            and all(agrees(record.get(name), self.content.get(name)) for name in decided)
        )

    def is_interrupted(self) -> bool:
        """Whether the folder holds this very run, begun and not finished.

        Then even `--overwrite` goes on with it: who restarts a preempted command wants no other.
        """
        finished = storage.exists(os.path.join(self.path, "run.json"))
        return storage.exists(self._owner_path) and not finished and self._is_same()

    def goes_on(self) -> bool:
        """Whether the run can go on from the folder, or begin there."""
        try:
            self.check_adapter(overwrite=False)
        except InputError:
            return False
        return self._is_same()

    def _is_same(self) -> bool:
        try:
            self.check_same_run()
            self.check_same_content()
        except InputError:
            return False
        return True

    def claim(self) -> None:
        """Notes in the folder which run its checkpoints belong to, and that it is not finished."""
        owner = decisive(self.flags) | {MADE_OF: self._read_in_training()}
        remove(self.path, ["run.json"])
        storage.write_text(self._owner_path, json.dumps(owner, indent=2))

    def _read_in_training(self) -> dict[str, Any]:
        read = {
            "training data": self.content["data_sha256"]["train"],
            "base": self.content["base"],
            "adapter": self.content["adapter"],
        }
        start = {"init_from": self.content["init_from"]} if "init_from" in self.content else {}
        return read | start

    @property
    def _owner_path(self) -> str:
        return os.path.join(self.path, "checkpoints", OWNER)

    def _owner(self) -> dict[str, Any] | None:
        """What `claim` noted, or None."""
        if not storage.exists(self._owner_path):
            return None
        owner: dict[str, Any] | None = read_record(self._owner_path)
        if owner is None:
            raise InputError(
                f"{self._owner_path} is damaged: it says not which run the checkpoints beside it "
                "are of. Choose another --output_dir, or remove them with --overwrite."
            )
        return owner


def clear(folder: str, patterns: Collection[str]) -> None:
    """Removes what an earlier run left in `folder`, and files of the task's own `patterns`.

    Checkpoints go first, then whose they are: killed at any point, it is done again.
    """
    Best.clean(os.path.join(folder, "checkpoints"), None)
    for path in [*_checkpoint_files(folder), os.path.join(folder, "checkpoints", OWNER)]:
        if storage.exists(path) and not storage.isdir(path):
            storage.remove(path)
    if adapter_exists(os.path.join(folder, "adapter")):
        _remove_adapter(os.path.join(folder, "adapter"))
    remove(folder, (*RUN_FILES, *patterns))


def _remove_adapter(folder: str) -> None:
    """Removes an adapter directory, if it is ours and nothing else is in it."""
    try:
        require_adapter_place(folder)
    except InputError as error:
        logging.warning("What is in %s stays. %s", folder, error)
        return
    storage.rmtree(folder)


def _checkpoint_files(folder: str) -> list[str]:
    """Paths of TensorFlow's files in `checkpoints/`."""
    place = os.path.join(folder, "checkpoints")
    names = storage.listdir(place) if storage.isdir(place) else []
    return [
        os.path.join(place, name)
        for name in sorted(names)
        if name == STATE or name.startswith(f"{STATE}.tmp") or CHECKPOINT.match(name)
    ]


def remove_leftovers(output_dir: str) -> None:
    """Removes what a killed process had begun to write in a folder that is locked."""
    for folder in (output_dir, os.path.join(output_dir, "checkpoints")):
        for name in storage.listdir(folder) if storage.isdir(folder) else []:
            path = os.path.join(folder, name.rstrip("/"))
            if HALF_FOLDER.fullmatch(name.rstrip("/")):
                if storage.isdir(path):  # A file of this name is not of our making.
                    storage.rmtree(path)
            elif LEFT.fullmatch(name) and not storage.isdir(path):
                storage.remove(path)
    paths = [path.rstrip("/") for path in _checkpoint_files(output_dir)]
    for path in paths:
        if _is_half(path, paths):
            (storage.rmtree if storage.isdir(path) else storage.remove)(path)


def _is_half(path: str, paths: Collection[str]) -> bool:
    """Whether TensorFlow had not finished a path among those of the checkpoints."""
    folder, name = os.path.split(path)
    number = re.match(rf"{PREFIX}\d+", name)
    without_index = number and os.path.join(folder, f"{number[0]}.index") not in paths
    return bool(without_index or name.endswith("_temp") or name.startswith(f"{STATE}.tmp"))
