"""Which settings a sweep tries, and which runs it stops early."""
