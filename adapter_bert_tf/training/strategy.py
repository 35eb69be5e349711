"""Which devices: a `tf.distribute` strategy from the flags."""

import tensorflow as tf
import tf_keras

from adapter_bert_tf.errors import InputError

DISTRIBUTIONS = ("auto", "one_device", "mirrored", "multi_worker", "tpu")


def make_strategy(distribution="auto", tpu_name=None, tpu_zone=None, gcp_project=None):
    """The strategy for `--distribution`; `auto` is mirrored with several GPUs, else one device.

    Raises:
      InputError: for an unknown name, or when no TPU can be reached.
    """
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
    if distribution == "multi_worker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    if distribution == "tpu":
        return _tpu_strategy(tpu_name, tpu_zone, gcp_project)
    raise InputError(f"--distribution must be one of {DISTRIBUTIONS}. Received: {distribution!r}")


def _tpu_strategy(tpu_name, tpu_zone, gcp_project):
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu_name or "", zone=tpu_zone or None, project=gcp_project or None)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, RuntimeError, OSError, tf.errors.OpError) as error:
        raise InputError(f"No TPU could be reached with --tpu_name={tpu_name!r}: {error}. "
                         "Leave out --use_tpu to run on CPU or GPU.") from error
    return tf.distribute.TPUStrategy(resolver)


def set_precision(precision):
    """Sets the compute dtype of the layers made from now on: float32 or bfloat16."""
    policies = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
    if precision not in policies:
        raise InputError(f"--precision must be one of {list(policies)}. Received: {precision!r}")
    tf_keras.mixed_precision.set_global_policy(policies[precision])
