"""Random numbers: their state, their bits, their distributions."""
