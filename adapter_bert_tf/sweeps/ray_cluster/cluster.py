"""The connection to a Ray cluster, and checks of its machines before the first run."""

import contextlib
import json
import math
import os
import signal
import socket
import threading
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from adapter_bert_tf import storage
from adapter_bert_tf.config.sections.command import SweepsConfig
from adapter_bert_tf.errors import InputError, Mismatch, NotFound, Unavailable
from adapter_bert_tf.output.provenance import installed_versions
from adapter_bert_tf.retry import is_remote
from adapter_bert_tf.sanitize import truncate
from adapter_bert_tf.sweeps.messages import Setup
from adapter_bert_tf.sweeps.ray_cluster import task

SECONDS_TO_CONNECT = 10.0
SECONDS_TO_DESCRIBE = 180.0
# A run sends a few lines, which Ray keeps in memory; its default is a third of the machine.
OBJECT_STORE_BYTES = 200 * 2**20
# Ray 2.60 protects a cluster if its machine has a token, and drivers do not send theirs without it.
AUTHENTICATION = "RAY_AUTH_MODE=token"
# Read when Ray is imported: each line of a run once, after the name of its run, without colours.
ENVIRONMENT = {
    "RAY_DEDUP_LOGS": "0",
    "RAY_COLOR_PREFIX": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


class Machine(NamedTuple):
    """A machine of the cluster.

    Args:
      id: Ray's.
      address: of the machine.
      cpus, gpus: that Ray may use there.
    """

    id: str
    address: str
    cpus: float
    gpus: float


class Resources(NamedTuple):
    """What Ray reserves for a run."""

    cpus: float
    gpus: float

    def count_on(self, machine: Machine) -> int:
        """Returns how many runs a machine has room for."""
        parts = ((machine.cpus, self.cpus), (machine.gpus, self.gpus))
        rooms = [math.floor(there / taken + 1e-9) for there, taken in parts if taken]
        return min(rooms, default=1)


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Connects to a cluster, which is left again at the end. Raises `InputError`.

    Args:
      address: of the cluster; None for what Ray finds, or else for a new one on this machine.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise Unavailable('--workers needs Ray: pip install "adapter_bert_tf[ray]".') from error
    if ray.is_initialized():  # By the user's program.
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _connect(ray, address)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray has replaced it.
        yield
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str | None) -> None:
    given = address or os.environ.get("RAY_ADDRESS")
    common = {"logging_level": "error", "log_to_driver": True}
    if given and given not in ("auto", "local"):
        _require_open(given)
    try:
        if given != "local":
            with contextlib.suppress(*([] if given else [ConnectionError])):
                ray.init(given or "auto", **common)
                return
        ray.init("local", include_dashboard=False, object_store_memory=OBJECT_STORE_BYTES, **common)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = truncate(" ".join(str(error).split()), 400)
        hint = f" If it asks for a token, set {AUTHENTICATION} here too." if given else ""
        raise Unavailable(f"--workers={given or 'ray'}: {reason}.{hint}") from error


