"""One run: from a configuration to a plan, and from a plan to results."""
