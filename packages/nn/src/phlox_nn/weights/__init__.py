"""Weights that are computed from others, and how they are put into modules."""
