"""Typed settings: what a config is, how it is checked and read from JSON."""
