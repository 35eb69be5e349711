"""Runs of a sweep on the machines of a Ray cluster."""
