"""What a run of a function does, and what it reads besides its arguments."""
