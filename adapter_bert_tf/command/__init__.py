"""The command line: one table of flags, config files, signals and exit codes; no TensorFlow."""
