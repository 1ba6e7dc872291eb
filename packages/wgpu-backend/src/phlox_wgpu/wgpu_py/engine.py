"""Recording, submitting and reading through wgpu-py. `_engine.Engine` says what is to be done."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from typing import Any, NamedTuple, final

import numpy as np
import wgpu
from wgpu.backends.wgpu_native.extras import set_instance_extras

from .._cache import Recent
from .._kernel import FEATURES
from .calls import Copy, Dispatch, Native, missing
from .staging import Staging

DriverError = wgpu.GPUError

_UNIFORM = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
_STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST

_RING_BYTES = 1 << 20
_FIRST_FLUSH = 16  # starts the GPU early after a wait
_LATER_FLUSH = 128
_NEVER = 1 << 30
_KEPT_BIND_GROUPS = 8192
_ERROR_BYTES = 16


def adapters() -> list[Any]:
    """All adapters of Vulkan, Metal and DX12."""
    _leave_opengl_out()
    return list(wgpu.gpu.enumerate_adapters_sync())


@cache
def _leave_opengl_out() -> None:
    """Ask for Vulkan, Metal and DX12 only: half the time to the first adapter."""
    with suppress(RuntimeError):  # another library has made the instance, with all of them
        set_instance_extras(backends=["Primary"])


@final
class Buffer:
    """A wgpu buffer of one size class. ``batch`` numbers the last command batch that used it."""

    __slots__ = ("batch", "gpu", "handle", "nbytes", "serial")

    def __init__(self, gpu: Any, nbytes: int, serial: int) -> None:
        self.gpu = gpu
        self.handle = gpu._internal
        self.nbytes = nbytes
        self.serial = serial
        self.batch = -1


@final
@dataclass(slots=True)
class Layout:
    """A bind group layout, shared by all kernels that bind the same number of things."""

    serial: int
    gpu: Any
    pipeline_layout: Any
    slot: int
    index_errors: bool


@final
@dataclass(slots=True, weakref_slot=True)
class Pipeline:
    """A compiled kernel and what the recorder needs of it."""

    gpu: Any
    handle: Any
    layout: Layout
    packer: struct.Struct
    slot: int
    text: str
    index_errors: bool

    def pack(self, params: Sequence[float]) -> bytes:
        """The numbers of a launch as the shader reads them."""
        return self.packer.pack(*params)


class _Varying(NamedTuple):
    """A dispatch that binds other buffers each time.

    Attributes:
        pipeline: what runs.
        key: names the layout and the buffer of parameters among all bind groups.
        places: what it binds: a buffer, or the place of one in a table.
        bind: makes the bind group.
        rest: the offset of the parameters, then the grid.
    """

    pipeline: Pipeline
    key: tuple[int, ...]
    places: tuple[Buffer | int, ...]
    bind: Callable[[Sequence[Buffer]], Any]
    rest: tuple[int, int, int, int]


@final
class Script(NamedTuple):
    """Dispatches to record again, and the buffer of their numbers."""

    run: tuple[_Varying | Dispatch, ...]
    uniform: Any
    index_errors: bool


class Ticket(NamedTuple):
    """A read on its way: the number of its map, where it lands, and how many bytes are wanted."""

    number: int
    size: int
    staging: Any
    nbytes: int
    total: int


class Engine:
    """One open device: see `_engine.Engine`. The caller holds a lock, except in `wait`."""

    products: tuple[tuple[int, int, int, str, str], ...] = ()  # wgpu-native has them not
    lanes = 0

    def __init__(self, adapter: Any, debug: bool) -> None:
        """Open an adapter with its own limits.

        Raises:
            RuntimeError: it does not open, or wgpu-py is not one that this works with.
        """
        lacks = missing()
        if lacks:
            raise RuntimeError(
                f"[wgpu] this wgpu-py lacks {', '.join(lacks)}\n"
                "hint: pip install 'wgpu>=0.32,<0.33'"
            )
        features = [name for name in FEATURES if name in adapter.features]
        # Without required_limits wgpu-py asks for the adapter's own, which large tensors need.
        gpu = adapter.request_device_sync(label="phlox", required_features=features)
        self.gpu = gpu
        self.limits: dict[str, int] = dict(gpu.limits)
        self.features = frozenset(gpu.features)
        self.native = Native(gpu)
        self._debug = debug
        self._serials = count(1)
        self._batch = 0
        self._layouts: dict[tuple[int, int, int, bool], Layout] = {}
        self._groups: Recent[tuple[int, ...], Any] = Recent(_KEPT_BIND_GROUPS)
        self._flush_at = _FIRST_FLUSH
        self._pending: list[Dispatch] = []
        self._held: list[object] = []  # of scripts, whose buffers pending dispatches bind
        self._staging = Staging(gpu)
        self._ring = gpu.create_buffer(size=_RING_BYTES, usage=_UNIFORM)
        self._ring_data = bytearray(_RING_BYTES)
        self._ring_used = self._ring_sent = 0
        self._known: dict[bytes, int] = {}  # where numbers lie in the ring: launches repeat some
        self._error = gpu.create_buffer(size=_ERROR_BYTES, usage=_STORAGE)
        self._error_armed = False

    @property
    def counts(self) -> tuple[int, int]:
        """How many dispatches wait to be submitted, and how many bind groups are kept."""
        return len(self._pending), len(self._groups)

    # Buffers and kernels

    def buffer(self, nbytes: int) -> Buffer:
        """A storage buffer."""
        return Buffer(
            self.gpu.create_buffer(size=nbytes, usage=_STORAGE), nbytes, next(self._serials)
        )

    def destroy(self, buffer: Buffer) -> None:
        """Let a buffer go; the driver frees it when the work that uses it is done."""
        buffer.gpu.destroy()

    def pipeline(
        self,
        label: str,
        text: str,
        inputs: int,
        outputs: int,
        format: str,
        index_errors: bool,
        checks: bool,
    ) -> Pipeline:
        """Compile a shader, which has no bounds and loop counters of naga unless asked to."""
        packer = struct.Struct(f"<{format}")
        align = self.limits["min-uniform-buffer-offset-alignment"]
        slot = -(-packer.size // align) * align
        layout = self._layout(inputs, outputs, slot, index_errors)
        module = self.native.module(label, text, checks=checks)
        stage = {"module": module, "entry_point": "main"}
        gpu = self.gpu.create_compute_pipeline(
            label=label, layout=layout.pipeline_layout, compute=stage
        )
        return Pipeline(gpu, gpu._internal, layout, packer, slot, text, index_errors)

    def compiles(self, text: str) -> bool:
        """Whether the compiler takes a shader."""
        try:
            self.native.module("", text)
        except (wgpu.GPUError, RuntimeError) as error:
            if "is lost" in str(error):
                raise
            return False
        return True

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
        gpu = self.gpu.create_bind_group_layout(entries=entries)
        pipeline_layout = self.gpu.create_pipeline_layout(bind_group_layouts=[gpu])
        layout = Layout(len(self._layouts), gpu, pipeline_layout, slot, index_errors)
        self._layouts[key] = layout
        return layout

    # Recording

    def record(
        self,
        pipeline: Pipeline,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        params: Sequence[float],
        x: int,
        y: int,
        z: int,
    ) -> None:
        """Record one dispatch over x * y * z workgroups."""
        offset = -1
        if pipeline.slot:
            data = pipeline.packer.pack(*params)
            offset = self._known.get(data, -1)
            if offset < 0:
                offset = self._place(data, pipeline.slot)
        batch = self._batch
        names = [pipeline.layout.serial]
        for array in (*inputs, *outputs):
            buffer: Any = array.storage.buffer
            buffer.batch = batch
            names.append(buffer.serial)
        key = tuple(names)
        group = self._groups.get(key) or self._groups.find(
            key,
            lambda: self._bind(
                pipeline.layout, self._ring, [a.storage.buffer for a in (*inputs, *outputs)]
            ),
        )
        if pipeline.index_errors:
            self._error_armed = True
        pending = self._pending
        pending.append((pipeline, group._internal, group, offset, x, y, z))
        if len(pending) >= self._flush_at or self._debug:
            self.flush()

    def _place(self, data: bytes, slot: int) -> int:
        """Put numbers, which are not known yet, after the others of the ring."""
        if self._ring_used + slot > _RING_BYTES:
            self._submit([])
            self._known.clear()
            self._ring_used = self._ring_sent = 0
        place = self._ring_used
        self._ring_data[place : place + len(data)] = data
        self._ring_used = place + slot
        self._known[data] = place
        return place

    def _bind(self, layout: Layout, uniform: Any, buffers: Sequence[Any]) -> Any:
        """Make a bind group, whose kernel reads its parameters from `uniform`."""
        entries = [(uniform._internal, layout.slot)] if layout.slot else []
        entries += [(buffer.handle, buffer.nbytes) for buffer in buffers]
        if layout.index_errors:
            entries.append((self._error._internal, _ERROR_BYTES))
        return self.native.bind_group(layout.gpu, entries)

    def script(self, noted: Sequence[Noted]) -> Script:
        """Dispatches to record again."""
        data = bytearray()
        offsets = []
        for pipeline, _, params, _ in noted:
            offsets.append(len(data) if pipeline.slot else -1)
            data += params.ljust(pipeline.slot, b"\0")
        uniform = self.gpu.create_buffer(size=max(len(data), 4), usage=_UNIFORM)
        if data:
            self.native.write(uniform._internal, data, len(data))
        serial = next(self._serials)
        run: list[_Varying | Dispatch] = []
        for (pipeline, places, _, grid), offset in zip(noted, offsets, strict=True):
            layout = pipeline.layout
            buffers = [place for place in places if isinstance(place, Buffer)]
            rest = (offset, *grid)
            if len(buffers) < len(places):
                key = (layout.serial, -serial) if layout.slot else (layout.serial,)
                bind = partial(self._bind, layout, uniform)
                run.append(_Varying(pipeline, key, tuple(places), bind, rest))
            else:
                group = self._bind(layout, uniform, buffers)
                run.append((pipeline, group._internal, group, *rest))
        return Script(tuple(run), uniform, any(one[0].index_errors for one in noted))

    def repeat(self, script: Script, table: Sequence[Buffer], held: object) -> None:
        """Record a script with the buffers of a table; what else it binds is held until then."""
        self._error_armed = self._error_armed or script.index_errors
        groups = self._groups
        for item in script.run:
            if isinstance(item, _Varying):
                buffers = [table[p] if isinstance(p, int) else p for p in item.places]
                key = (*item.key, *[buffer.serial for buffer in buffers])
                group = groups.get(key) or groups.find(key, partial(item.bind, buffers))
                item = (item.pipeline, group._internal, group, *item.rest)  # noqa: PLW2901
            self._pending.append(item)
            if len(self._pending) >= self._flush_at:
                self.flush()
        for buffer in table:
            buffer.batch = self._batch
        if self._pending:
            self._held.append((script, held))

    def flush(self) -> None:
        """Submit what is recorded; does not wait."""
        self._submit([])
        self._flush_at = _LATER_FLUSH

    def forget(self) -> None:
        """Submit, and forget bind groups, which hold buffers, and what reads landed in."""
        self.flush()
        self._groups.clear()
        self._staging.trim()

    def seconds(self, call: Callable[[], object]) -> float:
        """Record what a function does into one pass; how long the GPU's clock says that it took."""
        queries = self.gpu.create_query_set(type="timestamp", count=2)
        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        stamps = self.gpu.create_buffer(size=16, usage=usage)
        self.flush()
        self._flush_at = _NEVER
        first_batch = self._batch
        with self.native.stamped(queries):
            call()
            self.flush()
        if self._batch != first_batch + 1:  # the clock of the last of several tells a part
            return 0.0
        encoder = self.gpu.create_command_encoder()
        encoder.resolve_query_set(queries, 0, 2, stamps, 0)
        self.gpu.queue.submit([encoder.finish()])
        ticks = bytearray(16)
        ticket = self.ask(Buffer(stamps, 16, 0), 0, 16)
        self.wait(ticket)
        self.take(ticket, memoryview(ticks))
        first, last = memoryview(ticks).cast("Q")
        return max(0, last - first) * self.native.tick_seconds()

    def _submit(self, copies: list[Copy]) -> None:
        pending = self._pending
        if not pending and not copies:
            return
        self._pending = []
        held, self._held = self._held, []
        self._batch += 1
        first, used = self._ring_sent, self._ring_used
        if used > first:
            # Ordered after the submits before and before this one: one ring serves all.
            new = self._ring_data[first:used]
            self.native.write(self._ring._internal, new, len(new), first)
            self._ring_sent = used
        self.native.submit(pending, copies)
        del held

    # Transfers

    def write(self, buffer: Buffer, data: np.ndarray | bytearray) -> None:
        """Copy host bytes, a multiple of 4, to the start of a buffer, after what is recorded."""
        if buffer.batch == self._batch:  # a recorded command still reads its old content
            self.flush()
        self.native.write(buffer.handle, data, len(data))

    def ask(self, buffer: Buffer | None, first: int, nbytes: int) -> Ticket:
        """Copy to a staging buffer at the end of what is recorded; None asks for error words."""
        size, staging = self._staging.take(nbytes + _ERROR_BYTES)
        armed, self._error_armed = self._error_armed, False
        total = nbytes + (_ERROR_BYTES if armed else 0)
        target = staging._internal
        source = self._error._internal if buffer is None else buffer.handle
        copies: list[Copy] = [(source, first, target, 0, nbytes)]
        if armed:
            copies.append((self._error._internal, 0, target, nbytes, _ERROR_BYTES))
        self._submit(copies)
        self._flush_at = _FIRST_FLUSH
        return Ticket(self.native.map(target, total), size, staging, nbytes, total)

    def take(self, ticket: Ticket, data: memoryview) -> bytes:
        """Fill `data`; the words in which kernels report errors, or nothing when none of those ran.

        Words that tell of an error are cleared on the GPU.
        """
        target = ticket.staging._internal
        mapped = self.native.mapped(target, ticket.total)
        data[:] = mapped[: ticket.nbytes]
        words = bytes(mapped[ticket.nbytes :])
        self.native.unmap(target)
        self._staging.give(ticket.size, ticket.staging)
        if any(words[:4]):
            self.native.write(self._error._internal, bytearray(_ERROR_BYTES), _ERROR_BYTES)
        return words

    def wait(self, ticket: Ticket) -> None:
        """Block until the bytes are here. Needs no lock: other threads go on recording."""
        self.native.wait_mapped(ticket.number)

    def drain(self) -> None:
        """Block until all is done and the driver has let go of destroyed buffers."""
        self.flush()
        self.native.drain()

    def lose(self) -> None:
        """Give the device up, as a driver does that is reset."""
        self.native.lose()

    def close(self) -> None:
        """Do nothing: no thread is at work here, and what was not submitted is not needed."""


# A kernel, what it binds (a buffer, or a place in a table), the bytes of its numbers, its grid.
Noted = tuple[Pipeline, Sequence[Buffer | int], bytes, tuple[int, int, int]]
