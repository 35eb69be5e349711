"""Tags of words: names, parts of speech."""
