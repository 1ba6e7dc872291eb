"""The report behind ``phlox doctor``: devices, drivers, limits, and what is missing."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from phlox_tensor import PhloxError, default_device
from phlox_tensor._device.finding import backend_classes, load_class

from ._extras import EXTRAS
from ._table import table

_PACKAGES = ("tensor", "autodiff", "record", "nn", "optim", "fusion", "kernels", *EXTRAS)


def report(*, peaks: bool = False) -> str:
    """Return the report as text; with ``peaks``, what devices measure about themselves too.

    Other work on the machine lowers peaks, so the load that it had before stands beside them.
    """
    load = [_load()] if peaks else []
    return "\n\n".join([_versions(), _devices(peaks), *load, f"default device: {_default()}"])


def _load() -> str:
    """Processes that ran or waited to run, on average; and how many can run at once."""
    try:
        means = ", ".join(f"{mean:.1f}" for mean in os.getloadavg())
    except (AttributeError, OSError):  # Windows keeps none
        return "load: unknown; peaks are those of the machine only while it is idle"
    return (
        f"load: {means} over 1, 5 and 15 minutes, on {os.cpu_count()} processors; "
        "peaks are those of the machine only while it is idle"
    )


def _default() -> str:
    try:
        return repr(default_device())
    except PhloxError as error:
        return str(error)


def _versions() -> str:
    rows = []
    for name in _PACKAGES:
        try:
            rows.append([f"phlox-{name}", version(f"phlox-{name}")])
        except PackageNotFoundError:
            rows.append([f"phlox-{name}", f'not installed; hint: pip install "{_wanted(name)}"'])
    machine = f"Python {platform.python_version()}, {platform.machine()}, {sys.platform}"
    return f"{machine}\n{table(['package', 'version'], rows)}"


def _wanted(name: str) -> str:
    return f"phlox[{name}]" if name in EXTRAS else f"phlox-{name}"


def _devices(peaks: bool) -> str:
    rows: list[list[str]] = []
    details: list[str] = []
    for name in sorted({*backend_classes(), "numpy"}):
        try:
            backend: Any = load_class(name)
            measured = backend.measured() if peaks and hasattr(backend, "measured") else {}
            for item in _described(name, backend):
                item.update(measured)
                rows.append([item.pop("device"), item.pop("name")])
                details.extend(_lines(rows[-1][0], item))
        # A setting that a backend refuses is what the reader of this report looks for.
        except (ImportError, PhloxError) as error:
            rows.append([name, "not available"])
            details.append(str(error))
    return "\n\n".join([table(["device", "what"], rows), "\n".join(details)])


def _described(name: str, backend: Any) -> list[dict[str, Any]]:
    """The devices of a backend, by its own description where it has one."""
    if hasattr(backend, "describe"):
        return [{"device": name, "name": "", **item} for item in backend.describe()]
    return [{"device": repr(backend()), "name": "reference" if name == "numpy" else ""}]


def _lines(device: str, facts: dict[str, Any]) -> list[str]:
    """The facts about a device, one to a line."""
    flat: dict[str, Any] = {}
    for key, value in facts.items():
        flat.update(value if isinstance(value, dict) else {key: value})
    return [f"{device}  {key}: {_short(value)}" for key, value in flat.items()]


def _short(value: Any) -> str:
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(sorted(map(str, value)))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and value >= 1 << 20:
        return f"{value / (1 << 20):,.0f} Mi"
    return str(value)
