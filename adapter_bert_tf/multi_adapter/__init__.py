"""Many tasks on one base, live: added, trained, called by name, mixed in one batch."""
