"""The report behind ``phlox doctor``: devices, drivers, limits, and what is missing."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from phlox_tensor import BackendUnavailableError, default_device
from phlox_tensor._device import backend_classes, load_class

from ._table import table

_PACKAGES = ("tensor", "autodiff", "record", "nn", "optim", "kernels", "wgpu")


def report() -> str:
    """Return the report as text."""
    return "\n\n".join([_versions(), _devices(), f"default device: {default_device()!r}"])


def _versions() -> str:
    rows = []
    for name in _PACKAGES:
        try:
            rows.append([f"phlox-{name}", version(f"phlox-{name}")])
        except PackageNotFoundError:
            rows.append([f"phlox-{name}", f"not installed; hint: pip install phlox-{name}"])
    machine = f"Python {platform.python_version()}, {platform.machine()}, {sys.platform}"
    return f"{machine}\n{table(['package', 'version'], rows)}"


def _devices() -> str:
    rows: list[list[str]] = []
    notes: list[str] = []
    for name in sorted({*backend_classes(), "numpy"}):
        try:
            rows.extend(_rows(name, load_class(name)))
        except (BackendUnavailableError, ImportError) as error:
            rows.append([name, "not available", ""])
            notes.append(str(error))
    return "\n".join([table(["device", "what", "details"], rows), *notes])


def _rows(name: str, backend: Any) -> list[list[str]]:
    """One row per device of a backend, by its own description where it has one."""
    if not hasattr(backend, "describe"):
        return [[repr(backend()), "reference" if name == "numpy" else "", ""]]
    return [
        [
            str(item.get("device", f"{backend.__name__}({i})")),
            str(item.get("name", "")),
            ", ".join(f"{k} {_short(v)}" for k, v in item.items() if k not in ("device", "name")),
        ]
        for i, item in enumerate(backend.describe())
    ]


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{k}={_short(v)}" for k, v in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return "+".join(sorted(map(str, value)))
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1 << 20:
        return f"{value / (1 << 20):,.0f} MiB" if value % (1 << 10) == 0 else f"{value:,}"
    return str(value)
