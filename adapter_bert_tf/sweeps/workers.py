"""Where the runs of a sweep are executed: `--workers` and `--parallel_trials`."""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from adapter_bert_tf.config.run_config import RunConfig
from adapter_bert_tf.config.settings import paths_read
from adapter_bert_tf.errors import Conflict, InputError
from adapter_bert_tf.retry import is_remote
from adapter_bert_tf.run.checks.paths import paths_of
from adapter_bert_tf.run.saved_settings import is_decided
from adapter_bert_tf.sanitize import preview
from adapter_bert_tf.sweeps.parallel import LocalPool, Pool, check_devices
from adapter_bert_tf.sweeps.ray_cluster import cluster
from adapter_bert_tf.sweeps.ray_cluster.pool import RayPool


class Place(NamedTuple):
    """Where runs are executed.

    Args:
      at_a_time: most runs at a time; None for as many as a cluster has room for.
      on_ray: whether on a Ray cluster, or on this machine.
      address: of the cluster; None for what Ray finds, or else for a new one on this machine.
    """

    at_a_time: int | None
    on_ray: bool = False
    address: str | None = None


def place_of(config: RunConfig) -> Place:
    """Returns where the runs of a command are executed. Raises `InputError`."""
    text, trials = config.sweeps.workers, config.sweeps.parallel_trials
    given = trials if "parallel_trials" in config.given else None
    if not text:
        return Place(trials)
    if match := re.fullmatch(r"(?:local:)?([1-9]\d{0,3})", text):
        count = int(match[1])
        if given not in (None, count):
            raise Conflict(f"--workers={text} and --parallel_trials={given} differ. Give one.")
        return Place(count)
    if text in ("ray", "auto") or re.fullmatch(r"(ray://)?(?!local:)[^\s/:]+:\d{1,5}", text):
        return Place(given, True, None if text == "ray" else text)
    raise InputError(
        f"--workers is local:N, ray, auto, ray://HOST:PORT or HOST:PORT. Received: {preview(text)}"
    )


class Workers(Protocol):
    """What executes the runs of a sweep.

    Attributes:
      precision: the fastest where the runs are executed; None if this process decides.
    """

    precision: str | None

    def check_output(self, folder: str) -> None:
        """Raises `InputError` unless all workers see what this process writes in a folder."""

    def pool(self, configs: Sequence[RunConfig], count: int) -> Pool | None:
        """Returns a pool for `count` runs; None to execute them here, one after the other."""


class LocalWorkers:
    """Processes on this machine, or this process."""

    precision: str | None = None

    def __init__(self, at_a_time: int) -> None:
        self._at_a_time = at_a_time

    def check_output(self, folder: str) -> None:
        """Processes on this machine see what it writes."""

    def pool(self, configs: Sequence[RunConfig], count: int) -> Pool | None:
        """Returns processes; None for one run at a time."""
        processes = min(self._at_a_time, count)
        return LocalPool(processes, [one.device for one in configs]) if processes > 1 else None


class RayWorkers:
    """The machines of a Ray cluster, to which this process is connected.

    Raises `InputError` for a machine that cannot execute the runs.
    """

    def __init__(self, config: RunConfig, at_a_time: int | None) -> None:
        every = cluster.machines()
        self._resources = cluster.resources_of(config.sweeps, every)
        self._machines = [one for one in every if self._resources.count_on(one)]
        room = sum(map(self._resources.count_on, self._machines))
        self._at_a_time = at_a_time or room
        paths = {  # The path of a checkpoint is the beginning of names.
            os.path.abspath(path if os.path.exists(path) else os.path.dirname(path)): name
            for name in paths_read(training=True)
            if (value := config.values.get(name))
            for path in paths_of(config.command, name, str(value))
            if not is_remote(path)
        }
        decides = not is_decided(config, "precision")
        facts = cluster.describe_all(self._machines, self._resources.gpus, [*paths], decides)
        self.precision = cluster.check_machines(facts, paths)
        hosts = ", ".join(dict.fromkeys(fact["host"] for fact in facts))
        print(
            f"Ray: {hosts}; room for {room} at a time, with {self._resources.cpus:g} CPUs and "
            f"{self._resources.gpus:g} GPUs each.",
            flush=True,
        )

    def check_output(self, folder: str) -> None:
        """Writes a file that all machines must see."""
        cluster.check_output(self._machines, folder)

    def pool(self, configs: Sequence[RunConfig], count: int) -> Pool:
        """Returns a pool of tasks."""
        return RayPool(self._resources, self._at_a_time)


@contextlib.contextmanager
def open_workers(config: RunConfig) -> Iterator[Workers]:
    """Connects to what executes the runs of a command. Raises `InputError`."""
    place = place_of(config)
    if not place.on_ray:
        check_devices(place.at_a_time or 1, [config.device])
        yield LocalWorkers(place.at_a_time or 1)
        return
    if config.device.strategy == "tpu":
        raise Conflict(
            f"--workers={config.sweeps.workers}: the runs of a Ray cluster use CPUs or GPUs. Leave "
            "out --workers or the TPU."
        )
    with cluster.connected(place.address):
        yield RayWorkers(config, place.at_a_time)
