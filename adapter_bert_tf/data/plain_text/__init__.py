"""Plain text without labels: files, packed sequences of word pieces, masks."""
