"""Which devices: a `tf.distribute` strategy, and what each host gets to do."""

import importlib.metadata
import os

import tensorflow as tf
import tf_keras

from adapter_bert_tf.data.host_shard import WHOLE, HostShard
from adapter_bert_tf.errors import InputError
from adapter_bert_tf.sanitize import parse_json

DISTRIBUTIONS = ("auto", "one_device", "mirrored", "multi_worker", "tpu")


def make_strategy(distribution="auto", tpu_name=None, tpu_zone=None, gcp_project=None):
    """The strategy for a `distribution`; `auto` is mirrored with several GPUs, else one device.

    Several workers must be asked for before TensorFlow has computed anything.

    Raises:
      InputError: for an unknown name, when no TPU can be reached, or without `TF_CONFIG`.
    """
    if distribution == "multi_worker":
        return _multi_worker_strategy()
    gpus = tf.config.list_logical_devices("GPU")
    if distribution == "auto":
        distribution = "mirrored" if len(gpus) > 1 else "one_device"
    if distribution == "one_device":
        # The default strategy. OneDeviceStrategy does the same through a multi-device iterator,
        # whose destructor sometimes blocks for a minute at the end of `fit` (TensorFlow 2.20).
        return tf.distribute.get_strategy()
    if distribution == "mirrored":
        devices = gpus or tf.config.list_logical_devices("CPU")
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
        raise InputError(
            f"No TPU could be reached with tpu_name={tpu_name!r}: {error}. "
            "Leave out distribution='tpu' to run on CPU or GPU. On a TPU VM TensorFlow must be "
            f'pip install "tensorflow-tpu=={tf.__version__}".',
            f"tpu_name={tpu_name!r}",
            "distribution='tpu'",
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def tpu_runtime(tpu_name, tpu_zone=None, gcp_project=None):
    """The version of a TPU's software, or why it is not known; nothing is computed on it.

    Of a TPU in this machine it is that of the package libtpu, of another what Google Cloud says.
    """
    if tpu_name == "local":
        versions = {found.name: found.version for found in importlib.metadata.distributions()}
        return next(
            (
                f"{name} {versions[name]}"
                for name in ("libtpu", "libtpu-nightly")
                if name in versions
            ),
            "libtpu of the machine's image (no package)",
        )
    if (tpu_name or "").startswith("grpc://"):
        return "runtime not known (an address does not say it)"
    try:
        from cloud_tpu_client import Client

        runtime = Client(tpu_name, zone=tpu_zone, project=gcp_project).runtime_version()
    except (ImportError, ValueError, RuntimeError, OSError) as error:
        return f"runtime not known ({error})"
    return f"runtime {runtime}"


def _multi_worker_strategy():
    check_tf_config()
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise InputError(
            f"The workers of TF_CONFIG={os.environ['TF_CONFIG']} could not be connected: {error}"
        ) from error


def check_tf_config():
    """`TF_CONFIG` must name the workers and say which one this is. Raises `InputError`."""
    text = os.environ.get("TF_CONFIG", "")
    try:
        config = parse_json(text)
        workers, task = config["cluster"]["worker"], config["task"]
        right = task["type"] == "worker" and 0 <= int(task["index"]) < len(workers)
    except (ValueError, KeyError, TypeError):
        right = False
    if not right:
        raise InputError(
            "distribution='multi_worker' needs the environment variable TF_CONFIG, the same on all "
            'hosts but for the index: {"cluster": {"worker": ["host0:port", "host1:port"]}, '
            f'"task": {{"type": "worker", "index": 0}}}}. Received: {text!r}',
            "distribution='multi_worker'",
        )


def one_of_several(strategy):
    """Whether other processes train the same model."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def is_chief(strategy):
    """Whether this process is the one that writes files."""
    return not one_of_several(strategy) or not strategy.cluster_resolver.task_id


def io_device(strategy):
    """The device whose host has the checkpoints' files; None if all have."""
    # The variables of a TPU may be in another machine, which cannot see this one's files.
    return "/job:localhost" if isinstance(strategy, tf.distribute.TPUStrategy) else None


def distribute(strategy, batches):
    """The batches that `batches`, a function of a `Share`, makes for this host's replicas."""
    if strategy.num_replicas_in_sync == 1:
        return batches(WHOLE)
    return strategy.distribute_datasets_from_function(
        lambda context: batches(HostShard.of(context))
    )


# By name: tf_keras' policy, and what the products with the base's kernels are computed in.
PRECISIONS = {
    "float32": ("float32", None),
    "bfloat16": ("mixed_bfloat16", None),
    "bfloat16_base": ("float32", "bfloat16"),
}


def set_precision(precision):
    """Sets the compute dtype of the layers made from now on, by a name in `PRECISIONS`."""
    if precision not in PRECISIONS:
        raise InputError(
            f"precision must be one of {list(PRECISIONS)}. Received: {precision!r}", "precision"
        )
    tf_keras.mixed_precision.set_global_policy(PRECISIONS[precision][0])
