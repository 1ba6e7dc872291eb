"""The hot calls, made on wgpu-native's C functions: ten times cheaper than wgpu-py's wrappers.

wgpu-py 0.32 keeps these names private, so the version is pinned in pyproject.toml and `missing()`
looks for them once. Errors of a recorded pass surface when it is finished and submitted, which goes
through the wrappers that raise.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import wgpu
from wgpu.backends.wgpu_native import _api

_ffi: Any = _api.ffi
_lib: Any = _api.lib
_checked: Any = _api.libf

# Pipeline, bind group, what keeps the bind group alive, offset of the parameters or -1, x, y, z.
Dispatch = tuple[Any, Any, Any, int, int, int, int]
# Source, its offset, destination, its offset, bytes.
Copy = tuple[Any, int, Any, int, int]

_NULL = _ffi.NULL
_READ = int(wgpu.MapMode.READ)

_SPIN = 2.5e-4  # seconds: a sleep takes 50 us more than is asked for
_SLEEP_SHARE = 1 / 16  # of the time waited so far: what a sleep may add to it
_LONGEST_SLEEP = 1e-3
_CHECK_AFTER = 1.0  # seconds after which a wait asks whether the device is still there


class Native:
    """The C handles of one device and the scratch structs that its calls reuse.

    The caller holds the device lock, except in `wait_mapped`.
    """

    def __init__(self, device: Any) -> None:
        self.device = device
        self.handle = device._internal
        self.queue = device.queue._internal
        self._offsets = _ffi.new("uint32_t[1]")
        self._buffers = _ffi.new("WGPUCommandBuffer[1]")
        self._encoder_desc = _ffi.new("WGPUCommandEncoderDescriptor *")
        self._pass_desc = _ffi.new("WGPUComputePassDescriptor *")
        self._finish_desc = _ffi.new("WGPUCommandBufferDescriptor *")
        self._maps: dict[int, int] = {}
        self._polling = threading.Lock()
        self._map_ids = count(1)
        # The callback must live as long as the device does.
        self._map_callback = _ffi.callback(
            "void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)", self._mapped
        )
        self._map_info = _ffi.new("WGPUBufferMapCallbackInfo *")
        self._map_info.mode = _lib.WGPUCallbackMode_AllowProcessEvents
        self._map_info.callback = self._map_callback

    def _mapped(self, status: int, _message: Any, ticket: Any, _user: Any) -> None:
        self._maps[int(_ffi.cast("uintptr_t", ticket))] = status

    def submit(self, dispatches: list[Dispatch], copies: list[Copy]) -> None:
        """One encoder: a compute pass with all dispatches, then the copies."""
        encoder = _checked.wgpuDeviceCreateCommandEncoder(self.handle, self._encoder_desc)
        try:
            if dispatches:
                self._encode(encoder, dispatches)
            for copy in copies:
                _checked.wgpuCommandEncoderCopyBufferToBuffer(encoder, *copy)
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
                set_pipeline(compute, pipeline.handle)
                current = pipeline
            if offset >= 0:
                offsets[0] = offset
                set_group(compute, 0, group, 1, offsets)
            else:
                set_group(compute, 0, group, 0, _NULL)
            dispatch(compute, x, y, z)
        _lib.wgpuComputePassEncoderEnd(compute)
        _lib.wgpuComputePassEncoderRelease(compute)

    def module(self, label: str, text: str, *, checks: bool = False) -> Any:
        """A shader module, without the bounds and loop counters that naga adds: ours have theirs.

        Raises:
            wgpu.GPUError: the text does not compile.
        """
        if checks:
            return self.device.create_shader_module(label=label, code=text)
        code = _ffi.new("char[]", text.encode())
        source = _ffi.new("WGPUShaderSourceWGSL *")
        source.chain.sType = _lib.WGPUSType_ShaderSourceWGSL
        source.code.data, source.code.length = code, len(code) - 1
        desc = _ffi.new("WGPUShaderModuleDescriptor *")
        desc.nextInChain = _ffi.cast("WGPUChainedStruct *", source)
        handle = _checked.wgpuDeviceCreateShaderModuleTrusted(self.handle, desc, 0)
        return _api.GPUShaderModule(label, handle, self.device)

    def bind_group(self, layout: Any, entries: list[tuple[Any, int]]) -> Any:
        """A bind group over (buffer, bytes) at bindings 0, 1, ...; it releases itself."""
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

    def write(self, buffer: Any, data: Any, nbytes: int, first: int = 0) -> None:
        """Copy host bytes, a multiple of 4, into a buffer, before any later submit."""
        source = _ffi.from_buffer(data)
        _checked.wgpuQueueWriteBuffer(self.queue, buffer, first, source, nbytes)

    def map(self, staging: Any, nbytes: int) -> int:
        """Ask for a staging buffer to be mapped; returns a ticket for `wait_mapped`."""
        ticket = next(self._map_ids)
        self._map_info.userdata1 = _ffi.cast("void *", ticket)
        _checked.wgpuBufferMapAsync(staging, _READ, 0, nbytes, self._map_info[0])
        return ticket

    def wait_mapped(self, ticket: int) -> None:
        """Block until the map of a ticket is done (another thread may have seen it arrive).

        No poll waits inside the driver, where it would keep other threads from submitting, and no
        two threads poll at once, which the driver does not stand. Sleeps grow with the time that
        has passed, so that they add little to it and long waits cost no processor.

        Raises:
            wgpu.GPUError: the device is lost.
            RuntimeError: the driver refused.
        """
        start = time.perf_counter()
        checked = _CHECK_AFTER
        while ticket not in self._maps:
            self._poll(wait=False)
            if ticket in self._maps:
                break
            waited = time.perf_counter() - start
            if waited > checked:
                self.check_alive()
                checked = 2 * waited
            if waited > _SPIN:
                time.sleep(min(waited * _SLEEP_SHARE, _LONGEST_SLEEP))
        status = self._maps.pop(ticket)
        if status != _lib.WGPUMapAsyncStatus_Success:
            self.check_alive()
            raise RuntimeError(f"[read] mapping the staging buffer failed with status {status}")

    def _poll(self, *, wait: bool) -> None:
        with self._polling:
            _checked.wgpuDevicePoll(self.handle, wait, _NULL)

    def check_alive(self) -> None:
        """Make something small, which fails on a lost device.

        Raises:
            wgpu.GPUError: the device is lost.
        """
        encoder = _checked.wgpuDeviceCreateCommandEncoder(self.handle, self._encoder_desc)
        try:
            commands = _checked.wgpuCommandEncoderFinish(encoder, self._finish_desc)
            _lib.wgpuCommandBufferRelease(commands)
        finally:
            _lib.wgpuCommandEncoderRelease(encoder)

    def mapped(self, staging: Any, nbytes: int) -> memoryview:
        """The bytes of a mapped buffer, valid until `unmap`."""
        pointer = _checked.wgpuBufferGetConstMappedRange(staging, 0, nbytes)
        if pointer == _NULL:
            raise RuntimeError("[read] the driver gave no memory for a mapped buffer")
        return memoryview(_ffi.buffer(pointer, nbytes))

    def unmap(self, staging: Any) -> None:
        """Give a mapped buffer back to the GPU."""
        _lib.wgpuBufferUnmap(staging)

    @contextmanager
    def stamped(self, queries: Any) -> Iterator[None]:
        """Have passes note when they begin and end."""
        writes = _ffi.new("WGPUPassTimestampWrites *")
        writes.querySet = queries._internal
        writes.beginningOfPassWriteIndex, writes.endOfPassWriteIndex = 0, 1
        self._pass_desc.timestampWrites = writes
        try:
            yield
        finally:
            self._pass_desc.timestampWrites = _NULL

    def tick_seconds(self) -> float:
        """The time between two ticks of what `stamped` notes."""
        return float(_lib.wgpuQueueGetTimestampPeriod(self.queue)) * 1e-9

    def lose(self) -> None:
        """Destroy the device."""
        _checked.wgpuDeviceDestroy(self.handle)

    def drain(self) -> None:
        """Block until all is done and the driver has let go of destroyed buffers.

        The caller's lock keeps others from submitting, so the driver may wait here.
        """
        self.submit([], [])  # uploads that no submit has taken along hold their buffers
        self._poll(wait=True)


_NEEDED = (
    "wgpuBufferGetConstMappedRange",
    "wgpuBufferMapAsync",
    "wgpuCommandEncoderBeginComputePass",
    "wgpuComputePassEncoderDispatchWorkgroups",
    "wgpuComputePassEncoderSetBindGroup",
    "wgpuComputePassEncoderSetPipeline",
    "wgpuDeviceCreateShaderModuleTrusted",
    "wgpuDevicePoll",
    "wgpuQueueSubmit",
    "wgpuQueueWriteBuffer",
)


def missing() -> list[str]:
    """The C functions that this wgpu-py does not have: none when all is well."""
    return [name for name in _NEEDED if not hasattr(_lib, name)]
