"""The folder of a run: which run it holds, and what of that run is still there."""

import dataclasses
import glob
import os
from collections.abc import Collection, Mapping
from typing import Any

from adapter_bert_tf import storage
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.artifact import Artifact
from adapter_bert_tf.output.output_dir import Contents, OutputDir, Pattern, matches
from adapter_bert_tf.output.records import file_digest, read_record, write_record
from adapter_bert_tf.sanitize import preview, printable

RECORD, OWNER = "run.json", "checkpoints/flags.json"
EXPORT = "saved_model"  # Among the results in the record.
EVALUATION = "eval_results.txt"
STARTED = "begun"  # In the record of an evaluation that has not ended.
CONTENT = "made of"  # What the training read, in the owner's record.


@dataclasses.dataclass(frozen=True)
class Fingerprint:
    """What makes two runs the same, as values that JSON can hold.

    Args:
      run_id: a digest of what decides the training; the adapter records it.
      training: values that decide the training, by flag.
      results: values that decide only the results.
      defaults: what a record means that does not name a flag, for all flags.
      actions: flags that must be true in the record of a finished run.
      content: what was read, as `run.json` records it.
      compared: names in `content` that must be the same in the record of a finished run.
      read: what the training read, by the name that messages use.
      scored: what decides which weights are kept; owners of earlier versions do not name it.
      newer: names in a content that records of earlier versions lack.
    """

    run_id: str
    training: Mapping[str, Any]
    results: Mapping[str, Any]
    defaults: Mapping[str, Any]
    actions: tuple[str, ...]
    content: Mapping[str, Any]
    compared: tuple[str, ...]
    read: Mapping[str, Any]
    scored: Mapping[str, Any]
    newer: tuple[str, ...] = ()

    def agrees(self, recorded: Any, value: Any) -> bool:
        """Whether a record names the same content; what is newer than the record is left out."""
        if isinstance(recorded, dict) and isinstance(value, dict):
            value = {n: v for n, v in value.items() if n in recorded or n not in self.newer}
        return bool(recorded == value)


