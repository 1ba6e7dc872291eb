"""Recording, submitting and reading through navigator.gpu. `_engine.Engine` says what is done.

Waits suspend the Python that called, and the page goes on meanwhile: JavaScript Promise
Integration, which a browser must have. `lock` says what holds off a second call.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module, resources
from itertools import count
from typing import Any, NamedTuple, final

import numpy as np

from .._cache import Recent
from .._sizes import PART_BYTES, size_class
from .lock import LOCK, ffi

_RING_BYTES = 1 << 20
_FIRST_FLUSH = 16  # starts the GPU early after a wait
_LATER_FLUSH = 128
_KEPT_BIND_GROUPS = 8192
_ERROR_BYTES = 16


class DriverError(RuntimeError):
    """What the browser has against a call."""


@cache
def _calls() -> Any:
    text = resources.files(__name__.rpartition(".")[0]).joinpath("calls.js").read_text("utf-8")
    return import_module("pyodide.code").run_js(text)


def _wait(promise: Any) -> Any:
    """What a promise gives.

    Raises:
        DriverError: it is rejected.
    """
    try:
        return LOCK.wait(promise)
    except ffi().JsException as error:
        raise DriverError(str(error)) from None


def _bytes(data: Any) -> Any:
    """A copy on the side of JavaScript."""
    return ffi().to_js(memoryview(data).cast("B"))


@final
class Adapter(NamedTuple):
    """A GPU of the browser, as wgpu-py describes them."""

    handle: Any
    info: dict[str, Any]
    limits: dict[str, int]
    features: frozenset[str]


def adapters() -> list[Adapter]:
    """The one that the browser gives, if it gives one.

    Raises:
        DriverError: this Python was not called in a way that can wait.
    """
    if not ffi().can_run_sync():
        raise DriverError("Python can wait for the GPU only inside of pyodide.runPythonAsync")
    return [
        Adapter(
            each.adapter,
            {
                "adapter_type": "CPU" if each.software else "GPU",
                "backend_type": "WebGPU",
                "description": "the browser's",
                "device": each.name,
                "device_id": 0,
                "vendor": each.vendor,
                "vendor_id": 0,
            },
            _limits(each.limits),
            frozenset(each.features),
        )
        for each in _wait(_calls().adapters())
    ]


def _limits(found: Any) -> dict[str, int]:
    """Limits by their names in wgpu-py: "max-buffer-size" of maxBufferSize."""
    named: dict[str, float] = found.to_py()
    return {
        re.sub("[A-Z]", lambda match: f"-{match[0].lower()}", name): int(value)
        for name, value in named.items()
    }


@final
class Buffer:
    """A buffer of one size class. ``batch`` numbers the last command batch that used it."""

    __slots__ = ("batch", "handle", "nbytes", "serial")

    def __init__(self, handle: Any, nbytes: int, serial: int) -> None:
        self.handle = handle
        self.nbytes = nbytes
        self.serial = serial
        self.batch = -1


@final
class Pipeline:
    """A compiled kernel and what the recorder needs of it."""

    def __init__(
        self, handle: Any, layout: Any, serial: int, packer: struct.Struct, slot: int, text: str
    ) -> None:
        self.handle = handle
        self.layout = layout
        self.serial = serial  # of the layout
        self.packer = packer
        self.slot = slot
        self.text = text
        self.index_errors = False

    def pack(self, params: Sequence[float]) -> bytes:
        """The numbers of a launch as the shader reads them."""
        return self.packer.pack(*params)


Noted = tuple[Pipeline, Sequence[Buffer | int], bytes, tuple[int, int, int]]


@final
class Script:
    """Dispatches to record again: kernel, what it binds, its bind group's maker, rest."""

    __slots__ = ("index_errors", "run", "serial", "uniform")

    def __init__(
        self,
        run: Sequence[tuple[Pipeline, tuple[Buffer | int, ...], Any, tuple[int, ...]]],
        serial: int,
        uniform: Any,
    ) -> None:
        """Keep them, and the buffer of their numbers."""
        self.run = run
        self.serial = serial
        self.uniform = uniform
        self.index_errors = any(pipeline.index_errors for pipeline, *_ in run)

    def __del__(self) -> None:
        """Free the buffer, which no recorded work uses: that holds the script."""
        self.uniform.destroy()


