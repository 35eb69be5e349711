"""New adapters from saved ones, without training."""
