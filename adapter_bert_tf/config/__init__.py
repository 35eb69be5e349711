"""The configuration of a run: one table of settings, defaults and checks; no TensorFlow."""
