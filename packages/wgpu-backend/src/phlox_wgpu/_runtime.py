"""The runtime that every kernel of this package uses.

Write a kernel as data and launch it::

    def my_kernel() -> Kernel:                       # called once per key, when the pipeline is first needed
        return Kernel(body=WGSL, inputs=("f32",), outputs=("f32",), params=(("n", "u32"), ("scale", "f32")))

    out = device.empty(shape, phlox_tensor.float32)  # pooled, content undefined
    device.launch(("my-kernel", ...), my_kernel, [x], [out], (n, scale), groups)

- ``key``: hashable, holds everything the source depends on. ``params``: numbers in the order of ``Kernel.params``.
- ``groups``: a count, folded over x and y within 65,535 per axis (use ``linear_group(group, groups)`` from
  ``@builtin(workgroup_id)`` and ``@builtin(num_workgroups)`` and check the bound), or an (x, y, z) tuple. 0: no launch.
- A binding is the whole buffer: pass ``x.offset`` as a parameter. An output must not be an input of the same launch
  (bind it once, as an output: outputs are read_write).
- Commands are recorded and submitted in batches, in order; barriers are automatic. ``read`` is the only wait.
- Index kernels: ``index_errors="take"`` gives ``checked_index`` in WGSL (see Kernel); the next read raises.
- ``contiguous(x)`` gives a dense row-major array (x itself when it is one, at any offset);
  ``aligned(x, n)`` the same with an offset divisible by n (for vec2/vec4 bindings).
- Ops of a module: ``ENTRIES: Entries = {"take": take, ...}`` with functions ``f(device, *operands, *attributes)``;
  add the module to ``_table._MODULES``.
- WGSL helper functions (``wgsl/helpers.py``: exp_f, max_f, ...) are put in front of a body that names them.
- NaN and infinities: see Kernel; never compare ``x != x`` in WGSL, the compiler folds it away.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import wgpu
from phlox_tensor import ArgumentError, IndexOutOfRangeError, MemoryUse, PhloxError

from . import _kernel, _native
from ._array import ITEM_BYTES, GpuArray, Storage, dense_strides
from ._kernel import Kernel, Layout, Pipeline
from ._pool import Buffer, Pool

if TYPE_CHECKING:
    from phlox_tensor import DType

__all__ = ["GpuArray", "GpuDevice", "Kernel", "ShaderError", "dense_strides"]

_MAX_GROUPS = 65535
_RING_BYTES = 1 << 20
_FIRST_FLUSH = 16
_LATER_FLUSH = 128
_MAX_BIND_GROUPS = 8192


class DeviceMemoryError(PhloxError, MemoryError):
    """The device cannot hold a tensor: over the adapter's limit, or out of memory."""


class ShaderError(PhloxError, RuntimeError):
    """A generated shader did not compile. ``wgsl`` is its text; ``listing()`` numbers its lines."""

    def __init__(self, what: str, wgsl: str) -> None:
        super().__init__("wgpu", what, hint="print(error.listing())")
        self.wgsl = wgsl

    def listing(self) -> str:
        return "\n".join(f"{i:4} {line}" for i, line in enumerate(self.wgsl.splitlines(), 1))


