"""Nodes as lines: rows run on traced tensors, and what they do is written down."""
