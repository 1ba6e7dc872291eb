"""What the processor has, told to the Rust tests: then none passes without having tested it."""

from __future__ import annotations

from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
# What the tests call it, and the flags of the system that stand for it.
_WORDS = {
    "amx": {"amx_bf16", "amx_int8", "amx_tile"},
    "avx512_bf16": {"avx512_bf16"},
    "avx512_vnni": {"avx512_vnni"},
    "avx512f": {"avx512f"},
    "bf16": {"bf16"},
    "dotprod": {"asimddp"},
}


def told(cpuinfo: Path = _CPUINFO) -> dict[str, str]:
    """Return what to add to the environment; nothing where the system tells nothing."""
    if not cpuinfo.exists():
        return {}
    flags: set[str] = set()
    for line in cpuinfo.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() in {"Features", "flags"}:
            flags = set(value.split())
            break
    return {"PHLOX_TEST_HAS": ",".join(word for word, needs in _WORDS.items() if needs <= flags)}
