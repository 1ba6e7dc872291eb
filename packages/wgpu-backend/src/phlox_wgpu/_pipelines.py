"""Compiled kernels by their keys."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace

from phlox_tensor import DeviceError

from . import _kernel
from ._cache import Recent
from ._engine import Engine, Pipeline, checks, driver
from ._errors import ShaderError
from ._kernel import Kernel

_LABEL = 400  # characters of what names a kernel in errors and in its text
_KEPT = 4096  # a compiled kernel takes a tenth of a second to make again, and some 50 kB


class Pipelines:
    """All pipelines of a device. The caller holds the device lock."""

    def __init__(self, engine: Engine, limits: Mapping[str, int]) -> None:
        self._engine = engine
        self._most = limits["max-storage-buffers-per-shader-stage"]
        self._known: Recent[Hashable, Pipeline] = Recent(_KEPT)
        self.error_ops: list[str] = [""]
        self._accepted: dict[str, bool] = {}

    def get(self, make: Callable[..., Kernel], *args: Hashable) -> Pipeline:
        """Return the pipeline of what a function gives for arguments, compiled on first use.

        Raises:
            ShaderError: the kernel does not compile.
            DeviceError: it binds more buffers than the adapter allows.
        """
        key = make, *args

        def found() -> Pipeline:
            label = f"{make.__name__}({', '.join(map(repr, args))})"
            return self._compile(label[:_LABEL], make(*args))

        return self._known.get(key) or self._known.find(key, found)

    def _compile(self, label: str, kernel: Kernel) -> Pipeline:
        reports = bool(kernel.index_errors)
        code = 0
        if reports:
            if kernel.index_errors not in self.error_ops:
                self.error_ops.append(kernel.index_errors)
            code = self.error_ops.index(kernel.index_errors)
        buffers = len(kernel.inputs) + len(kernel.outputs) + reports
        if buffers > self._most:
            raise DeviceError(
                "wgpu",
                "a kernel binds more buffers than this adapter allows",
                got=f"{buffers} of {label[:100]}",
                expected=f"at most {self._most} (its max-storage-buffers-per-shader-stage)",
            )
        enables = tuple(name for name in kernel.enables if self._accepts(name))
        text = f"// {label}\n{_kernel.source(replace(kernel, enables=enables), code)}"
        inputs, outputs = len(kernel.inputs), len(kernel.outputs)
        numbers = _kernel.numbers(kernel)
        try:
            made: Pipeline = self._engine.pipeline(
                label, text, inputs, outputs, numbers, reports, checks()
            )
        except (driver.DriverError, RuntimeError) as error:
            if "is lost" in str(error):
                raise
            raise ShaderError(f"kernel {label} does not compile: {error}", text) from error
        return made

    def _accepts(self, extension: str) -> bool:
        """Whether the compiler knows the line that WGSL asks for. Naga has subgroups without it."""
        if extension not in self._accepted:
            text = f"enable {extension};\n@compute @workgroup_size(1) fn main() {{}}\n"
            self._accepted[extension] = self._engine.compiles(text)
        return self._accepted[extension]
