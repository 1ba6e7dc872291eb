"""Reads every hostile file of a folder under a memory cap; prints what happened as JSON.

Run by test_attacks.py in a process of its own: the cap would outlive the test.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import phlox_record as pr
import phlox_tensor as pt

HEADROOM = 320 << 20
LIMITS = pr.Limits(json_bytes=48 << 20)
LIKE: Any = {"w": pt.asarray(np.zeros(2, np.float32), device=pt.Numpy())}


def cap_memory() -> bool:
    """Let this process grow by HEADROOM at most; False where the system cannot do that."""
    try:
        import resource
    except ImportError:
        return False
    status = Path("/proc/self/status")
    if not status.exists():
        return False
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    now = int(lines["VmSize"].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_AS, (now + HEADROOM, now + HEADROOM))
    return True


def recorder_for(name: str) -> pr.Recorder:
    kinds = (
        pr.CompactMsgpackGzRecorder,
        pr.CompactMsgpackRecorder,
        pr.GgufRecorder,
        pr.JsonGzRecorder,
        pr.JsonRecorder,
        pr.NamedMsgpackGzRecorder,
        pr.NamedMsgpackRecorder,
        pr.NpzRecorder,
        pr.PyTorchRecorder,
        pr.SafetensorsRecorder,
    )
    return next(k for k in kinds if name.endswith(k.extension))(limits=LIMITS)


def read(path: Path) -> dict[str, object]:
    gc.collect()
    outcome, message = "accepted", ""
    start = time.perf_counter()
    try:
        recorder_for(path.name).load(path, device=pt.Numpy(), like=LIKE)
    except pr.RecordError as error:
        outcome, message = "refused", str(error)
    except BaseException as error:
        outcome, message = type(error).__name__, str(error)[:500]
    seconds = time.perf_counter() - start
    return {"outcome": outcome, "message": message, "seconds": seconds}


def main(folder: str) -> None:
    capped = cap_memory()
    found = {path.name: read(path) for path in sorted(Path(folder).iterdir())}
    print(json.dumps({"capped": capped, "found": found}))


if __name__ == "__main__":
    main(sys.argv[1])