class RunDir(OutputDir):
    """An output folder, and the run that is to use it.

    Args:
      path: of the folder.
      contents: what the run writes there.
      run: the fingerprint of the run.
      adapter: where the run's adapter goes.
      exported: where its SavedModel goes.
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

    # What is there: this run, another one, none.

    def require_same_run(self) -> None:
        """Checks that checkpoints in the folder are of a run with the same flags.

        Raises:
          InputError: for those of another run, or of one that is not known.
        """
        owner = self._owner()
        if owner is None:
            self._require_no_checkpoints()
            return
        theirs = {**self.run.defaults, **owner}
        different = [
            f"--{name}: {preview(_plain(theirs[name]))} there, {value!r} here"
            for name, value in self.run.training.items()
            if _plain(theirs[name]) != value
        ]
        if different:
            raise InputError(
                f"{self.path} holds the checkpoints of another run: {'; '.join(different)}. Use "
                "its flags to resume it, another --output_dir, or --overwrite."
            )

    def _require_no_checkpoints(self) -> None:
        folder, record = os.path.split(self.file(OWNER))
        if any(
            inner.path == folder and inner._paths(inner.contents.files) for inner in self._inner
        ):
            raise InputError(
                f"{folder} holds checkpoints, and no {record} names their run. Choose another "
                "--output_dir, or remove them with --overwrite."
            )

    def require_same_content(self) -> None:
        """Checks that checkpoints in the folder were trained on the same. Raises `InputError`."""
        owner = self._owner()
        if owner is None:
            return
        theirs = owner.get(CONTENT)
        theirs = theirs if isinstance(theirs, dict) else {}
        ours = {**self.run.read, **{n: v for n, v in self.run.scored.items() if n in theirs}}
        different = [n for n, value in ours.items() if not self.run.agrees(theirs.get(n), value)]
        if different:
            raise InputError(
                f"{self.path} holds the checkpoints of a run whose {' and '.join(different)} had "
                "another content. Choose another --output_dir, or use --overwrite."
            )

    def can_resume(self) -> bool:
        """Whether the run can go on from the folder, or begin there."""
        try:
            self.require_own_adapter(overwrite=False)
        except InputError:
            return False
        return self._holds_this_run()

    def is_interrupted(self) -> bool:
        """Whether the folder holds this run, begun and not finished.

        Then even `--overwrite` resumes it: who repeats a preempted command wants no other.
        """
        finished = storage.exists(self.file(RECORD))
        return storage.exists(self.file(OWNER)) and not finished and self._holds_this_run()

    def is_finished(self) -> bool:
        """Whether the folder holds the whole result of this run."""
        return self._is_recorded_run() and not self.lost()

    def lost(self) -> list[str]:
        """Paths of what this run had left and what is gone, damaged or another run's."""
        if not self._is_recorded_run():
            return []
        lost = self._changed((read_record(self.file(RECORD)) or {}).get("results"))
        scores = self.file(EVALUATION)
        if "do_eval" in self.run.actions and not storage.exists(scores):
            lost = [*{scores, *lost}]  # A record of an earlier version does not name it.
        is_own = self.adapter.is_whole() and self.adapter.run() in (None, self.run.run_id)
        return lost if is_own else [self.adapter.path, *lost]

    def require_own_adapter(self, overwrite: bool) -> None:
        """Checks that an adapter at the run's place is the run's; see `require_own_adapter`."""
        adapter, early = self.adapter, []
        if not overwrite and adapter.exists() and adapter.run() is None:
            # Early versions recorded no run in the adapter: it is that of the checkpoints.
            early = [None] if self._owner() is not None else []
        require_own_adapter(adapter, self.path, self.run.run_id, early, overwrite)

    def require_own_adapter_still(self, overwrite: bool) -> None:
        """As `require_own_adapter`, for a run that has trained since. Raises `InputError`."""
        try:
            self.require_own_adapter(overwrite)
        except InputError as error:
            raise InputError(
                f"{self.adapter.path} holds an adapter that another run has written since this one "
                "began, and that is not replaced. This run's weights are in its checkpoints: move "
                "the other adapter away, and repeat the command."
            ) from error

    def _is_recorded_run(self) -> bool:
        """Whether `run.json` is of this run."""
        record = read_record(self.file(RECORD))
        if not record or not is_whole(record, "do_eval" in self.run.actions):
            return False
        flags = record["flags"]
        theirs = {**self.run.defaults, **flags}
        ours = {**self.run.training, **self.run.results}
        return (
            flags.keys() <= self.run.defaults.keys()
            and all(_plain(theirs[name]) == value for name, value in ours.items())
            and all(theirs.get(name) for name in self.run.actions)
            and all(
                self.run.agrees(record.get(name), self.run.content.get(name))
                for name in self.run.compared
            )
        )

    def _holds_this_run(self) -> bool:
        try:
            self.require_same_run()
            self.require_same_content()
        except InputError:
            return False
        return True

    def _owner(self) -> dict[str, Any] | None:
        """Which run the checkpoints are of, as `start_training` recorded it; None if there is none.

        Raises:
          InputError: for a damaged record.
        """
        path = self.file(OWNER)
        if not storage.exists(path):
            return None
        owner = read_record(path)
        if owner is None:
            raise InputError(
                f"{path} is damaged, so it is not known which run the checkpoints next to it are "
                "of. Choose another --output_dir, or remove them with --overwrite."
            )
        return owner

    # What the run writes.

    def start_training(self) -> None:
        """Records which run the checkpoints belong to, and that it is not finished."""
        if storage.exists(self.file(RECORD)) and not storage.isdir(self.file(RECORD)):
            storage.remove(self.file(RECORD))
        content = {**self.run.read, **self.run.scored}
        write_record(self.file(OWNER), {**self.run.training, **self.run.results, CONTENT: content})

    def start_evaluation(self, values: Mapping[str, Any]) -> None:
        """Records, in a folder without a record, that an evaluation writes there."""
        if not storage.exists(self.file(RECORD)):
            write_record(self.file(RECORD), {STARTED: True, **values})

    def write_record(self, values: Mapping[str, Any], trained: bool) -> None:
        """Writes `run.json`, all that another run needs to repeat this one.

        A run that did not train is added under `later_runs` to the record of the training.
        """
        training = None if trained else read_record(self.file(RECORD))
        if training and not training.get(STARTED):
            earlier = training.get("later_runs")
            earlier = earlier if isinstance(earlier, list) else []
            values = training | {"later_runs": [*earlier, values]}
        write_record(self.file(RECORD), values)

    def clear(self, more: Collection[Pattern] = ()) -> None:
        """As `OutputDir.clear`; also what the last finished run recorded as its results."""
        noted = (read_record(self.file(RECORD)) or {}).get("results")
        noted = noted if isinstance(noted, dict) else {}
        names = noted.keys() & {*self._names()}
        unchanged = [n for n in names if file_digest(self.file(n)) == noted[n]]
        super().clear([*more, *map(glob.escape, unchanged)])

    def results(self, exports: bool) -> dict[str, Any]:
        """The results that are there, as `run.json` records them.

        Args:
          exports: whether the run writes a SavedModel.

        Returns:
          dict from file to SHA-256; a SavedModel's value is a dict, as its weights are large.
        """
        names = [n for n in self._names() if matches(n, self.result_files)]
        digests = {name: file_digest(self.file(name)) for name in names}
        exported = {EXPORT: self.exported.state()} if exports else {}
        return {name: digest for name, digest in digests.items() if digest} | exported

    def _changed(self, noted: Any) -> list[str]:
        """Paths of the results that are gone, or not what was recorded any more."""
        if noted is None:
            return []
        if not isinstance(noted, dict):
            return [self.path]
        there = {*self._names()}
        files = {name: self.file(name) for name in noted if name != EXPORT}
        lost = [
            printable(path)
            for name, path in files.items()
            if name not in there or file_digest(path) != noted[name]
        ]
        if EXPORT in noted and self.exported.state() != noted[EXPORT]:
            lost.append(self.exported.path)
        return lost


