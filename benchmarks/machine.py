"""The machine a benchmark ran on: CPU model, threads, load, measured peaks."""

from __future__ import annotations

import os
import sys
from typing import Any

from phlox_kernels._machine import cpu_model, peaks, threads

__all__ = ["cpu_model", "is_full_width", "load", "peaks", "threads", "use_one_thread"]


def load() -> float:
    """Return the one-minute load average; a busy machine measures little."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


_ONE_THREAD = {
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PHLOX_NUM_THREADS": "1",
}


def use_one_thread() -> None:
    """Start this program again with one thread for all libraries, unless it was started so."""
    if any(os.environ.get(name) != count for name, count in _ONE_THREAD.items()):
        os.environ |= _ONE_THREAD
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]])


# Between the two widths at any clock rate of today: half-width units do 32 operations a cycle.
_FULL_WIDTH_FLOPS = 170e9


def is_full_width(facts: dict[str, Any]) -> bool:
    """Whether AVX-512 runs at full width, told by the measured peak of one thread."""
    return bool(facts["peak_flops_one_thread"]["float32"] > _FULL_WIDTH_FLOPS)
