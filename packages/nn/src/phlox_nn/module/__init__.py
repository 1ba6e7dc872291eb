"""Modules: what all of them do, and functions over them."""
