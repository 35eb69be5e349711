"""Live adapters of many tasks on one base: added, trained, called by name, mixed in a batch."""
