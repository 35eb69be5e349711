"""Comparison of adapters on one development set."""
