"""Compiled kernels by key, and the bind group layouts that they share."""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import wgpu

from phlox_tensor import DeviceError

from . import _kernel
from ._cache import Recent
from ._errors import ShaderError
from ._kernel import Kernel
from ._native import Native

_LABEL = 400  # characters of what names a kernel in errors and in its text
_KEPT = 4096  # a compiled kernel takes a tenth of a second to make again, and some 50 kB


@dataclass(slots=True)
class Layout:
    """A bind group layout, shared by all kernels that bind the same number of things."""

    serial: int
    gpu: Any
    pipeline_layout: Any
    slot: int
    index_errors: bool


@dataclass(slots=True)
class Pipeline:
    """A compiled kernel and what the recorder needs of it."""

    gpu: Any
    handle: Any
    layout: Layout
    packer: struct.Struct
    slot: int
    text: str
    index_errors: bool


class Pipelines:
    """All pipelines of a device. The caller holds the device lock."""

    def __init__(self, native: Native, limits: dict[str, int]) -> None:
        self._native = native
        self._gpu = native.device
        self._align = limits["min-uniform-buffer-offset-alignment"]
        self._most = limits["max-storage-buffers-per-shader-stage"]
        self._known: Recent[Hashable, Pipeline] = Recent(_KEPT)
        self._layouts: dict[tuple[int, int, int, bool], Layout] = {}
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
        packer = _kernel.packer(kernel)
        slot = -(-packer.size // self._align) * self._align if kernel.params else 0
        layout = self._layout(len(kernel.inputs), len(kernel.outputs), slot, reports)
        text = f"// {label}\n{_kernel.source(replace(kernel, enables=enables), code)}"
        try:
            module = self._native.module(label, text)
            stage = {"module": module, "entry_point": "main"}
            gpu = self._gpu.create_compute_pipeline(
                label=label, layout=layout.pipeline_layout, compute=stage
            )
        except (wgpu.GPUError, RuntimeError) as error:
            if "is lost" in str(error):
                raise
            raise ShaderError(f"kernel {label} does not compile: {error}", text) from error
        return Pipeline(gpu, gpu._internal, layout, packer, slot, text, reports)

    def _accepts(self, extension: str) -> bool:
        """Whether the compiler knows the line that WGSL asks for. Naga has subgroups without it."""
        if extension not in self._accepted:
            text = f"enable {extension};\n@compute @workgroup_size(1) fn main() {{}}\n"
            try:
                self._native.module(extension, text)
                self._accepted[extension] = True
            except (wgpu.GPUError, RuntimeError) as error:
                if "is lost" in str(error):
                    raise
                self._accepted[extension] = False
        return self._accepted[extension]

    def _layout(self, inputs: int, outputs: int, slot: int, index_errors: bool) -> Layout:
        key = (inputs, outputs, slot, index_errors)
        layout = self._layouts.get(key)
        if layout is not None:
            return layout
        kinds: list[dict[str, Any]] = []
        if slot:
            kinds.append({"type": "uniform", "has_dynamic_offset": True})
        kinds += [{"type": "read-only-storage"}] * inputs
        kinds += [{"type": "storage"}] * (outputs + index_errors)
        entries = [
            {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": kind}
            for i, kind in enumerate(kinds)
        ]
        gpu = self._gpu.create_bind_group_layout(entries=entries)
        pipeline_layout = self._gpu.create_pipeline_layout(bind_group_layouts=[gpu])
        layout = Layout(len(self._layouts), gpu, pipeline_layout, slot, index_errors)
        self._layouts[key] = layout
        return layout
