"""What is trained, with which optimizer, on which devices, in which loop."""
