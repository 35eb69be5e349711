"""Many runs of one command: grids, seeds and folds."""
