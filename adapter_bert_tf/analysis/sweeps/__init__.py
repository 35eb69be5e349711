"""Analyses that train: adapter size, initial scale and variants."""
