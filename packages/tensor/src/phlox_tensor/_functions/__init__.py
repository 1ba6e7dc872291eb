"""Functions and methods that users call."""
