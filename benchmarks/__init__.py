"""Benchmarks: phlox beside PyTorch, interleaved in one run, with the machine's measured peak."""
