"""Finding an adapter and asking it for a device."""

from __future__ import annotations

import logging
from typing import Any, Literal

import wgpu
from phlox_tensor import BackendUnavailableError

_log = logging.getLogger("phlox_wgpu")

Power = Literal["high", "low"]

_POWER = {"high": "high-performance", "low": "low-power"}
_WANTED_FEATURES = ("shader-f16", "subgroup", "timestamp-query")
_TYPE_RANK = {"DiscreteGPU": 0, "IntegratedGPU": 1, "CPU": 3}
_INSTALL_HINT = (
    "install a Vulkan driver: `apt install mesa-vulkan-drivers` (Debian, Ubuntu; software or AMD/Intel), "
    "`dnf install mesa-vulkan-drivers` (Fedora), or the vendor's driver; then run `phlox doctor`"
)


def adapters() -> list[Any]:
    """All adapters, best first: real GPUs before software, native APIs before OpenGL. The index of `Wgpu(i)`."""
    try:
        found = list(wgpu.gpu.enumerate_adapters_sync())
    except RuntimeError as error:
        raise _unavailable(f"listing the adapters failed: {error}") from error
    native = [a for a in found if a.info["backend_type"] != "OpenGL"] or found
    return sorted(native, key=lambda a: _TYPE_RANK.get(a.info["adapter_type"], 2))


def find(index: int | None, power: Power) -> Any:
    """The adapter of `Wgpu(index, power)`.

    Raises:
        BackendUnavailableError: none found, or the index is past the last one.
    """
    if index is not None:
        found = adapters()
        if index >= len(found):
            names = ", ".join(f"{i}: {a.info['device']}" for i, a in enumerate(found)) or "none"
            raise _unavailable(f"no adapter {index}: found {names}")
        return found[index]
    try:
        adapter = wgpu.gpu.request_adapter_sync(power_preference=_POWER[power])
    except RuntimeError as error:
        raise _unavailable(f"no adapter found: {error}") from error
    if adapter is None:
        raise _unavailable("no adapter found")
    return adapter


def is_software(adapter: Any) -> bool:
    return bool(adapter.info["adapter_type"] == "CPU")


def request_device(adapter: Any) -> Any:
    """A device with the adapter's own limits and the optional features it has; a note when it is software."""
    features = [name for name in _WANTED_FEATURES if name in adapter.features]
    if is_software(adapter):
        _log.warning(
            "the adapter is software, not a GPU (slow, fine for tests): %s; "
            "install the GPU's driver, or use the Cpu backend",
            adapter.info["device"],
        )
    # Without required_limits wgpu-py asks for the adapter's limits, which is what large tensors need.
    return adapter.request_device_sync(label="phlox", required_features=features)


def _unavailable(what: str) -> BackendUnavailableError:
    return BackendUnavailableError("wgpu", what, hint=_INSTALL_HINT)
