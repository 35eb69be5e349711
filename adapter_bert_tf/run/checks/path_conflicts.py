"""Folders of a run that are in each other's way: found before anything is read or written."""

import dataclasses
import os
from collections.abc import Collection

from adapter_bert_tf import storage
from adapter_bert_tf.config import table
from adapter_bert_tf.config.run_flags import RunFlags
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.output.output_dir import Contents, matches
from adapter_bert_tf.run.checks.paths import paths_of
from adapter_bert_tf.run.output_contents import contents_of
from adapter_bert_tf.run.plan import Actions, Places

ADAPTERS = ("adapter_dir", "init_from", "fuse")  # Folders in which nothing else may be.


@dataclasses.dataclass(frozen=True)
class Location:
    """A path that a run reads or writes.

    Args:
      name: of its flag.
      path: as it was given.
      what: how messages call it.
    """

    name: str
    path: str
    what: str

    def is_in(self, other: "Location") -> bool:
        """Whether it is the other one, or in it."""
        outer = storage.real(other.path)
        return f"{storage.real(self.path)}/".startswith(f"{outer.rstrip('/')}/")


def check(
    flags: RunFlags,
    actions: Actions,
    places: Places,
    patterns: Collection[str] = (),
    runs: Collection[str] = (),
) -> None:
    """No folder may be in another's way. Raises `InputError`.

    Args:
      flags: of the command, or of one run of a sweep.
      actions: that they ask for.
      places: that they name.
      patterns: of the files in `--output_dir` that are the kind's own.
      runs: the output folders of a sweep's runs.
    """
    replaced, read = _replaced(flags, actions, places), _read(flags, actions)
    kept = [Location("output_dir", places.output_dir, f"--output_dir={places.output_dir}")]
    filled = _filled(flags, actions, places) + [
        Location("run", path, f"{path}, of a run of the sweep") for path in runs
    ]
    for outer in replaced:
        _refuse_inside([*replaced, *kept, *filled, *read], outer, "which is replaced as a whole")
    # Windows are in folders named by digests, so runs may share the folder above them.
    for outer in [place for place in filled if not kept[0].is_in(place)]:
        _refuse_inside([*replaced, *_other(filled, outer)], outer, "which has files of its own")
    for outer in [place for place in read if place.name in ADAPTERS]:
        written = [*replaced, *filled] + (kept if outer.name == "init_from" else [])
        _refuse_inside(written, outer, "an adapter that is read")
    for outer in [place for place in filled if place.name == "checkpoints"]:
        _refuse_inside(read, outer, "which is cleared for a new run")
    _check_files(read, places.output_dir, contents_of(patterns))


def _replaced(flags: RunFlags, actions: Actions, places: Places) -> list[Location]:
    """What is written as a whole, in place of what is there."""
    written = [
        (actions.train, "adapter_dir", places.adapter_dir),
        (actions.export, "export_dir", places.export_dir),
    ]
    return [
        Location(name, path, f"--{name}={path}" if getattr(flags, name) else f"{path} (--{name})")
        for wanted, name, path in written
        if wanted
    ]


def _filled(flags: RunFlags, actions: Actions, places: Places) -> list[Location]:
    """Folders with files that the run finds again by their names."""
    found = []
    if actions.train:
        path = os.path.join(places.output_dir, "checkpoints")
        found.append(Location("checkpoints", path, path))
    if "features_dir" in flags.values:
        path = flags.features_dir or os.path.join(places.output_dir, "features")
        found.append(Location("features_dir", path, f"{path} (--features_dir)"))
    return found


def _read(flags: RunFlags, actions: Actions) -> list[Location]:
    values = {name: flags.values.get(name) for name in table.paths_read(actions.train)}
    return [
        Location(name, path, f"--{name}={path}")
        for name, value in values.items()
        if value
        for path in paths_of(name, value)
    ]


def _other(places: list[Location], one: Location) -> list[Location]:
    """All that are not of the same sort; the runs of a sweep have names that differ."""
    return [place for place in places if place.name != one.name]


def _refuse_inside(inner: Collection[Location], outer: Location, why: str) -> None:
    for place in inner:
        if place is not outer and place.is_in(outer):
            raise InputError(
                f"{place.what} is at or in {outer.what}, {why}. Give each a folder of its own."
            )


def _check_files(read: list[Location], output_dir: str, contents: Contents) -> None:
    """No file that is read may be one that the run writes. Raises `InputError`."""
    folder = storage.real(output_dir)
    for place in read:
        above, name = os.path.split(storage.real(place.path))
        if above == folder and matches(name, contents.patterns):
            raise InputError(
                f"{place.what} is a file that the run writes. Choose another --output_dir."
            )
