"""Locks: between threads, or in a browser between calls in its only thread."""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager


def lock() -> AbstractContextManager[object]:
    """A lock that its holder may take again."""
    if sys.platform == "emscripten":
        from .browser.lock import LOCK  # noqa: PLC0415 - needs Pyodide

        return LOCK
    return threading.RLock()
