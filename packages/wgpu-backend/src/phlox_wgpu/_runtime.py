"""The runtime that every kernel of this package uses.

Write a kernel as data and launch it::

    def my_kernel(kind: str) -> Kernel:  # called once, when its pipeline is first needed
        return Kernel(
            body=WGSL, inputs=(kind,), outputs=("f32",), params=(("n", "u32"), ("scale", "f32"))
        )

    out = device.empty(shape, phlox_tensor.float32)  # pooled, content undefined
    device.launch((my_kernel, "f32"), [x], [out], (n, scale), groups)

- The function and its arguments, which are hashable, are all that the source depends on.
  ``params``: numbers in the order of ``Kernel.params``.
- ``groups``: a count, folded over x and y within 65,535 per axis (use ``linear_group(group,
  groups)`` from ``@builtin(workgroup_id)`` and ``@builtin(num_workgroups)`` and check the bound),
  or an (x, y, z) tuple. 0: no launch.
- A binding is the whole buffer: pass ``x.offset`` as a parameter. An output must not be an input of
  the same launch (bind it once, as an output: outputs are read_write).
- Commands are recorded and submitted in batches, in order; barriers are automatic. ``read`` and
  ``sync`` are the only waits.
- Index kernels: ``index_errors="take"`` gives ``checked_index`` in WGSL (see Kernel); the next read
  raises.
- ``_copy.contiguous(device, x)`` gives a dense row-major array: x itself when it is one.
- Ops of a module: ``ENTRIES: Entries = {"take": take, ...}`` with functions ``f(device, *operands,
  *attributes)``; add the module to ``_table._MODULES``.
- WGSL helper functions (``wgsl/*.wgsl``: exp_f, max_f, ...) are put in front of a body that names
  them.
- NaN and infinities: see wgsl/float.wgsl; never compare ``x != x``, the compiler folds it away.
"""

from __future__ import annotations

import atexit
import os
import struct
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from phlox_tensor import ArgumentError, DeviceError, IndexOutOfRangeError, MemoryUse

from ._array import GpuArray, Result, Storage, array_of, dense_strides, result_of
from ._cache import Recent
from ._engine import Buffer, Engine, Noted, Pipeline, driver
from ._errors import DeviceMemoryError, ForkedLock, ShaderError, too_wide
from ._kernel import Kernel
from ._locks import lock
from ._pipelines import Pipelines
from ._pool import Pool
from ._sizes import PART_BYTES
from ._tape import Scratch, Tape

if TYPE_CHECKING:
    from phlox_tensor import DType

__all__ = ["GpuArray", "GpuDevice", "Kernel", "ShaderError", "dense_strides", "grid"]

_MAX_GROUPS = 65535
_KEPT_PLANS = 8192
_ERROR_BYTES = 16


