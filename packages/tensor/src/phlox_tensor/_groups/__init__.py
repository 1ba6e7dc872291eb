"""Processes that work together: what carries bytes between them, and sums in one order."""
