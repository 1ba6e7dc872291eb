"""Finding an adapter and asking it for a device."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any, Literal

from phlox_tensor import BackendUnavailableError

from ._engine import Engine, debug, driver
from ._kernel import FEATURES

_log = logging.getLogger("phlox_wgpu")

Power = Literal["high", "low"]

_TYPE_RANK = {
    "high": {"DiscreteGPU": 0, "IntegratedGPU": 1, "CPU": 3},
    "low": {"IntegratedGPU": 0, "DiscreteGPU": 1, "CPU": 3},
}
_API_RANK = {"Vulkan": 0, "Metal": 1, "D3D12": 2}
_LIMITS = (
    "max-buffer-size",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-storage-size",
    "max-compute-workgroups-per-dimension",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
)
_INSTALL_HINT = (
    "install a Vulkan driver: `apt install mesa-vulkan-drivers` (Debian, Ubuntu: AMD, Intel and "
    "software), `dnf install mesa-vulkan-drivers` (Fedora), or the vendor's; then `phlox doctor`"
)
if sys.platform == "emscripten":
    _INSTALL_HINT = (
        "open the page in a browser with WebGPU and JavaScript Promise Integration, such as Chrome "
        "or Edge from 137 on, and call Python by pyodide.runPythonAsync"
    )


def adapters(power: Power) -> list[Any]:
    """All adapters in the order of `Wgpu(i)`: real GPUs before software.

    Raises:
        BackendUnavailableError: wgpu cannot list them.
    """
    try:
        with _runtime_folder():
            found = driver.adapters()
    except RuntimeError as error:
        raise _unavailable(f"listing the adapters failed: {error}") from error
    rank = _TYPE_RANK[power]
    # Those of OpenGL fail when they are opened, or show a GPU that another API shows too.
    found = [adapter for adapter in found if adapter.info["backend_type"] != "OpenGL"]
    return sorted(one_api_each(found), key=lambda a: rank.get(a.info["adapter_type"], 2))


def one_api_each(found: list[Any]) -> list[Any]:
    """Of a GPU that several APIs show, its adapters under only the first of them."""

    def name(adapter: Any) -> tuple[Any, ...]:
        return tuple(adapter.info[key] for key in ("vendor_id", "device_id", "device"))

    best: dict[tuple[Any, ...], int] = {}
    for adapter in found:
        rank = _API_RANK.get(adapter.info["backend_type"], len(_API_RANK))
        best[name(adapter)] = min(rank, best.get(name(adapter), rank))
    return [
        adapter
        for adapter in found
        if _API_RANK.get(adapter.info["backend_type"], len(_API_RANK)) == best[name(adapter)]
    ]


@contextmanager
def _runtime_folder() -> Iterator[None]:
    """Give drivers a runtime folder where the session has none: they complain on stderr else."""
    if sys.platform != "linux" or "XDG_RUNTIME_DIR" in os.environ:
        yield
        return
    with TemporaryDirectory(prefix="phlox-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        try:
            yield
        finally:
            del os.environ["XDG_RUNTIME_DIR"]


def find(index: int, power: Power) -> Any:
    """The adapter of `Wgpu(index, power)`.

    Raises:
        BackendUnavailableError: none found, or the index is past the last one.
    """
    found = adapters(power)
    if index < len(found):
        return found[index]
    if not found:
        raise _unavailable("no GPU adapter found")
    names = ", ".join(f"{i}: {a.info['device']}" for i, a in enumerate(found))
    raise BackendUnavailableError(
        "wgpu", "no such adapter", got=index, expected=names, hint=f"px.Wgpu({len(found) - 1})"
    )


def describe() -> list[dict[str, Any]]:
    """Name, driver, type, API, limits and features of every adapter, in the order of `Wgpu(i)`.

    Raises:
        BackendUnavailableError: there is none; the hint says what to install.
    """
    found = adapters("high")
    if not found:
        raise _unavailable("no GPU adapter found")
    return [
        {
            "device": f"wgpu:{index}",
            "name": adapter.info["device"],
            "driver": adapter.info["description"],
            "type": adapter.info["adapter_type"],
            "api": adapter.info["backend_type"],
            "software": is_software(adapter.info),
            "limits": {name: adapter.limits[name] for name in _LIMITS},
            "features": [name for name in FEATURES if name in adapter.features],
        }
        for index, adapter in enumerate(found)
    ]


def is_software(info: Any) -> bool:
    """Whether an adapter is a CPU that plays a GPU."""
    return bool(info["adapter_type"] == "CPU")


def request_device(adapter: Any) -> Engine:
    """An engine on a device with the adapter's own limits and features; a note if it is software.

    Raises:
        BackendUnavailableError: the driver does not open it.
    """
    if is_software(adapter.info):
        _log.warning(
            "the adapter is software, not a GPU (slow, fine for tests): %s; "
            "install the GPU's driver, or use the Cpu backend",
            adapter.info["device"],
        )
    try:
        return driver.Engine(adapter, debug())
    except RuntimeError as error:
        what = f"the adapter {adapter.info['device']} cannot be opened: {error}"
        hint = "phlox doctor, which lists the adapters"
        raise BackendUnavailableError("wgpu", what, hint=hint) from error


def _unavailable(what: str) -> BackendUnavailableError:
    return BackendUnavailableError("wgpu", what, hint=_INSTALL_HINT)
