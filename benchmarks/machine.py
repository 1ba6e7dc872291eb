"""The machine a benchmark ran on: CPU model, threads, measured peak of fused multiply-adds."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

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


def peaks(count: int) -> dict[str, float]:
    """Return measured multiply-add operations per second on ``count`` threads, by element type.

    Best of five; bfloat16 only where the CPU has its dot product.
    """
    out = {"float32": max(float(_native._fma_peak(count)) for _ in range(5))}
    narrow = max(float(_native._bf16_peak(count)) for _ in range(5))
    return {**out, "bfloat16": narrow} if narrow else out


# Between the two widths at any clock rate of today: half-width units do 32 operations a cycle.
_FULL_WIDTH_FLOPS = 170e9


def is_full_width(facts: dict[str, Any]) -> bool:
    """Whether AVX-512 runs at full width, told by the measured peak of one thread."""
    return bool(facts["peak_flops_one_thread"]["float32"] > _FULL_WIDTH_FLOPS)
