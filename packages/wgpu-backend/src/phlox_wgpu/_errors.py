"""Errors that only this backend has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from phlox_tensor import DeviceError, PhloxError


class DeviceMemoryError(PhloxError, MemoryError):
    """The device cannot hold a tensor: over the adapter's limit, or out of memory."""


class ShaderError(PhloxError, RuntimeError):
    """A generated shader did not compile. ``wgsl`` is its text; ``listing()`` numbers its lines."""

    def __init__(self, what: str, wgsl: str) -> None:
        super().__init__("wgpu", what, hint="print(error.listing())")
        self.wgsl = wgsl

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the text of the shader."""
        return ShaderError, (self.what, self.wgsl)

    def listing(self) -> str:
        """Return the text with line numbers."""
        return "\n".join(f"{i:4} {line}" for i, line in enumerate(self.wgsl.splitlines(), 1))


def too_wide(params: Sequence[float]) -> DeviceMemoryError:
    """Say which number of a launch is over 32 bits."""
    widest = max(params, key=abs)
    return DeviceMemoryError(
        "wgpu",
        "a size, stride or number of this call does not fit 32 bits",
        got=widest,
        expected="less than 2**31",
        hint="split the tensor, or keep it on the Cpu backend",
    )


class ForkedLock:
    """Stands for the lock of a device in a process that did not open it."""

    def __enter__(self) -> NoReturn:
        raise DeviceError(
            "wgpu",
            "the device was opened before fork(), in the parent process",
            hint='multiprocessing.set_start_method("spawn")',
        )

    def __exit__(self, *_: object) -> None:
        """Do nothing: the lock is never entered."""
