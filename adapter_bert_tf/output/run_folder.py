"""Whose files an output folder holds: what is taken up again, what is refused."""

import dataclasses
import functools
import json
import os
from collections.abc import Mapping
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.config import table
from adapter_bert_tf.config.row import Value
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output import result_digests
from adapter_bert_tf.output.cleanup import checkpoint_files
from adapter_bert_tf.output.fingerprint import (
    agrees,
    decisive,
    is_own_place,
    not_replaced,
    run_digest,
)
from adapter_bert_tf.output.run_files import OWNER, is_whole, read_record, remove
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.store.directory import adapter_exists, check_task_directories, load_adapter
from adapter_bert_tf.store.place import run_of
from adapter_bert_tf.tasks import role

BEGUN_FROM = ("init_from", "members")  # Of the content, where a training begins from adapters.
MADE_OF = "made of"  # What the training read, among the owner's flags.


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """An output folder, and the run that is to use it.

    Args:
      path: of the folder.
      adapter_dir: where the run's adapter is.
      export_dir: where its SavedModel is.
      flags: of the run, all of them.
      defaults: of the flags: what a record says that was written before there was a flag.
      asked: names of the actions besides training whose results must be there.
      content: what the run is made of besides its flags, as `run.json` says it.
    """

    path: str
    adapter_dir: str
    export_dir: str
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
            f"--{name}: {preview(theirs[name])} there, {value!r} here"
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
        if checkpoint_files(self.path):
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
        ours = self._read_in_training() | {
            n: v for n, v in self._chosen_by().items() if n in theirs
        }
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
        return self._is_recorded() and not self.lost()

    def lost(self) -> list[str]:
        """Paths of what this very run had left and what is gone, damaged or another's now."""
        if not self._is_recorded():
            return []
        record = read_record(self._record_path)
        lost = result_digests.changed(record.get("results"), self.path, self.export_dir)
        scores = os.path.join(self.path, result_digests.EVALUATION)
        if "do_eval" in self.asked and not storage.exists(scores):  # An older record is silent.
            lost = [*{scores, *lost}]
        return lost if self._has_its_adapter() else [self.adapter_dir, *lost]

    def results_before(self) -> list[str]:
        """Names of the files in which the last finished run left results, where it is recorded."""
        noted = (read_record(self._record_path) or {}).get("results")
        return result_digests.files_of(noted, self.path)

    def _has_its_adapter(self) -> bool:
        try:
            check_task_directories(self.adapter_dir, load_adapter(self.adapter_dir))
        except InputError:
            return False
        return run_of(self.adapter_dir) in (None, self.run_id)

    def _is_recorded(self) -> bool:
        """Whether `run.json` is of these very flags and this very content."""
        record = read_record(self._record_path)
        if not record or not is_whole(record, "do_eval" in self.asked):
            return False
        theirs = {**self.defaults, **record["flags"]}
        decided = ("data_sha256", "base", "adapter", *BEGUN_FROM)
        return (
            decisive(self.flags) == decisive(theirs)
            and all(theirs.get(name) for name in self.asked)
            and all(agrees(record.get(name), self.content.get(name)) for name in decided)
        )

    def is_interrupted(self) -> bool:
        """Whether the folder holds this very run, begun and not finished.

        Then even `--overwrite` goes on with it: who restarts a preempted command wants no other.
        """
        finished = storage.exists(self._record_path)
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
        owner = decisive(self.flags) | {MADE_OF: self._read_in_training() | self._chosen_by()}
        remove(self.path, ["run.json"])
        storage.write_text(self._owner_path, json.dumps(owner, indent=2))

    def _read_in_training(self) -> dict[str, Any]:
        read = {
            "training data": self.content["data_sha256"]["train"],
            "base": self.content["base"],
            "adapter": self.content["adapter"],
        }
        return read | {name: self.content[name] for name in BEGUN_FROM if name in self.content}

    def _chosen_by(self) -> dict[str, Any]:
        """What decides which weights are kept; scores of other examples cannot be compared.

        It is no part of `run_id`, and owners did not say it once.
        """
        chosen = self.flags.get("keep") == "best" or self.flags.get("patience")
        digests = self.content["data_sha256"]
        dev = {name: value for name, value in digests.items() if role(name) == "dev"}
        return {"development data": dev} if chosen else {}

    @property
    def _record_path(self) -> str:
        return os.path.join(self.path, "run.json")

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
