"""Weights that are computed from others, and how they are exchanged."""
