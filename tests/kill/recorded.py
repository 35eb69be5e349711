"""A run whose every change of a file is a point at which it might have been killed."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from tests.kill import scenes
from tests.runs import ROOT

SOURCE = pathlib.Path(__file__).parent / "stops.c"
KILLED = 137


def compiler():
    """The C compiler that makes the library which sees file operations, or None."""
    return shutil.which("cc") or shutil.which("gcc")


class Recorded:
    """A scene that has run once, with a copy of its folder at each point.

    Args:
      scene: `Scene`.
      folder: an empty folder for all of this.

    Attributes:
      points: dict from a title to the folder that a kill there leaves; equal ones are there once.
      count: number of points, equal ones too.
    """

    def __init__(self, scene, folder):
        self.scene, self.folder = scene, folder
        self.root, self.states = folder / "root", folder / "states"
        self.flags = [*scene.flags, *scenes.inputs(scene, folder)]
        self.flags.append(f"--output_dir={self.root / 'out'}")
        self.library = folder / "stops.so"
        subprocess.run(
            [compiler(), "-shared", "-fPIC", "-o", self.library, SOURCE, "-ldl", "-lpthread"],
            check=True,
        )
        self.states.mkdir()
        self._prepare()
        self._run(self.flags, KILL_STATES=self.states)
        self.root.rename(folder / "whole")
        self._read_points()

    def _prepare(self):
        """The folder as it is before the run, which is kept for runs that are killed."""
        scenes.write_foreign(self.root)
        if self.scene.before:
            paths = self.flags[len(self.scene.flags) :]
            self._run([*self.scene.before, *paths])
        shutil.copytree(self.root, self.folder / "before")

    def _run(self, flags, status=0, **points):
        """Runs the command in a process; `points` is what the library is told, if anything."""
        watched = {"KILL_ROOT": self.root, "LD_PRELOAD": self.library} | points if points else {}
        done = subprocess.run(
            [sys.executable, f"{self.scene.script}.py", *flags],
            cwd=ROOT,
            env=os.environ | {name: str(value) for name, value in watched.items()},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr

    def _read_points(self):
        lines = (self.states / "points").read_text().splitlines()
        self.points, self.count, seen = {}, len(lines), set()
        for line in lines:
            number, operation = line.split(" ", 1)
            state = _digest(self.states / number)
            if state not in seen:
                seen.add(state)
                self.points[f"{number} {operation.replace(f'{self.root}/', '')}"] = str(
                    self.states / number
                )
            else:
                shutil.rmtree(self.states / number)

    def kill(self, number):
        """The folder that a run leaves which dies at a point, and does not only pass it."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.folder / "before", self.root)
        self._run(self.flags, KILLED, KILL_AT=number)
        left = self.states / f"killed-{number}"
        self.root.rename(left)
        return str(left)

    def restart(self, points, each=25):
        """Starts the command again at some points; the lines that say how it ended, as they come.

        Args:
          points: dict from title to folder.
          each: points a process: TensorFlow gives no memory back.
        """
        titles = list(points)
        for begin in range(0, len(titles), each):
            some = {title: points[title] for title in titles[begin : begin + each]}
            yield from self._restart_in_process(some)

    def _restart_in_process(self, points):
        names = {"root": self.root, "whole": self.folder / "whole", "log": self.folder / "log"}
        plan = {name: str(path) for name, path in names.items()}
        plan |= {"script": self.scene.script, "flags": self.flags, "points": points}
        path = self.folder / "plan.json"
        path.write_text(json.dumps(plan))
        command = [sys.executable, "-m", "tests.kill.restart", str(path)]
        with subprocess.Popen(
            command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            yield from (line.rstrip() for line in process.stdout)
        assert process.returncode == 0, (self.folder / "log").read_text()[-3000:]


def _digest(folder):
    """Of names and bytes of all files below a folder, but TensorBoard's and times in the lock."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if re.search(r"events\.out\.tfevents", name):
            continue
        digest.update(f"\n{name}\n".encode())
        if path.is_file():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
