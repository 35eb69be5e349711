"""The command line: flags, config files, signals, exit codes; no TensorFlow."""