def grid(groups: int | tuple[int, int, int]) -> tuple[int, int, int]:
    """Fold a count of workgroups so that no axis is over 65,535.

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
    """One device: memory pool, kernels, and what its engine records. Thread-safe."""

    def __init__(self, engine: Engine, *, software: bool, by_halves: bool = False) -> None:
        self.engine = engine
        self.limits = dict(engine.limits)
        self.features = frozenset(engine.features)
        self.lock = lock()
        largest = min(
            self.limits["max-storage-buffer-binding-size"], self.limits["max-buffer-size"]
        )
        self.max_binding_bytes = largest & ~15  # whole vec4
        # A CPU that plays a GPU: barriers and long kernels cost more than they save.
        self.software = software
        self.pool = Pool(engine, self.max_binding_bytes, engine.forget)
        self.pipelines = Pipelines(engine, self.limits)
        self.plans: Recent[Hashable, Any] = Recent(_KEPT_PLANS)
        self.tape: Tape | None = None
        self.scratch = Scratch()
        self._begun: WeakKeyDictionary[GpuArray, Any] = WeakKeyDictionary()  # reads
        self.tensor_lanes: int | None = None  # products.tensor_cores asks at the first product
        self.by_halves = by_halves  # products of float32 as three of float16
        # Buffers that one kernel may bind; the uniform with its parameters is none of them.
        self.max_bindings: int = self.limits["max-storage-buffers-per-shader-stage"]
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)
        atexit.register(self._at_exit)

    def _after_fork(self) -> None:
        # Every call into the driver takes the lock first; in the child it would hang or crash.
        self.lock = ForkedLock()

    def _at_exit(self) -> None:
        with suppress(DeviceError), self.lock:  # which is that of another process after a fork
            self.engine.close()

    # Memory

    def empty(self, shape: tuple[int, ...], dtype: DType) -> GpuArray:
        """Make a dense array with undefined content.

        Raises:
            DeviceMemoryError: the tensor is over the adapter's binding limit, or the device is out
                of memory.
        """
        result = result_of(shape, dtype)
        with self.lock:
            return self._made(result)

    def _made(self, result: Result) -> GpuArray:
        """A new array with undefined content. The caller holds the lock."""
        return array_of(result, self._storage(result[3]), 0)

    def storage(self, nbytes: int) -> Storage:
        """Take a buffer of at least `nbytes` from the pool."""
        with self.lock:
            return self._storage(nbytes)

    def _storage(self, nbytes: int) -> Storage:
        if nbytes > self.max_binding_bytes:
            limit = f"{self.max_binding_bytes} (the adapter's max-storage-buffer-binding-size)"
            raise DeviceMemoryError(
                "wgpu",
                "tensor too large for one binding",
                got=f"{nbytes} bytes",
                expected=f"at most {limit}",
                hint="split the tensor, or keep it on the Cpu backend",
            )
        try:
            buffer = self.pool.take(nbytes)
        except driver.DriverError:
            buffer = self._take_again(nbytes)
        storage = Storage()
        storage.buffer = buffer
        storage.pool = self.pool
        storage.line = storage.taken = 0
        storage.newest = None
        if self.tape is not None:
            self.tape.made.add(storage)
        return storage

    def _take_again(self, nbytes: int) -> Buffer:
        """Take a buffer after the driver had none: with all free ones back in its hands."""
        try:
            self.trim()
            # The driver frees a buffer when the work that uses it is done, not when told to.
            self.engine.drain()
            return self.pool.take(nbytes)
        except driver.DriverError as error:
            raise self.told(error, f"a request for {nbytes} bytes") from error

    def told(self, error: Exception, request: str) -> Exception:
        """Return what to raise for an error of the driver."""
        if "another process" in str(error):
            return DeviceError(
                "wgpu",
                "another process did not come to where GPUs meet, and what it writes is missing",
                hint="phlox launch -n 4 script.py, which starts all again when one dies",
            )
        if "is lost" in str(error):
            return DeviceError(
                "wgpu",
                "the GPU was lost, and with it the tensors on it (its driver was reset or updated, "
                "a kernel ran too long, or it was unplugged)",
                hint="start the program again, from the last record that it saved",
            )
        if "memory" in str(error):  # the driver's "Not enough memory left" comes as validation
            return DeviceMemoryError(
                "wgpu",
                "out of device memory",
                got=f"{request} with {self.pool.current_bytes} in use",
                hint="use smaller batches",
            )
        return error

    def memory(self) -> MemoryUse:
        """Return the bytes of buffers in use, now and at most."""
        with self.lock:
            self.pool.collect()
            return MemoryUse(self.pool.current_bytes, self.pool.peak_bytes)

    def trim(self) -> int:
        """Give unused pooled memory back to the driver; returns the bytes."""
        with self.lock:
            self.scratch.clear()
            return self.pool.trim()

    # Recording

    def pipeline(self, make: Callable[..., Kernel], *args: Hashable) -> Pipeline:
        """Return the compiled kernel that `make` gives for `args`; ``.text`` is its shader.

        Raises:
            ShaderError: the kernel does not compile (its text is in the error).
        """
        with self.lock:
            try:
                return self.pipelines.get(make, *args)
            except driver.DriverError as error:
                raise self.told(error, "compiling a kernel") from error

    def launch(
        self,
        kernel: tuple[Any, ...],
        inputs: Sequence[GpuArray],
        outputs: Sequence[GpuArray],
        params: Sequence[float],
        groups: int | tuple[int, int, int],
    ) -> None:
        """Record one dispatch. See the module's docstring.

        Raises:
            ShaderError: the kernel does not compile (its text is in the error).
        """
        self.record(self.pipeline(*kernel), inputs, [*outputs], params, grid(groups))

    def record(
        self,
        pipeline: Pipeline,
        inputs: Sequence[GpuArray],
        outputs: list[GpuArray],
        params: Sequence[float],
        grid: tuple[int, int, int],
        results: Sequence[Result] = (),
    ) -> None:
        """Record one dispatch of a compiled kernel over a grid of workgroups, if there are some.

        Arrays are made for `results`, and added to the outputs.
        """
        x, y, z = grid
        with self.lock:
            for result in results:
                outputs.append(self._made(result))
            if not (x and y and z):
                return
            try:
                self.engine.record(pipeline, inputs, outputs, params, x, y, z)
            except (struct.error, OverflowError) as error:
                raise too_wide(params) from error
            except driver.DriverError as error:
                raise self.told(error, "recording a kernel") from error
            if self.tape is not None:
                self.tape.note(pipeline, inputs, outputs, params, grid)

    def script(self, noted: Sequence[Noted]) -> Any:
        """Return what `record_again` takes for dispatches that were noted."""
        try:
            return self.engine.script(noted)
        except driver.DriverError as error:
            raise self.told(error, "keeping the kernels of a function") from error

    def record_again(self, script: Any, table: Sequence[Buffer], held: object) -> None:
        """Record a script, `table` being what it binds anew each time.

        What else it binds is `held` until it is submitted. The caller holds the lock.
        """
        try:
            self.engine.repeat(script, table, held)
        except driver.DriverError as error:
            raise self.told(error, "recording kernels again") from error

    def flush(self) -> None:
        """Submit what is recorded; does not wait."""
        with self.lock:
            try:
                self.engine.flush()
            except driver.DriverError as error:
                raise self.told(error, "submitting work") from error

    # Transfers

    def upload(self, array: np.ndarray, dtype: DType) -> GpuArray:
        """Copy a host array to a dense array on the device."""
        wide = np.uint32 if dtype.name == "bool" else None
        host = np.ascontiguousarray(array, dtype=wide)
        out = self.empty(array.shape, dtype)
        if not host.nbytes:
            return out
        data = host.reshape(-1).view(np.uint8)
        if data.size % 4:
            data = np.pad(data, (0, 4 - data.size % 4))
        with self.lock:
            try:
                self.engine.write(out.storage.buffer, data)
            except driver.DriverError as error:
                raise self.told(error, f"the upload of {data.size} bytes") from error
            if self.tape is not None:
                self.tape.filled.add(out.storage)
        return out

    def read(self, x: GpuArray) -> np.ndarray:
        """Return the array's values on the host, waiting for the GPU.

        All that lies between its first and last element is brought over: see `_copy.packed`.

        Raises:
            IndexOutOfRangeError: a kernel recorded since the last read met an index out of range.
            ArgumentError: one met a negative integer exponent.
        """
        if x.size == 0:
            self.sync()
            return np.empty(x.shape, x.dtype.numpy)
        width = x.item_bytes
        first, nbytes = _span(x)
        data = self._read_bytes(x.storage.buffer, first, nbytes, self._begun.pop(x, None))
        stored = np.dtype(np.uint32) if x.dtype.name == "bool" else x.dtype.numpy
        strides = tuple(step * width for step in x.strides)
        view = np.ndarray(x.shape, stored, data, x.offset * width - first, strides)
        if x.dtype.name == "bool":
            return np.asarray(view != 0)
        return view if x.contiguous else np.array(view, order="C")

    def begin_read(self, x: GpuArray) -> None:
        """Begin to bring an array over, for the next `read` of it; a large one waits for that."""
        if not x.size:
            return
        first, nbytes = _span(x)
        if nbytes <= PART_BYTES:
            with self.lock:
                self._begun[x] = self._ask(x.storage.buffer, first, nbytes)

    def _ask(self, buffer: Buffer | None, first: int, nbytes: int) -> Any:
        """Ask for bytes. The caller holds the lock."""
        if self.tape is not None:
            self.tape.whole = False
        return self.engine.ask(buffer, first, nbytes)

    def _read_bytes(
        self, buffer: Buffer | None, first: int, nbytes: int, begun: Any = None
    ) -> np.ndarray:
        """Copy bytes to the host, in parts that staging buffers hold, and raise what is reported.

        An error of the driver in between is reported as one.
        """
        data = np.empty(nbytes, np.uint8)  # in huge pages, where there are any
        for start in range(0, nbytes, PART_BYTES):
            count = min(PART_BYTES, nbytes - start)
            try:
                words = self._read_part(buffer, first + start, data.data[start:][:count], begun)
            except driver.DriverError as error:
                raise self.told(error, f"a read of {nbytes} bytes") from error
            if words:
                self._raise_reported(words)
        return data

    def _read_part(
        self, buffer: Buffer | None, first: int, data: memoryview, ticket: Any = None
    ) -> bytes:
        """Fill `data`. The lock is free during the wait, so that other threads go on recording.

        Returns the words in which kernels report errors, or nothing when none of those ran.
        """
        if ticket is None:
            with self.lock:
                ticket = self._ask(buffer, first, len(data))
        self.engine.wait(ticket)
        with self.lock:
            return self.engine.take(ticket, data)

    def _raise_reported(self, words: bytes) -> None:
        """Raise what `report_error` of wgsl/integer.wgsl left in the error words."""
        code, value, length, kind = memoryview(words).cast("i")
        if not code:
            return
        op = self.pipelines.error_ops[code]
        hint = (
            "the op ran before this read, perhaps as a part of one that you called; "
            "with device=px.Numpy() the call itself raises"
        )
        if kind == 1:
            what = "negative integer exponent"
            raise ArgumentError(op, what, got=value, expected=">= 0", hint=hint)
        what, allowed = "index out of range", f"{-length} <= index < {length}"
        raise IndexOutOfRangeError(op, what, got=value, expected=allowed, hint=hint)

    def sync(self) -> None:
        """Submit everything and wait for it.

        Raises:
            IndexOutOfRangeError, ArgumentError: as `read`.
        """
        self._read_bytes(None, 0, _ERROR_BYTES)


def _span(x: GpuArray) -> tuple[int, int]:
    """Where words from the first to the last element begin, and their bytes."""
    reach = [(n - 1) * step for n, step in zip(x.shape, x.strides, strict=True)]
    low = x.offset + sum(step for step in reach if step < 0)
    high = x.offset + sum(step for step in reach if step > 0) + 1
    first = low * x.item_bytes & ~3
    return first, -(-(high * x.item_bytes - first) // 4) * 4
