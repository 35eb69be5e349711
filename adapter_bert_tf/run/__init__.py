"""One run of a command: flags, the job, and what it leaves behind."""
