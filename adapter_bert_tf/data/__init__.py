"""From text to batches: files, tokenization, batches of examples of similar length."""
