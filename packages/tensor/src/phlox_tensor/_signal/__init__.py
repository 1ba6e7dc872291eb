"""Fourier transforms, spectrograms, filters and windows."""
