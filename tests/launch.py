"""Starts a command of this project on several logical devices of the CPU, or of one GPU.

python tests/launch.py DEVICES run_classifier.py --flag=value ...
python tests/launch.py gpu:DEVICES run_classifier.py --flag=value ...
"""

import runpy
import sys

import tensorflow as tf

MEGABYTES = 4096  # Of each logical GPU.

if __name__ == "__main__":
    kind, _, count = sys.argv[1].rpartition(":")
    whole = tf.config.list_physical_devices(kind.upper() or "CPU")[0]
    limit = MEGABYTES if kind else None
    parts = [tf.config.LogicalDeviceConfiguration(memory_limit=limit) for _ in range(int(count))]
    tf.config.set_logical_device_configuration(whole, parts)
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
