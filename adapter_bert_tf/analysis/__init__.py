"""Analyses of trained adapters from the papers, as commands with figures."""
