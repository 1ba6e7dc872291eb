"""From a table to a network that says what the weather was called."""
