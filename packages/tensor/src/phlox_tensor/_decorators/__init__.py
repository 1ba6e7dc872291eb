"""Devices that change or watch what others do, and the one without data."""
