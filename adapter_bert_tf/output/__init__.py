"""The output folder of a run: locks, ownership, files, cleanup."""
