"""Which ops run as one program, and in which order."""
