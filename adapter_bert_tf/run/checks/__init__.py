"""Checks of a run that need neither model nor data."""