def require_own_adapter(
    adapter: Artifact, output_dir: str, run_id: str, early: Collection[str | None], overwrite: bool
) -> None:
    """Checks that an adapter where a run's own goes was written by that run.

    Args:
      adapter: at the place.
      output_dir: of the run. Only in its own folder `adapter` another run's may be replaced.
      run_id: digest of the run.
      early: what else an adapter in the own folder may name as its run.
      overwrite: whether one in the own folder may be replaced in any case.

    Raises:
      InputError: for an adapter of another run.
    """
    if not adapter.exists() or (theirs := adapter.run()) == run_id:
        return
    is_in_place = storage.real(adapter.path) == storage.real(os.path.join(output_dir, "adapter"))
    if is_in_place and (overwrite or theirs in early):
        return
    choice = (
        ". Choose another --output_dir, or replace it with --overwrite."
        if is_in_place
        else ", which is not replaced. Choose another --adapter_dir, or remove what is there. To "
        f"start training from that adapter use --init_from={adapter.path}."
    )
    raise InputError(f"{adapter.path} already holds an adapter of another run{choice}")


def is_whole(record: Mapping[str, Any], evaluated: bool) -> bool:
    """Whether a `run.json` has what another run, or a sweep, takes from it.

    Args:
      record: its content.
      evaluated: whether it must have results.
    """
    parameters, results = record.get("parameters"), record.get("eval")
    counts = parameters if isinstance(parameters, dict) else {}
    numbers = [record.get(name) for name in ("train_seconds", "examples_per_second")]
    numbers += [counts.get(name) for name in ("trained", "total")]
    if evaluated:
        numbers += results.values() if isinstance(results, dict) and results else [None]
    return isinstance(record.get("flags"), dict) and all(
        isinstance(number, int | float) for number in numbers
    )


def _plain(value: Any) -> Any:
    """A value of a record; a path is the same with and without a slash at its end."""
    return value.rstrip("/") or value if isinstance(value, str) else value
