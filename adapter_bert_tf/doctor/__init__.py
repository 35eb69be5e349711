"""Checks of this machine: versions, devices, the default base, credentials and buckets."""
