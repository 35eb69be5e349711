"""Starts a command of this project on several logical CPU devices.

python tests/launch.py DEVICES run_classifier.py --flag=value ...
"""

import runpy
import sys

import tensorflow as tf

if __name__ == "__main__":
    cpu = tf.config.list_physical_devices("CPU")[0]
    devices = [tf.config.LogicalDeviceConfiguration() for _ in range(int(sys.argv[1]))]
    tf.config.set_logical_device_configuration(cpu, devices)
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