class Ticket(NamedTuple):
    """A read on its way: what it gives, and how many bytes of that are wanted."""

    promise: Any
    nbytes: int
    arrived: list[Any]


@final
class Engine:
    """One open device: see `_engine.Engine`."""

    products: tuple[tuple[int, int, int, str, str], ...] = ()  # no browser has them yet
    lanes = 0

    def __init__(self, adapter: Adapter, debug: bool) -> None:
        """Open an adapter with its own limits.

        Raises:
            DriverError: it does not open.
        """
        self.gpu = _wait(_calls().open(adapter.handle))
        self.limits = _limits(self.gpu.limits())
        self.features = adapter.features
        self._debug = debug
        self._serials = count(1)
        self._batch = 0
        self._layouts: dict[tuple[str, ...], tuple[int, Any]] = {}
        self._groups: Recent[tuple[int, ...], Any] = Recent(_KEPT_BIND_GROUPS)
        self._flush_at = _FIRST_FLUSH
        self._pending: list[Any] = []  # six for each dispatch: see `submit` of calls.js
        self._count = 0
        self._held: list[object] = []  # of scripts, whose buffers pending dispatches bind
        self._ring = self.gpu.buffer(_RING_BYTES, "uniform")
        self._ring_data = bytearray(_RING_BYTES)
        self._ring_used = 0
        self._error = self.gpu.buffer(_ERROR_BYTES, "storage")
        self._error_armed = False

    @property
    def counts(self) -> tuple[int, int]:
        """How many dispatches wait to be submitted, and how many bind groups are kept."""
        return self._count, len(self._groups)

    # Buffers and kernels

    def buffer(self, nbytes: int) -> Buffer:
        """A storage buffer. Lack of memory is reported later."""
        return Buffer(self.gpu.buffer(nbytes, "storage"), nbytes, next(self._serials))

    def destroy(self, buffer: Buffer) -> None:
        """Let a buffer go; the driver frees it when the work that uses it is done."""
        buffer.handle.destroy()

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
        """Compile a shader. A browser checks bounds always."""
        packer = struct.Struct(f"<{format}")
        align = self.limits["min-uniform-buffer-offset-alignment"]
        slot = -(-packer.size // align) * align
        read, written = ("read-only-storage",) * inputs, ("storage",) * (outputs + index_errors)
        kinds = (*(("uniform",) if slot else ()), *read, *written)
        if kinds not in self._layouts:
            self._layouts[kinds] = len(self._layouts), self.gpu.layout(ffi().to_js(kinds))
        serial, layout = self._layouts[kinds]
        handle = _wait(self.gpu.pipeline(label, text, layout))
        made = Pipeline(handle, layout, serial << 1 | index_errors, packer, slot, text)
        made.index_errors = index_errors
        return made

    def compiles(self, text: str) -> bool:
        """Whether the compiler takes a shader."""
        try:
            _wait(self.gpu.module("", text))
        except DriverError as error:
            if "is lost" in str(error):
                raise
            return False
        return True

    def _bind(self, pipeline: Pipeline, uniform: Any, buffers: Sequence[Buffer]) -> Any:
        """Make a bind group, whose kernel reads its parameters from `uniform`."""
        bound = [uniform, pipeline.slot] if pipeline.slot else []
        for buffer in buffers:
            bound += (buffer.handle, buffer.nbytes)
        if pipeline.index_errors:
            bound += (self._error, _ERROR_BYTES)
        return self.gpu.bind(pipeline.layout, ffi().to_js(bound))

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
            offset = self._ring_used
            if offset + pipeline.slot > _RING_BYTES:
                self._submit([])
                offset = 0
            pipeline.packer.pack_into(self._ring_data, offset, *params)
            self._ring_used = offset + pipeline.slot
        buffers = [array.storage.buffer for array in (*inputs, *outputs)]
        key = (pipeline.serial, *[buffer.serial for buffer in buffers])
        make = partial(self._bind, pipeline, self._ring, buffers)
        group = self._groups.get(key) or self._groups.find(key, make)
        for buffer in buffers:
            buffer.batch = self._batch
        self._error_armed = self._error_armed or pipeline.index_errors
        self._append(pipeline, group, (offset, x, y, z))

    def _append(self, pipeline: Pipeline, group: Any, rest: tuple[int, ...]) -> None:
        self._pending += (pipeline.handle, group, *rest)
        self._count += 1
        if self._count >= self._flush_at or self._debug:
            self.flush()

    def script(self, noted: Sequence[Noted]) -> Script:
        """Dispatches to record again."""
        data = bytearray()
        offsets = []
        for pipeline, _, params, _ in noted:
            offsets.append(len(data) if pipeline.slot else -1)
            data += params.ljust(pipeline.slot, b"\0")
        uniform = self.gpu.buffer(max(len(data), 4), "uniform")
        if data:
            self.gpu.write(uniform, _bytes(data))
        run = []
        for (pipeline, places, _, grid), offset in zip(noted, offsets, strict=True):
            make = partial(self._bind, pipeline, uniform)
            run.append((pipeline, tuple(places), make, (offset, *grid)))
        return Script(run, next(self._serials), uniform)

    def repeat(self, script: Script, table: Sequence[Buffer], held: object) -> None:
        """Record a script with the buffers of a table; what else it binds is held until then."""
        self._error_armed = self._error_armed or script.index_errors
        groups = self._groups
        for pipeline, places, make, rest in script.run:
            buffers = [table[place] if isinstance(place, int) else place for place in places]
            own = -script.serial if pipeline.slot else 0
            key = (pipeline.serial, own, *[buffer.serial for buffer in buffers])
            group = groups.get(key) or groups.find(key, partial(make, buffers))
            self._append(pipeline, group, rest)
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
        self.gpu.trim(0)

    def seconds(self, call: Callable[[], object]) -> float:
        """0: browsers round the clocks of GPUs."""
        call()
        self.flush()
        return 0.0

    def _submit(self, copies: list[Any]) -> None:
        if not self._pending and not copies:
            return
        pending, self._pending, self._count = self._pending, [], 0
        held, self._held = self._held, []
        self._batch += 1
        used, self._ring_used = self._ring_used, 0
        if used:
            # Ordered after the submits before and before this one: one ring serves all.
            self.gpu.write(self._ring, _bytes(memoryview(self._ring_data)[:used]))
        told = self.gpu.submit(ffi().to_js(pending), ffi().to_js(copies))
        del held
        if self._debug:
            _wait(self.gpu.done())
            told = told or self.gpu.told()
        if told:
            raise DriverError(told)

    # Transfers

    def write(self, buffer: Buffer, data: np.ndarray | bytearray) -> None:
        """Copy host bytes, a multiple of 4, to the start of a buffer, after what is recorded."""
        if buffer.batch == self._batch:  # a recorded command still reads its old content
            self.flush()
        self.gpu.write(buffer.handle, _bytes(data))

    def ask(self, buffer: Buffer | None, first: int, nbytes: int) -> Ticket:
        """Copy to a staging buffer at the end of what is recorded; None asks for error words."""
        landing = self.gpu.landing(size_class(nbytes + _ERROR_BYTES, 2 * PART_BYTES))
        armed, self._error_armed = self._error_armed, False
        total = nbytes + (_ERROR_BYTES if armed else 0)
        source = self._error if buffer is None else buffer.handle
        copies = [source, first, landing, 0, nbytes]
        if armed:
            copies += (self._error, 0, landing, nbytes, _ERROR_BYTES)
        self._submit(copies)
        self._flush_at = _FIRST_FLUSH
        return Ticket(self.gpu.landed(landing, total), nbytes, [])

    def wait(self, ticket: Ticket) -> None:
        """Suspend this Python until the bytes are here."""
        ticket.arrived.append(_wait(ticket.promise))

    def take(self, ticket: Ticket, data: memoryview) -> bytes:
        """Fill `data`; the words in which kernels report errors, or nothing when none of those ran.

        Words that tell of an error are cleared on the GPU.
        """
        told = self.gpu.told()
        if told:
            raise DriverError(told)
        arrived = ticket.arrived.pop().to_bytes()
        data[:] = arrived[: ticket.nbytes]
        words: bytes = arrived[ticket.nbytes :]
        if any(words[:4]):
            self.gpu.write(self._error, _bytes(bytes(_ERROR_BYTES)))
        return words

    def drain(self) -> None:
        """Suspend until all is done and the driver has let go of destroyed buffers."""
        self.flush()
        _wait(self.gpu.done())

    def lose(self) -> None:
        """Give the device up, as a driver does that is reset."""
        self.gpu.gpu.destroy()

    def close(self) -> None:
        """Do nothing: the browser ends what a page leaves."""
