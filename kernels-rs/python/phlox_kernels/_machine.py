"""The processor that the kernels run on: model, caches, instruction sets, measured peaks."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Final

from phlox_kernels import _native

_CPUINFO: Final = Path("/proc/cpuinfo")
_CACHES: Final = Path("/sys/devices/system/cpu/cpu0/cache")
# Units that multiply bfloat16.
_NARROW: Final = frozenset({"amx_bf16", "avx512_bf16", "bf16"})
# What kernels could use, by the system's names.
_KNOWN: Final = (
    "amx_bf16",
    "amx_int8",
    "asimd",
    "asimddp",
    "avx2",
    "avx512_bf16",
    "avx512_vnni",
    "avx512bw",
    "avx512dq",
    "avx512f",
    "avx512vl",
    "bf16",
    "f16c",
    "fma",
    "sse2",
)


def cpu_model() -> str:
    """Return the model name as the system tells it, with family and model numbers on x86."""
    facts = _facts()
    name = facts.get("model name") or platform.processor() or platform.machine()
    family = facts.get("cpu family")
    return f"{name} (family {family}, model {facts.get('model')})" if family else name


def threads() -> int:
    """Return the number of threads that kernels use."""
    return int(_native._num_threads())


def cores() -> str:
    """Return how many processors the machine has, and how many this process may use."""
    there = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    limits = [] if usable == there else [f"of which this process may use {usable}"]
    share = quota()
    if share is not None and share < usable:
        limits.append(f"for the time of {share:g}")
    return ", ".join([str(there), *limits])


def quota(system: Path = Path("/")) -> float | None:
    """Return how many processors' time the control group of this process has; None for no limit.

    Kernels take as many threads as there are whole ones in it, one at least. Groups of either
    version of Linux are read, and those that they lie in.
    """
    shares = []
    groups = system / "proc/self/cgroup"
    for line in groups.read_text().splitlines() if groups.exists() else []:
        _, controllers, place = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = system / "sys/fs/cgroup" / ("cpu" if controllers else "")
        here = Path(place.lstrip("/"))
        for folder in (here, *here.parents):
            share = _share(mount / folder)
            shares += [] if share is None else [share]
    return min(shares, default=None)


def _share(folder: Path) -> float | None:
    """The limit of one group: a word or -1 stands for none."""
    try:
        if (folder / "cpu.max").exists():
            limit, period = (folder / "cpu.max").read_text().split()
        else:
            limit = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
    except OSError:
        return None
    return int(limit) / int(period) if limit.isdigit() else None


def caches() -> str:
    """Return the sizes of data caches as the system tells them; "unknown" where it does not."""
    found = {}
    for folder in sorted(_CACHES.glob("index*")):
        kind = (folder / "type").read_text().strip()
        if kind != "Instruction":
            found["L" + (folder / "level").read_text().strip()] = (folder / "size").read_text()
    return ", ".join(f"{name} {size.strip()}" for name, size in found.items()) or "unknown"


def used_cache() -> str:
    """Return the size of the second-level cache that kernels cut their blocks for.

    The processor tells it, else the system, else 1 MiB is assumed.
    """
    return f"L2 {_native._second_level() >> 10}K"


def instruction_sets() -> list[str]:
    """Return those instruction sets of this processor that kernels could use."""
    facts = _facts()
    flags = set((facts.get("flags") or facts.get("Features") or "").split())
    return sorted(flags.intersection(_KNOWN))


def used_instruction_sets() -> list[str]:
    """Return the instruction sets that kernels use; ``PHLOX_SIMD`` lowers them."""
    return list(_native._simd())


def ways() -> dict[str, str]:
    """Return, for each computation with several ways, their names in the order they are asked."""
    return {f"ways of {op}": " > ".join(names) for op, names, _ in _native._ways()}


def peaks(count: int, clock: Callable[[], float] = perf_counter) -> dict[str, float]:
    """Return measured multiply-add operations per second on ``count`` threads, by element type.

    Best of five; bfloat16 only where kernels use a unit for it, since it is widened elsewhere.
    Seconds are those of ``clock``, which is the one of what is held against the peak.
    """
    out = {"float32": max(_rate(_native._fma_peak, count, clock) for _ in range(5))}
    if _NARROW.isdisjoint(used_instruction_sets()):
        return out
    return {**out, "bfloat16": max(_rate(_native._bf16_peak, count, clock) for _ in range(5))}


def _rate(measure: Callable[[int], float], count: int, clock: Callable[[], float]) -> float:
    """A rate that the kernels measure by wall time, by another clock."""
    wall, start = perf_counter(), clock()
    found = float(measure(count))
    seconds = clock() - start
    return found * (perf_counter() - wall) / seconds


def _facts() -> dict[str, str]:
    """What the system says of the first processor."""
    facts: dict[str, str] = {}
    if _CPUINFO.exists():
        for line in _CPUINFO.read_text().splitlines():
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    return facts
