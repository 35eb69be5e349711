"""The output folder of a run: which run it holds, and what is left of it."""

import glob
import os
from collections.abc import Collection, Mapping
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import Damaged, InputError, Occupied
from adapter_bert_tf.output.artifact import Artifact
from adapter_bert_tf.output.output_dir import Contents, OutputDir, Pattern, matches
from adapter_bert_tf.output.records import Fingerprint, file_digest, read_record, write_record
from adapter_bert_tf.sanitize import printable

RECORD, OWNER = "run.json", "checkpoints/flags.json"
SWEEP = "sweep.json"  # The record of several runs, each in a folder of its own.
EXPORT = "saved_model"  # Among the results in the record.
EVALUATION = "eval_results.txt"
STARTED = "begun"  # In the record of an unfinished evaluation.


class RunDir(OutputDir):
    """An output folder and the run that is to use it.

    Args:
      path, contents: as for `OutputDir`.
      run: fingerprint of the run.
      adapter, exported: places of the run's adapter and of its SavedModel.
      result_files: patterns of the files with its results.
    """

    def __init__(
        self,
        path: str,
        contents: Contents,
        run: Fingerprint,
        adapter: Artifact,
        exported: Artifact,
        result_files: Collection[Pattern] = (),
    ) -> None:
        super().__init__(path, contents)
        self.run, self.adapter, self.exported = run, adapter, exported
        self.result_files = result_files

    # === What the folder holds: this run, another one, or none ===

    def require_same_run(self) -> None:
        """Raises `InputError` if the folder is a sweep's, or its checkpoints another run's."""
        owner = self._owner()
        if owner is None:
            self._require_no_sweep()
            self._require_no_checkpoints()
        elif self._has_progress() and (different := self.run.changed_settings(owner)):
            raise Occupied(
                f"{self.path} holds the checkpoints of another run: {'; '.join(different)}. Use "
                "its flags to resume it, another --output_dir, or --overwrite."
            )

    def _require_no_sweep(self) -> None:
        if storage.exists(self.file(SWEEP)):
            raise Occupied(
                f"{self.path} holds a sweep or a cross-validation: see {self.file(SWEEP)}. Choose "
                "another --output_dir, or replace it with --overwrite."
            )

    def _require_no_checkpoints(self) -> None:
        if self._has_checkpoints():
            folder, record = os.path.split(self.file(OWNER))
            raise Occupied(
                f"{folder} holds checkpoints, and no {record} names their run. Choose another "
                "--output_dir, or remove them with --overwrite."
            )

    def _has_checkpoints(self) -> bool:
        folder = os.path.dirname(self.file(OWNER))
        return any(
            inner.path == folder and inner._paths(inner.contents.files) for inner in self._inner
        )

    def _has_progress(self) -> bool:
        """Whether there is more of a run than the note that it began."""
        return storage.exists(self.file(RECORD)) or self._has_checkpoints()

    def require_same_content(self) -> None:
        """Raises `InputError` if the checkpoints were trained on other content."""
        owner = self._owner()
        if owner is None or not self._has_progress():
            return
        if different := self.run.changed_content(owner):
            raise Occupied(
                f"{self.path} holds the checkpoints of a run whose {' and '.join(different)} had "
                "another content. Choose another --output_dir, or use --overwrite."
            )

    def can_resume(self) -> bool:
        """Whether the run can continue from the folder, or start there."""
        try:
            self.require_own_adapter(overwrite=False)
        except InputError:
            return False
        return self._holds_this_run()

    def is_interrupted(self) -> bool:
        """Whether the folder holds this run, started and not finished.

        Then `--overwrite` resumes it too: a preempted command is repeated with the same flags.
        """
        finished = storage.exists(self.file(RECORD))
        return storage.exists(self.file(OWNER)) and not finished and self._holds_this_run()

    def is_finished(self) -> bool:
        """Whether the folder holds the complete result of this run."""
        return self._is_recorded_run() and not self.lost()

    def lost(self) -> list[str]:
        """Returns paths of results of this run that are gone, damaged or another run's."""
        if not self._is_recorded_run():
            return []
        lost = self._changed_results((read_record(self.file(RECORD)) or {}).get("results"))
        scores = self.file(EVALUATION)
        if self.run.is_evaluated and not storage.exists(scores):
            lost = [*{scores, *lost}]  # Records of earlier versions do not name it.
        is_own = self.adapter.is_whole() and self.adapter.run() in (None, self.run.run_id)
        return lost if is_own else [self.adapter.path, *lost]

    def require_own_adapter(self, overwrite: bool) -> None:
        """Raises `InputError` if another run's adapter is where this run writes its own."""
        adapter, accepted = self.adapter, []
        if not overwrite and adapter.exists() and adapter.run() is None:
            # Early versions recorded no run in the adapter: the checkpoints identify it.
            accepted = [None] if self._owner() is not None else []
        require_own_adapter(adapter, self.path, self.run.run_id, accepted, overwrite)

    def require_own_adapter_still(self, overwrite: bool) -> None:
        """Checks the adapter again after the training. Raises `InputError`."""
        try:
            self.require_own_adapter(overwrite)
        except InputError as error:
            raise Occupied(
                f"{self.adapter.path} holds an adapter that another run has written since this one "
                "started, and that is not replaced. The weights of this run are in its "
                "checkpoints: move the other adapter away, and repeat the command."
            ) from error

    def _is_recorded_run(self) -> bool:
        return self.run.is_recorded_in(read_record(self.file(RECORD)))

    def _holds_this_run(self) -> bool:
        try:
            self.require_same_run()
            self.require_same_content()
        except InputError:
            return False
        return True

    def _owner(self) -> dict[str, Any] | None:
        """Reads the owner record of the checkpoints. Raises `InputError` if it is damaged."""
        path = self.file(OWNER)
        if not storage.exists(path):
            return None
        owner = read_record(path)
        if owner is None:
            raise Damaged(
                f"{path} is damaged: the run of the checkpoints next to it is unknown. Choose "
                "another --output_dir, or remove them with --overwrite."
            )
        return owner

    # === What the run writes ===

    def start_training(self) -> dict[str, Any]:
        """Records which run the checkpoints belong to, and that it is not finished.

        Returns the record of the folder until now, which is removed; empty without one.
        """
        earlier = read_record(self.file(RECORD)) or {}
        if storage.exists(self.file(RECORD)) and not storage.isdir(self.file(RECORD)):
            storage.remove(self.file(RECORD))
        write_record(self.file(OWNER), self.run.owner_record())
        return earlier

    def start_evaluation(self, values: Mapping[str, Any]) -> None:
        """Records, in a folder without a record, that an evaluation writes there."""
        if not storage.exists(self.file(RECORD)):
            write_record(self.file(RECORD), {STARTED: True, **values})

    def write_record(self, values: Mapping[str, Any], trained: bool) -> None:
        """Writes `run.json`, with all that another run needs to repeat this one.

        The record is that of the training or the sweep, else of the last evaluation. Other runs are
        added to it under `later_runs`.
        """
        first = None if trained else read_record(self.file(RECORD))
        if first and _stays(first, values):
            later = first.get("later_runs")
            later = later if isinstance(later, list) else []
            values = first | {"later_runs": [*later, values]}
        write_record(self.file(RECORD), values)

    def clear(self, more: Collection[Pattern] = ()) -> None:
        """As `OutputDir.clear`; also removes the unchanged results that the record names."""
        recorded = (read_record(self.file(RECORD)) or {}).get("results")
        recorded = recorded if isinstance(recorded, dict) else {}
        names = recorded.keys() & {*self._names()}
        unchanged = [n for n in names if file_digest(self.file(n)) == recorded[n]]
        super().clear([*more, *map(glob.escape, unchanged)])

    def results(self, exports: bool) -> dict[str, Any]:
        """Returns a dict from file to SHA-256; for a SavedModel the sizes of its files."""
        names = [n for n in self._names() if matches(n, self.result_files)]
        digests = {name: file_digest(self.file(name)) for name in names}
        exported = {EXPORT: self.exported.state()} if exports else {}
        return {name: digest for name, digest in digests.items() if digest} | exported

    def _changed_results(self, recorded: Any) -> list[str]:
        """Returns paths of the recorded results that are gone or changed."""
        if recorded is None:
            return []
        if not isinstance(recorded, dict):
            return [self.path]
        names = {*self._names()}
        files = {name: self.file(name) for name in recorded if name != EXPORT}
        changed = [
            printable(path)
            for name, path in files.items()
            if name not in names or file_digest(path) != recorded[name]
        ]
        if EXPORT in recorded and self.exported.state() != recorded[EXPORT]:
            changed.append(self.exported.path)
        return changed


def _stays(record: Mapping[str, Any], later: Mapping[str, Any]) -> bool:
    """Whether a record describes its folder also after a later run without training."""
    if record.get(STARTED):
        return False
    trained = any(name in record for name in ("train_seconds", "runs"))
    return trained or ("eval" in record and "eval" not in later)


def require_own_adapter(
    adapter: Artifact,
    output_dir: str,
    run_id: str,
    accepted: Collection[str | None],
    overwrite: bool,
) -> None:
    """Raises `InputError` if another run's adapter is where a run writes its own.

    It is replaced only in the folder `adapter` of `output_dir`, if it has one of the `accepted` run
    ids, or with `overwrite`.
    """
    if not adapter.exists() or (recorded := adapter.run()) == run_id:
        return
    is_in_place = storage.real(adapter.path) == storage.real(os.path.join(output_dir, "adapter"))
    if is_in_place and (overwrite or recorded in accepted):
        return
    choice = (
        ". Choose another --output_dir, or replace it with --overwrite."
        if is_in_place
        else ", which is not replaced. Choose another --adapter_dir, or remove what is there. To "
        f"start training from that adapter use --init_from={adapter.path}."
    )
    raise Occupied(f"{adapter.path} already holds an adapter of another run{choice}")
