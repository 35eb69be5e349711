"""Entry points: what a command or `abt.train` starts."""