def grid(groups: int | tuple[int, int, int]) -> tuple[int, int, int]:
    """A count of workgroups, folded so that no axis is over 65,535.

    Raises:
        ValueError: an axis of a given grid is.
    """
    if not isinstance(groups, int):
        if max(groups) > _MAX_GROUPS:
            raise ValueError(f"grid of {groups} workgroups: an axis is over {_MAX_GROUPS}")
        return groups
    if groups <= _MAX_GROUPS:
        return groups, 1, 1
    rows = -(-groups // _MAX_GROUPS)
    return -(-groups // rows), rows, 1


class GpuDevice:
    """One wgpu device: memory pool, pipeline and bind-group caches, command recording. Thread-safe."""

    def __init__(self, gpu: Any) -> None:
        missing = _native.check()
        if missing:
            raise RuntimeError(f"[wgpu] this wgpu-py lacks {', '.join(missing)}\nhint: pip install 'wgpu>=0.32,<0.33'")
        self.gpu = gpu
        self.limits: dict[str, int] = dict(gpu.limits)
        self.features = frozenset(gpu.features)
        self.lock = threading.RLock()
        self.native = _native.Native(gpu)
        self.plans: dict[Hashable, Any] = {}  # how kernels of this package remember their launch geometry
        self.max_binding_bytes = (
            min(self.limits["max-storage-buffer-binding-size"], self.limits["max-buffer-size"])
            & ~15  # whole vec4
        )
        self.pool = Pool(gpu, self.max_binding_bytes)
        self.batch = 0
        self._flush_at = _FIRST_FLUSH
        self._debug = _native.debug()
        self._pending: list[_native.Dispatch] = []
        self._pipelines: dict[Hashable, Pipeline] = {}
        self._layouts: dict[tuple[int, int, int, bool], Layout] = {}
        self._groups: dict[tuple[int, ...], Any] = {}
        self._staging: dict[int, list[Any]] = {}
        self._align = self.limits["min-uniform-buffer-offset-alignment"]
        self._ring = gpu.create_buffer(size=_RING_BYTES, usage=wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST)
        self._ring_data = bytearray(_RING_BYTES)
        self._ring_used = 0
        self._error = gpu.create_buffer(
            size=16, usage=wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        )
        self._error_ops: list[str] = [""]
        self._error_armed = False
        self._forked = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    # ---- memory

    def empty(self, shape: tuple[int, ...], dtype: DType) -> GpuArray:
        """A dense array with undefined content.

        Raises:
            DeviceMemoryError: the tensor is over the adapter's binding limit, or the device is out of memory.
        """
        size = math.prod(shape)
        return self.dense(shape, dense_strides(shape), size, size * ITEM_BYTES[dtype.name], dtype)

    def dense(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        size: int,
        nbytes: int,
        dtype: DType,
    ) -> GpuArray:
        """`empty` for a caller that knows the row-major strides, the element count and the bytes."""
        array = GpuArray.__new__(GpuArray)
        array.storage = self.storage(nbytes)
        array.shape = shape
        array.strides = strides
        array.offset = 0
        array.dtype = dtype
        array.size = size
        array.contiguous = True
        return array

    def storage(self, nbytes: int) -> Storage:
        """A pooled buffer of at least `nbytes`."""
        if nbytes > self.max_binding_bytes:
            raise DeviceMemoryError(
                "wgpu",
                "tensor too large for one binding",
                got=f"{nbytes} bytes",
                expected=f"at most {self.max_binding_bytes} (the adapter's max-storage-buffer-binding-size)",
                hint="split the tensor, or keep it on the Cpu backend",
            )
        with self.lock:
            try:
                buffer = self.pool.take(nbytes)
            except wgpu.GPUError:
                self.flush()
                self.trim()
                try:
                    buffer = self.pool.take(nbytes)
                except wgpu.GPUError as error:
                    raise DeviceMemoryError(
                        "wgpu",
                        "out of device memory",
                        got=f"a request for {nbytes} bytes with {self.pool.current_bytes} in use",
                        hint="use smaller batches",
                    ) from error
        return Storage(buffer, self.pool)

    def memory(self) -> MemoryUse:
        """Bytes in use now and at most."""
        with self.lock:
            self.pool.collect()
            return MemoryUse(self.pool.current_bytes, self.pool.peak_bytes)

    def trim(self) -> int:
        """Give unused pooled memory back to the driver; returns the bytes."""
        with self.lock:
            self.flush()
            self._groups.clear()
            return self.pool.trim()

    # ---- recording

    def launch(
        self,
        key: Hashable,
        make: Callable[[], Kernel],
        inputs: Sequence[GpuArray],
        outputs: Sequence[GpuArray],
        params: Sequence[float],
        groups: int | tuple[int, int, int],
    ) -> None:
        """Record one dispatch. See the module's docstring.

        Raises:
            ShaderError: the kernel does not compile (its text is in the error).
        """
        with self.lock:
            pipeline = self._pipelines.get(key) or self._compile(key, make)
            self.record(pipeline, inputs, outputs, params, *grid(groups))

    def record(
        self,
        pipeline: Pipeline,
        inputs: Sequence[GpuArray],
        outputs: Sequence[GpuArray],
        params: Sequence[float],
        x: int,
        y: int,
        z: int,
    ) -> None:
        """Record one dispatch of a compiled kernel over x * y * z workgroups; none for an empty grid."""
        if not (x and y and z):
            return
        with self.lock:
            offset = -1
            if pipeline.slot:
                offset = self._ring_used
                if offset + pipeline.slot > _RING_BYTES:
                    self.flush()
                    offset = 0
                pipeline.packer.pack_into(self._ring_data, offset, *params)
                self._ring_used = offset + pipeline.slot
            batch = self.batch
            names = [pipeline.layout.serial]
            for array in (*inputs, *outputs):
                buffer = array.storage.buffer
                buffer.batch = batch
                names.append(buffer.serial)
            group = self._groups.get(tuple(names))
            if group is None:
                group = self._bind(pipeline.layout, [a.storage.buffer for a in (*inputs, *outputs)])
            if pipeline.index_errors:
                self._error_armed = True
            pending = self._pending
            pending.append((pipeline.handle, group._internal, group, offset, x, y, z))
            if len(pending) >= self._flush_at or self._debug:
                self.flush()

    def pipeline(self, key: Hashable, make: Callable[[], Kernel]) -> Pipeline:
        """The compiled kernel of this key, without launching it (warm-up, and the text of the shader)."""
        with self.lock:
            return self._pipelines.get(key) or self._compile(key, make)

    def flush(self) -> None:
        """Submit what is recorded; does not wait."""
        with self.lock:
            self._submit([])
            self._flush_at = _LATER_FLUSH

    def _submit(self, copies: list[tuple[Any, int, Any, int, int]]) -> None:
        if self._forked:
            raise RuntimeError("[wgpu] the device was opened before fork(): it cannot be used in the child process")
        pending = self._pending
        if not pending and not copies:
            return
        self._pending = []
        self.batch += 1
        used, self._ring_used = self._ring_used, 0
        if used:
            # Ordered before this submit and after the ones before it, so one ring serves every batch.
            self.native.write(self._ring._internal, self._ring_data, used)
        self.native.submit(pending, copies)

    def _compile(self, key: Hashable, make: Callable[[], Kernel]) -> Pipeline:
        kernel = make()
        code = 0
        if kernel.index_errors:
            if kernel.index_errors not in self._error_ops:
                self._error_ops.append(kernel.index_errors)
            code = self._error_ops.index(kernel.index_errors)
        text = _kernel.source(kernel, code)
        packer = _kernel.packer(kernel)
        slot = -(-packer.size // self._align) * self._align if kernel.params else 0
        layout = self._layout(len(kernel.inputs), len(kernel.outputs), slot, bool(kernel.index_errors))
        try:
            module = self.gpu.create_shader_module(label=str(key), code=text)
            gpu = self.gpu.create_compute_pipeline(
                label=str(key), layout=layout.pipeline_layout, compute={"module": module, "entry_point": "main"}
            )
        except (wgpu.GPUError, RuntimeError) as error:
            raise ShaderError(f"kernel {key!r} does not compile: {error}", text) from error
        pipeline = Pipeline(gpu, gpu._internal, layout, packer, slot, text, bool(kernel.index_errors))
        self._pipelines[key] = pipeline
        return pipeline

    def _layout(self, inputs: int, outputs: int, slot: int, index_errors: bool) -> Layout:
        key = (inputs, outputs, slot, index_errors)
        layout = self._layouts.get(key)
        if layout is not None:
            return layout
        kinds: list[dict[str, Any]] = [{"type": "uniform", "has_dynamic_offset": True}] if slot else []
        kinds += [{"type": "read-only-storage"}] * inputs
        kinds += [{"type": "storage"}] * (outputs + index_errors)
        entries = [
            {"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": kind} for i, kind in enumerate(kinds)
        ]
        gpu = self.gpu.create_bind_group_layout(entries=entries)
        pipeline_layout = self.gpu.create_pipeline_layout(bind_group_layouts=[gpu])
        layout = Layout(len(self._layouts), gpu, pipeline_layout, inputs, outputs, slot, index_errors)
        self._layouts[key] = layout
        return layout

    def _bind(self, layout: Layout, buffers: list[Buffer]) -> Any:
        entries = [(self._ring._internal, layout.slot)] if layout.slot else []
        entries += [(b.handle, b.nbytes) for b in buffers]
        if layout.index_errors:
            entries.append((self._error._internal, 16))
        group = self.native.bind_group(layout.gpu, entries)
        if len(self._groups) >= _MAX_BIND_GROUPS:
            self._groups.clear()
        self._groups[(layout.serial, *[b.serial for b in buffers])] = group
        return group

    # ---- transfers

    def upload(self, array: np.ndarray, dtype: DType) -> GpuArray:
        """A dense copy of a host array on the device."""
        host = np.ascontiguousarray(array, dtype=np.uint32) if dtype.name == "bool" else np.ascontiguousarray(array)
        out = self.empty(array.shape, dtype)
        nbytes = host.nbytes
        if not nbytes:
            return out
        if nbytes % 4:
            host = np.pad(host.reshape(-1).view(np.uint8), (0, 4 - nbytes % 4))
        with self.lock:
            buffer = out.storage.buffer
            if buffer.batch == self.batch:  # a recorded command still reads its old content
                self.flush()
            self.native.write(buffer.handle, host.reshape(-1).view(np.uint8), host.nbytes)
        return out

    def read(self, x: GpuArray) -> np.ndarray:
        """The array's values on the host, waiting for the queue.

        Raises:
            IndexOutOfRangeError: a kernel recorded since the last read met an index out of range.
        """
        if x.size == 0:
            self.sync()
            return np.empty(x.shape, x.dtype.numpy)
        low = x.offset + sum((n - 1) * s for n, s in zip(x.shape, x.strides, strict=True) if s < 0)
        span = 1 + sum((n - 1) * abs(s) for n, s in zip(x.shape, x.strides, strict=True))
        if span > 2 * x.size + 64:
            x = self.contiguous(x)
            low, span = x.offset, x.size
        width = x.item_bytes
        first = low * width & ~3
        nbytes = -(-((low + span) * width - first) // 4) * 4
        words = self._read_bytes(x.storage.buffer, first, nbytes)
        numpy_dtype = np.dtype(np.uint32) if x.dtype.name == "bool" else x.dtype.numpy
        flat = np.frombuffer(words, numpy_dtype)
        start = x.offset - first // width
        view = np.lib.stride_tricks.as_strided(flat[start:], x.shape, tuple(s * width for s in x.strides))
        if x.dtype.name == "bool":
            return np.asarray(view != 0)
        if x.contiguous:
            return view
        return np.array(view, order="C")

    def _read_bytes(self, buffer: Buffer, first: int, nbytes: int) -> bytearray:
        with self.lock:
            armed = self._error_armed
            total = nbytes + (16 if armed else 0)
            bucket = 1 << max(8, (total - 1).bit_length())
            free = self._staging.setdefault(bucket, [])
            staging = free.pop() if free else self._new_staging(bucket)
            copies = [(buffer.handle, first, staging._internal, 0, nbytes)]
            if armed:
                copies.append((self._error._internal, 0, staging._internal, nbytes, 16))
            self._submit(copies)
            self._flush_at = _FIRST_FLUSH
            mapped = self.native.map_read(staging._internal, total)
            data = bytearray(mapped[:nbytes])
            words = memoryview(bytes(mapped[nbytes:])).cast("i") if armed else None
            self.native.unmap(staging._internal)
            if bucket <= 1 << 24 and len(free) < 4:
                free.append(staging)
            if words is not None:
                self._error_armed = False
                if words[0]:
                    self._raise_reported(*words)
        return data

    def _new_staging(self, nbytes: int) -> Any:
        return self.gpu.create_buffer(size=nbytes, usage=wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST)

    def _raise_reported(self, code: int, value: int, length: int, kind: int) -> None:
        """Raise what `report_error` of wgsl/integer.wgsl left in the error words, and clear them."""
        self.native.write(self._error._internal, bytearray(16), 16)
        op = self._error_ops[code]
        hint = "the op ran on the GPU before this read; look upstream of the value that was read"
        if kind == 1:
            raise ArgumentError(op, "negative integer exponent", got=value, expected=">= 0", hint=hint)
        expected = f"-{length} <= index < {length}"
        raise IndexOutOfRangeError(op, "index out of range", got=value, expected=expected, hint=hint)

    def sync(self) -> None:
        """Submit and wait for everything.

        Raises:
            IndexOutOfRangeError: as `read`.
        """
        with self.lock:
            self.flush()
            if self._error_armed:
                word = Buffer(self._error, 16, 0)
                self._read_bytes(word, 0, 16)
            else:
                self.native.wait()
            self._flush_at = _FIRST_FLUSH

    # ---- layout

    def contiguous(self, x: GpuArray) -> GpuArray:
        """x itself when it is dense row-major (at any offset), else a dense copy."""
        if x.contiguous:
            return x
        from ._copy import copy

        return copy(self, x)

    def aligned(self, x: GpuArray, multiple: int) -> GpuArray:
        """A dense array whose offset is divisible by `multiple` elements."""
        if x.contiguous and x.offset % multiple == 0:
            return x
        from ._copy import copy

        return copy(self, x)

    def _after_fork(self) -> None:
        self._forked = True
