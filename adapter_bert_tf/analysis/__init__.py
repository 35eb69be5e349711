"""What trained adapters do: analyses of the papers as commands, with figures."""
