"""From a recorded run to a Python function that does the same; and its explanation in words."""
