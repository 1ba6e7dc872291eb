"""Graphs of elementwise ops as programs that a device runs as one kernel."""
