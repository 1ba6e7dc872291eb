"""The few hot calls, made on wgpu-native's C functions instead of wgpu-py's wrappers (about ten times cheaper).

wgpu-py 0.32 keeps these names private, so the version is pinned in pyproject.toml and `check()` looks for them once.
Errors of a recorded pass surface when it is finished and submitted; those two go through the checking wrappers.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import wgpu
from wgpu.backends.wgpu_native import _api

_ffi: Any = _api.ffi
_lib: Any = _api.lib
_checked: Any = _api.libf

Dispatch = tuple[Any, Any, Any, int, int, int, int]  # pipeline, bind group handle, keep-alive, slot offset, x, y, z

_NULL = _ffi.NULL
_READ = int(wgpu.MapMode.READ)


class Native:
    """The C handles of one device and the scratch structs that its calls reuse. Used under the device lock only."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.handle = device._internal
        self.queue = device.queue._internal
        self._offsets = _ffi.new("uint32_t[1]")
        self._buffers = _ffi.new("WGPUCommandBuffer[1]")
        self._encoder_desc = _ffi.new("WGPUCommandEncoderDescriptor *")
        self._pass_desc = _ffi.new("WGPUComputePassDescriptor *")
        self._finish_desc = _ffi.new("WGPUCommandBufferDescriptor *")
        self._map_status: list[int] = []
        self._map_callback = _ffi.callback(
            "void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)", self._mapped
        )
        self._map_info = _ffi.new("WGPUBufferMapCallbackInfo *")
        self._map_info.mode = _lib.WGPUCallbackMode_AllowProcessEvents
        self._map_info.callback = self._map_callback

    def _mapped(self, status: int, _message: Any, _user1: Any, _user2: Any) -> None:
        self._map_status.append(status)

    def submit(self, dispatches: list[Dispatch], copies: list[tuple[Any, int, Any, int, int]]) -> None:
        """One encoder: one compute pass with all the dispatches, then the buffer copies."""
        encoder = _checked.wgpuDeviceCreateCommandEncoder(self.handle, self._encoder_desc)
        try:
            if dispatches:
                self._encode(encoder, dispatches)
            for src, src_offset, dst, dst_offset, nbytes in copies:
                _checked.wgpuCommandEncoderCopyBufferToBuffer(encoder, src, src_offset, dst, dst_offset, nbytes)
            commands = _checked.wgpuCommandEncoderFinish(encoder, self._finish_desc)
        finally:
            _lib.wgpuCommandEncoderRelease(encoder)
        self._buffers[0] = commands
        try:
            _checked.wgpuQueueSubmit(self.queue, 1, self._buffers)
        finally:
            _lib.wgpuCommandBufferRelease(commands)

    def _encode(self, encoder: Any, dispatches: list[Dispatch]) -> None:
        compute = _lib.wgpuCommandEncoderBeginComputePass(encoder, self._pass_desc)
        offsets = self._offsets
        set_pipeline = _lib.wgpuComputePassEncoderSetPipeline
        set_group = _lib.wgpuComputePassEncoderSetBindGroup
        dispatch = _lib.wgpuComputePassEncoderDispatchWorkgroups
        current = None
        for pipeline, group, _keep, offset, x, y, z in dispatches:
            if pipeline is not current:
                set_pipeline(compute, pipeline)
                current = pipeline
            if offset >= 0:
                offsets[0] = offset
                set_group(compute, 0, group, 1, offsets)
            else:
                set_group(compute, 0, group, 0, _NULL)
            dispatch(compute, x, y, z)
        _lib.wgpuComputePassEncoderEnd(compute)
        _lib.wgpuComputePassEncoderRelease(compute)

    def bind_group(self, layout: Any, entries: list[tuple[Any, int]]) -> Any:
        """A bind group over (buffer handle, bytes) at bindings 0, 1, ...; the result releases itself."""
        array = _ffi.new("WGPUBindGroupEntry[]", len(entries))
        for position, (buffer, nbytes) in enumerate(entries):
            entry = array[position]
            entry.binding = position
            entry.buffer = buffer
            entry.size = nbytes
        desc = _ffi.new("WGPUBindGroupDescriptor *")
        desc.layout = layout._internal
        desc.entryCount = len(entries)
        desc.entries = array
        handle = _checked.wgpuDeviceCreateBindGroup(self.handle, desc)
        return _api.GPUBindGroup("", handle, self.device)

    def write(self, buffer: Any, data: np.ndarray | bytearray, nbytes: int) -> None:
        """Copy host bytes to the start of a buffer, ordered before any later submit; `nbytes` is a multiple of 4."""
        _checked.wgpuQueueWriteBuffer(self.queue, buffer, 0, _ffi.from_buffer(data), nbytes)

    def map_read(self, staging: Any, nbytes: int) -> memoryview:
        """Wait for the queue and map; the view is valid until `unmap`."""
        self._map_status.clear()
        _checked.wgpuBufferMapAsync(staging, _READ, 0, nbytes, self._map_info[0])
        while not self._map_status:
            self.wait()
        if self._map_status[0] != _lib.WGPUMapAsyncStatus_Success:
            raise RuntimeError(f"[read] mapping the staging buffer failed with status {self._map_status[0]}")
        pointer = _lib.wgpuBufferGetConstMappedRange(staging, 0, nbytes)
        return memoryview(_ffi.buffer(pointer, nbytes))

    def unmap(self, staging: Any) -> None:
        _lib.wgpuBufferUnmap(staging)

    def wait(self) -> None:
        """Block until everything submitted is done (the GIL is free meanwhile)."""
        _checked.wgpuDevicePoll(self.handle, 1, _NULL)

    def poll(self) -> bool:
        """Let finished work report; True when the queue is empty."""
        return bool(_checked.wgpuDevicePoll(self.handle, 0, _NULL))


_NEEDED = (
    "wgpuBufferGetConstMappedRange",
    "wgpuBufferMapAsync",
    "wgpuCommandEncoderBeginComputePass",
    "wgpuComputePassEncoderDispatchWorkgroups",
    "wgpuComputePassEncoderSetBindGroup",
    "wgpuComputePassEncoderSetPipeline",
    "wgpuDevicePoll",
    "wgpuQueueSubmit",
    "wgpuQueueWriteBuffer",
)


def check() -> list[str]:
    """The C functions that this wgpu-py does not have (empty when all is well)."""
    return [name for name in _NEEDED if not hasattr(_lib, name)]


def debug() -> bool:
    """PHLOX_WGPU_DEBUG=1: submit every dispatch on its own, so that an error names its kernel."""
    return os.environ.get("PHLOX_WGPU_DEBUG", "") == "1"
