"""The file that says who makes a run, on which machine, and what state it is in."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

NAME: Final = "run.json"
_PACKAGES: Final = ("phlox", "phlox-train", "phlox-kernels", "phlox-wgpu", "numpy")


def card_of(parts: Iterable[Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return what is known of a run when it starts, or goes on after another start."""
    now = moment()
    return {
        "state": "running",
        "reason": "",
        "began": before.get("began", now),
        "started": now,
        "ended": None,
        "starts": before.get("starts", 0) + 1,
        "command": sys.argv,
        "host": platform.node(),
        "process": os.getpid(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "packages": dict(_versions()),
        "devices": [repr(part.device) for part in parts if hasattr(part, "device")],
    }


def moment() -> str:
    """Return the time of the day, for people; nothing is measured by it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> Iterable[tuple[str, str]]:
    for name in _PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue
