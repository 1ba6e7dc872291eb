"""Passes over the graph before it is written: what folds, what is one formula, what is tied."""
