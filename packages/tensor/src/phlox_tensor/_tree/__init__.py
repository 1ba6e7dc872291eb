"""Nested containers: taken apart, mapped and put together."""
