"""SavedModels from raw text to answers: one task, or many on one base."""
