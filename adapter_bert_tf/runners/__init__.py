"""Task runners: what each type of task does at each stage of a run."""
