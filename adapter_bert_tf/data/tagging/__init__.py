"""Words with tags: files, schemes, windows of word pieces, batches."""
