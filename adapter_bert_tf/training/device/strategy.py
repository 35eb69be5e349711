"""Devices: the `tf.distribute` strategy, and batches for each host."""

import importlib.metadata
import os

import tensorflow as tf

from adapter_bert_tf.data.host_shard import WHOLE_BATCH, HostShard
from adapter_bert_tf.errors import InputError, Missing, Unavailable
from adapter_bert_tf.sanitize import parse_json

DISTRIBUTIONS = ("auto", "one_device", "mirrored", "multi_worker", "tpu")


def make_strategy(distribution="auto", tpu_name=None, tpu_zone=None, gcp_project=None):
    """Makes the strategy for one of `DISTRIBUTIONS`. Raises `InputError`.

    `auto` is mirrored with several GPUs, else one device. `multi_worker` must be called before
    TensorFlow has computed anything.
    """
    if distribution == "multi_worker":
        return _multi_worker_strategy()
    gpus = tf.config.list_logical_devices("GPU")
    if distribution == "auto":
        distribution = "mirrored" if len(gpus) > 1 else "one_device"
    if distribution == "one_device":
        # Not OneDeviceStrategy: it uses a multi-device iterator, whose destructor sometimes blocks
        # for a minute at the end of `fit` (TensorFlow 2.20).
        return tf.distribute.get_strategy()
    if distribution == "mirrored":
        devices = gpus or tf.config.list_logical_devices("CPU")
        # TensorFlow 2.20 reduces by NCCL between GPUs, and by its own ring between CPUs and between
        # logical GPUs of one card, where NCCL fails. XLA takes none of the other operations that
        # `cross_device_ops` could name.
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    if distribution == "tpu":
        return _tpu_strategy(tpu_name, tpu_zone, gcp_project)
    raise InputError(
        f"distribution must be one of {DISTRIBUTIONS}. Received: {distribution!r}", "distribution"
    )


def _tpu_strategy(tpu_name, tpu_zone, gcp_project):
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu_name or "", zone=tpu_zone or None, project=gcp_project or None
        )
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, RuntimeError, OSError, tf.errors.OpError) as error:
        raise Unavailable(
            f"No TPU could be reached with tpu_name={tpu_name!r}: {error}. On a TPU VM install "
            f"\"tensorflow-tpu=={tf.__version__}\". Leave out distribution='tpu' for CPU or GPU.",
            f"tpu_name={tpu_name!r}",
            "distribution='tpu'",
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def tpu_runtime(tpu_name, tpu_zone=None, gcp_project=None):
    """The version of a TPU's software, or why it is unknown; does not use the TPU."""
    if tpu_name == "local":
        versions = {p.name: p.version for p in importlib.metadata.distributions()}
        names = [name for name in ("libtpu", "libtpu-nightly") if name in versions]
        if names:
            return f"{names[0]} {versions[names[0]]}"
        return "libtpu of the machine's image (no package)"
    if (tpu_name or "").startswith("grpc://"):
        return "runtime not known (from an address alone)"
    try:
        from cloud_tpu_client import Client

        runtime = Client(tpu_name, zone=tpu_zone, project=gcp_project).runtime_version()
    except (ImportError, ValueError, RuntimeError, OSError) as error:
        return f"runtime not known ({error})"
    return f"runtime {runtime}"


def _multi_worker_strategy():
    require_tf_config()
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        workers = os.environ["TF_CONFIG"]
        raise Unavailable(f"TF_CONFIG={workers}: no connection to the workers: {error}") from error


def require_tf_config():
    """Raises `InputError` unless `TF_CONFIG` names the workers and this worker's index."""
    text = os.environ.get("TF_CONFIG", "")
    try:
        config = parse_json(text)
        workers, task = config["cluster"]["worker"], config["task"]
        valid = task["type"] == "worker" and 0 <= int(task["index"]) < len(workers)
    except (ValueError, KeyError, TypeError):
        valid = False
    if not valid:
        raise Missing(
            "distribution='multi_worker' needs the environment variable TF_CONFIG, equal on all "
            'hosts except for the index: {"cluster": {"worker": ["host0:port", "host1:port"]}, '
            f'"task": {{"type": "worker", "index": 0}}}}. Received: {text!r}',
            "distribution='multi_worker'",
        )


def is_multi_worker(strategy):
    """Whether other processes train the same model."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def is_chief(strategy):
    """Whether this process writes files."""
    return not is_multi_worker(strategy) or not strategy.cluster_resolver.task_id


def io_device(strategy):
    """Returns the device whose host reads and writes checkpoints; None for any host."""
    # The variables of a TPU may be in another machine, which cannot read this one's files.
    return "/job:localhost" if isinstance(strategy, tf.distribute.TPUStrategy) else None


def distribute(strategy, batches):
    """Returns the batches of this host's replicas; `batches` maps a `HostShard` to a dataset."""
    if strategy.num_replicas_in_sync == 1:
        return batches(WHOLE_BATCH)
    return strategy.distribute_datasets_from_function(
        lambda context: batches(HostShard.from_context(context))
    )
