"""From a recorded run to Python that does the same; explained in words."""
