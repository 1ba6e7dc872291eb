"""Generators of committed files: each turns op declarations into text."""
