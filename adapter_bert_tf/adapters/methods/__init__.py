"""Adapter methods: one configuration and one module each."""
