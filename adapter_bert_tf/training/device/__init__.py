"""Devices: which there are, and in what precision and by which compiler they compute."""