def _require_open(address: str) -> None:
    """Raises `InputError` if nothing listens at an address, for which Ray waits for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), SECONDS_TO_CONNECT).close()
    except (OSError, ValueError) as error:
        raise Unavailable(
            f"--workers={address}: there is no Ray cluster: {error}. `ray start --head` starts "
            "one; its port is 6379, that of ray:// is 10001."
        ) from error


def machines() -> list[Machine]:
    """Returns the machines of the cluster that may execute runs."""
    import ray

    found = []
    for node in ray.nodes():
        have = node["Resources"]
        if node["Alive"] and have.get("CPU", 0) > 0:
            place = (node["NodeID"], node["NodeManagerAddress"])
            found.append(Machine(*place, have["CPU"], have.get("GPU", 0)))
    return found


def resources_of(config: SweepsConfig, found: Sequence[Machine]) -> Resources:
    """Returns what a run takes; by default a GPU with its share of the CPUs, or a whole machine.

    Raises `InputError` if no machine has so much.
    """
    gpus = config.gpus_per_trial
    if gpus is None:
        gpus = 1.0 if any(machine.gpus >= 1 for machine in found) else 0.0
    cpus = config.cpus_per_trial
    if cpus is None:
        having = [machine for machine in found if machine.gpus >= gpus]
        shares = [one.cpus / max(one.gpus / gpus, 1) if gpus else one.cpus for one in having]
        cpus = float(max(math.floor(min(shares, default=1.0)), 1))
    resources = Resources(cpus, gpus)
    if not any(resources.count_on(machine) for machine in found):
        each = "; ".join(f"{one.address}: {one.cpus:g}, {one.gpus:g}" for one in found[:10])
        raise Unavailable(
            f"No machine of the Ray cluster has the {cpus:g} CPUs and {gpus:g} GPUs of a run "
            f"(CPUs, GPUs: {each or 'no machine'}). Lower --cpus_per_trial or --gpus_per_trial."
        )
    return resources


def describe_all(
    found: Sequence[Machine], gpus: float, paths: Sequence[str], decides: bool
) -> list[dict[str, Any]]:
    """Returns what each machine reports of itself; see `task.describe`. Raises `InputError`."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    hidden = {} if gpus else {"CUDA_VISIBLE_DEVICES": "-1"}
    environment = Setup.of_this_process(None).environment | hidden
    remote = ray.remote(task.describe)
    replies = []
    for machine in found:
        there = NodeAffinitySchedulingStrategy(machine.id, soft=False)
        options = {"num_cpus": 0, "num_gpus": gpus if decides else 0, "max_retries": 0}
        chosen = remote.options(scheduling_strategy=there, name="describe", **options)
        replies.append(chosen.remote(environment, list(paths), decides))
    facts = []
    for machine, reply in zip(found, replies, strict=True):
        try:
            facts.append(json.loads(ray.get(reply, timeout=SECONDS_TO_DESCRIBE)))
        except ray.exceptions.RayError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise Unavailable(
                f"The machine {machine.address} of the Ray cluster cannot execute runs: "
                f"{truncate(lines[-1] if lines else repr(error), 300)}. Install the same version "
                "of adapter_bert_tf in the environment of `ray start` there."
            ) from error
    return facts


def check_machines(facts: Sequence[dict[str, Any]], paths: dict[str, str]) -> str | None:
    """Returns the fastest precision of all machines, if they report it.

    Args:
      facts: of each machine.
      paths: dict from a path that the runs read to its flag.

    Raises:
      InputError: for other versions than here, paths that are missing, or different precisions.
    """
    here = installed_versions()
    for fact in facts:
        others = {n: v for n, v in fact["versions"].items() if _comparable(n, v, here)}
        if others:
            there = ", ".join(f"{name} {version}" for name, version in others.items())
            own = ", ".join(f"{name} {here[name]}" for name in others if name in here)
            raise Mismatch(
                f"The machine {fact['host']} of the Ray cluster has {there}; this command has "
                f"{own}. Install the same versions there."
            )
        if fact["missing"]:
            flags = ", ".join(f"--{paths[path]}={path}" for path in fact["missing"])
            raise NotFound(
                f"The machine {fact['host']} of the Ray cluster does not have {flags}. Use a file "
                "system that all machines share, or a bucket (gs://)."
            )
    precisions = {fact["precision"]: fact["host"] for fact in facts if "precision" in fact}
    if len(precisions) > 1:
        each = ", ".join(f"{name} on {host}" for name, host in precisions.items())
        raise Mismatch(f"--precision=auto differs among the machines: {each}. Choose one.")
    return next(iter(precisions), None)


def _comparable(name: str, version: str, here: dict[str, str]) -> bool:
    """Whether a version is another than here; of Python the last number does not count."""
    if name == "python":
        return version.split(".")[:2] != here[name].split(".")[:2]
    return version != here.get(name)


def check_output(found: Sequence[Machine], folder: str) -> None:
    """Raises `InputError` unless all machines see a file that this process writes."""
    marker = os.path.join(folder, f".writable.{uuid.uuid4().hex[:8]}.tmp")
    storage.write_text(marker, "")
    try:
        path = marker if is_remote(marker) else os.path.abspath(marker)
        facts = describe_all(found, 0, [path], False)
    finally:
        with contextlib.suppress(OSError, InputError):
            storage.remove(marker)
    if blind := [fact["host"] for fact in facts if fact["missing"]]:
        raise NotFound(
            f"The machine {blind[0]} of the Ray cluster does not see --output_dir={folder}. Use a "
            "file system that all machines share, or a bucket (gs://)."
        )
