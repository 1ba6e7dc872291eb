"""Plain data as steps over slots, and as a module."""
