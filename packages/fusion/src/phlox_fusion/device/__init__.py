"""The lazy device: ops that wait, and run as programs."""
