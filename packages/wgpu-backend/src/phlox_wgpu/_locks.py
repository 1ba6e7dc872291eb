"""Locks: of threads, or in a browser of calls, which wait in its one thread."""

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
