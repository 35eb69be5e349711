"""What a run trains: from settings or a saved adapter to a `Method`."""
