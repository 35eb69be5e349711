"""SQuAD questions: files, windows and records."""
