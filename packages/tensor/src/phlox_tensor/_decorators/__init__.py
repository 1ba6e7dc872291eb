"""Devices that change or watch what other devices do, and ``Meta``, which has no data."""
