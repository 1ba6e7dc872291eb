"""Graphs of what a function did, and how they are recorded."""
