"""Conflicts between the folders of a run, before anything is read or written."""

import dataclasses
import os
from collections.abc import Collection

from adapter_bert_tf import storage
from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.setting import Command
from adapter_bert_tf.config.settings import paths_read
from adapter_bert_tf.errors import Conflict
from adapter_bert_tf.output.output_dir import Contents, matches
from adapter_bert_tf.output.records import OF_ADAPTERS
from adapter_bert_tf.run.checks.paths import paths_of
from adapter_bert_tf.run.output_contents import contents_of
from adapter_bert_tf.store.files import adapter_at

# Folders that hold an adapter and nothing else.
ADAPTERS = ("adapter_dir", *OF_ADAPTERS)


@dataclasses.dataclass(frozen=True)
class Location:
    """A path that a run reads or writes, with the name of its setting and a label for messages."""

    name: str
    path: str
    label: str

    def is_in(self, other: "Location") -> bool:
        """Whether it is at or in the other location."""
        outer = storage.real(other.path)
        return f"{storage.real(self.path)}/".startswith(f"{outer.rstrip('/')}/")


def check(config: RunConfig, patterns: Collection[str] = (), runs: Collection[str] = ()) -> None:
    """Raises `InputError` for folders that overlap.

    Args:
      config: of the command, or of one run of a sweep.
      patterns: of the names of result files in `--output_dir`.
      runs: output folders of a sweep's runs.
    """
    replaced, read, folder = _replaced(config), _read(config), config.output.folder
    output = Location("output_dir", folder, f"--output_dir={folder}")
    filled = _filled(config) + [
        Location("run", path, f"{path}, of a run of the sweep") for path in runs
    ]
    for outer in replaced:
        _refuse_inside([*replaced, output, *filled, *read], outer, "which is replaced as a whole")
    # Runs may share a folder of windows, whose subfolders are named by digests.
    for outer in [location for location in filled if not output.is_in(location)]:
        others = [location for location in filled if location.name != outer.name]
        _refuse_inside([*replaced, *others], outer, "which has files of its own")
    for outer in [location for location in read if location.name in ADAPTERS]:
        written = [*replaced, *filled, *([output] if outer.name == "init_from" else [])]
        _refuse_inside(written, outer, "an adapter that is read")
    for outer in [location for location in filled if location.name == "checkpoints"]:
        _refuse_inside(read, outer, "which is cleared for a new run")
    _check_files(read, folder, contents_of(patterns))


def _replaced(config: RunConfig) -> list[Location]:
    folders = {}
    if config.actions.do_train:
        folders["adapter_dir"] = config.output.adapter_folder
    if config.actions.do_export:
        folders["export_dir"] = config.output.export_folder
    return [
        Location(name, path, f"--{name}={path}" if config.value(name) else f"{path} (--{name})")
        for name, path in folders.items()
    ]


def _filled(config: RunConfig) -> list[Location]:
    """Returns the folders with files that the run finds by their names."""
    filled = []
    if config.actions.do_train:
        path = os.path.join(config.output.folder, "checkpoints")
        filled.append(Location("checkpoints", path, path))
    given = config.questions.features_dir if config.keeps_features else None
    # Without training, tables only fill the default folder for a dev set that was drawn by a hash.
    of_tables = config.command is Command.CLASSIFIER and not config.actions.do_train
    if given or (config.keeps_features and not of_tables):
        path = given or os.path.join(config.output.folder, "features")
        filled.append(Location("features_dir", path, f"{path} (--features_dir)"))
    return filled


def _read(config: RunConfig) -> list[Location]:
    values = config.values_of(paths_read(config.actions.do_train))
    return [
        Location(name, adapter_at(path) if name in OF_ADAPTERS else path, f"--{name}={path}")
        for name, value in values.items()
        if value
        for path in paths_of(config.command, name, str(value))
    ]


def _refuse_inside(inner: Collection[Location], outer: Location, reason: str) -> None:
    for location in inner:
        if location is not outer and location.is_in(outer):
            raise Conflict(
                f"{location.label} is at or in {outer.label}, {reason}. Choose separate folders."
            )


def _check_files(read: list[Location], output_dir: str, contents: Contents) -> None:
    """Raises `InputError` if the run would replace a file that it reads."""
    folder = storage.real(output_dir)
    for location in read:
        parent, name = os.path.split(storage.real(location.path))
        if parent == folder and matches(name, contents.patterns):
            raise Conflict(
                f"{location.label} is a file that the run writes. Choose another --output_dir."
            )
