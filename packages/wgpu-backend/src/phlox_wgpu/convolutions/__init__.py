"""Convolutions: their windows, and plans for tensor cores."""
