"""Loads every hostile file of a folder under a memory cap; prints what happened as JSON.

Run by test_attacks.py in a process of its own: the cap would outlive the test.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from phlox_onnx import OnnxError, load, source

HEADROOM = 200 << 20


def cap_memory() -> bool:
    """Let this process grow by HEADROOM at most; False where the system cannot do that."""
    status = Path("/proc/self/status")
    if not status.exists():
        return False
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    now = int(lines["VmSize"].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_AS, (now + HEADROOM, now + HEADROOM))
    return True


def read(path: Path, how: Callable[..., Any]) -> dict[str, object]:
    outcome, message = "accepted", ""
    start = time.process_time()
    try:
        how(path)
    except OnnxError as error:
        outcome, message = "refused", str(error)
    except BaseException as error:
        outcome, message = type(error).__name__, str(error)[:500]
    seconds = time.process_time() - start
    return {"outcome": outcome, "message": message, "seconds": seconds}


def main(folder: str, *names: str) -> None:
    capped = cap_memory()
    found = {
        f"{how.__name__} {name}": read(Path(folder, name), how)
        for how in (load, source)
        for name in names
    }
    print(json.dumps({"capped": capped, "found": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
