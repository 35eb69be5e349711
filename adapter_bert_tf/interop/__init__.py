"""Adapters in files of other libraries: AdapterHub's, and adapter-bert's checkpoints."""
