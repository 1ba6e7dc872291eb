"""The machine a benchmark ran on: CPU model, threads, measured peak of fused multiply-adds."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from phlox_kernels import _native


def cpu_model() -> str:
    """Return the model name as the system tells it, with family and model numbers on x86."""
    facts: dict[str, str] = {}
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name") or platform.processor() or platform.machine()
    family = facts.get("cpu family")
    return f"{name} (family {family}, model {facts.get('model')})" if family else name


def threads() -> int:
    """Return the number of threads that phlox uses."""
    return int(_native._num_threads())


def load() -> float:
    """Return the one-minute load average; a busy machine measures little."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def peak(count: int) -> float:
    """Return measured float32 FMA operations per second on ``count`` threads, best of five."""
    return max(float(_native._fma_peak(count)) for _ in range(5))
