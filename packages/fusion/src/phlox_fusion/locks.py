"""Locks that a forked process finds free, whatever other threads held."""

from __future__ import annotations

import os
from threading import RLock
from typing import Final


def lock_beyond_forks() -> RLock:
    """Return a lock that no code of the user's runs under: a fork waits until it is free."""
    made = RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=made.acquire, after_in_parent=made.release, after_in_child=made.release
        )
    return made


# Held while versions are made and put away; other threads go on with those that there are.
KEEPING: Final = lock_beyond_forks()
