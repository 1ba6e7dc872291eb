"""A run: a folder with a log and checkpoints, and the loop that goes on from it."""
