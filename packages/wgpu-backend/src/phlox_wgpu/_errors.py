"""Errors of this backend beside those of phlox_tensor."""

from __future__ import annotations

from phlox_tensor import PhloxError


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
