"""Metrics: rows that say what is kept of a batch, and what that means."""
