"""What records and submits: wgpu-py from Python, or the package phlox-wgpu-engine if installed.

Both give the same bits. The second one, in Rust, records an op in less time, and hands work to the
driver in a thread of its own. In a browser it is navigator.gpu.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from phlox_tensor import BackendUnavailableError


class Buffer(Protocol):
    """A buffer of the GPU. No two have one `serial`."""

    @property
    def nbytes(self) -> int: ...
    @property
    def serial(self) -> int: ...


class Pipeline(Protocol):
    """A compiled kernel: its shader, the bytes that its numbers take, whether it reports errors."""

    @property
    def text(self) -> str: ...
    @property
    def slot(self) -> int: ...
    @property
    def index_errors(self) -> bool: ...
    def pack(self, params: Sequence[float], /) -> bytes: ...


Noted = tuple[Pipeline, Sequence[Buffer | int], bytes, tuple[int, int, int]]
"""A kernel; what it binds, a buffer or a place in a table; the bytes of its numbers; its grid."""


@runtime_checkable
class SharesMemory(Protocol):
    """What an engine has that takes memory of the host: the native one."""

    def imported(self, address: int, nbytes: int, /) -> Any:
        """Make a storage buffer of memory of the host, whole pages; None where that cannot be."""
        ...

    def meet(self, words: list[int], own: int, turn: int, seconds: float, /) -> Any:
        """Submit; work of later calls waits until all processes are here.

        The words that say where each process is lie at these addresses, in memory that all see.
        The device is lost where one of them does not come in so many seconds.
        """
        ...

    def reached(self, mark: Any, /) -> None:
        """Block until what was submitted before `meet` is done. Called without the lock."""
        ...


class Engine(Protocol):
    """One open device.

    The caller holds a lock at every call but `wait`. Work is done in the order of the calls. What
    the driver has against it is raised as `Driver.DriverError`, by this call or a later one.
    """

    @property
    def limits(self) -> Mapping[str, int]: ...
    @property
    def features(self) -> Sequence[str] | frozenset[str]: ...
    @property
    def products(self) -> Sequence[tuple[int, int, int, str, str]]:
        """Products of tensor cores: rows, columns, depth, types of the factors and of the sums."""
        ...

    @property
    def lanes(self) -> int:
        """Threads of every subgroup; 0 where that is open."""
        ...

    @property
    def counts(self) -> tuple[int, int]:
        """How many dispatches wait to be submitted, and how many bind groups are kept."""
        ...

    def buffer(self, nbytes: int, /) -> Any:
        """Make a storage buffer."""
        ...

    def destroy(self, buffer: Any, /) -> None:
        """Let one go. Recorded work may not use it, submitted work may."""
        ...

    def pipeline(
        self,
        label: str,
        text: str,
        inputs: int,
        outputs: int,
        format: str,
        index_errors: bool,
        checks: bool,
        /,
    ) -> Any:
        """Compile a shader with as many buffers to read and to write, and numbers of a format."""
        ...

    def compiles(self, text: str, /) -> bool:
        """Whether the compiler takes a shader."""
        ...

    def record(
        self,
        pipeline: Any,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        params: Sequence[float],
        x: int,
        y: int,
        z: int,
        /,
    ) -> None:
        """Record a dispatch."""
        ...

    def script(self, noted: Sequence[Noted], /) -> Any:
        """Make what `repeat` records."""
        ...

    def repeat(self, script: Any, table: Sequence[Buffer], held: object, /) -> None:
        """Record a script over the buffers of a table; `held` lives until it is submitted."""
        ...

    def flush(self) -> None:
        """Submit what is recorded; does not wait."""
        ...

    def forget(self) -> None:
        """Submit, and drop what holds buffers without need."""
        ...

    def write(self, buffer: Any, data: np.ndarray | bytearray, /) -> None:
        """Copy bytes, a multiple of 4, to the start of a buffer."""
        ...

    def ask(self, buffer: Any, first: int, nbytes: int, /) -> Any:
        """Submit, and begin to bring bytes of a buffer over, or with None the words of errors."""
        ...

    def wait(self, ticket: Any, /) -> None:
        """Block until what was asked for is here. Other threads may go on meanwhile."""
        ...

    def take(self, ticket: Any, data: memoryview, /) -> bytes:
        """Fill `data`; the words that kernels reported, which this clears, if such kernels ran."""
        ...

    def drain(self) -> None:
        """Block until all is done, and buffers that were let go are free."""
        ...

    def seconds(self, call: Callable[[], object], /) -> float:
        """How long the GPU works, by its clock, on what a function records.

        0 where it has none, or where the function had work submitted before it was done.
        """
        ...

    def lose(self) -> None:
        """Give the device up, as a driver does that is reset."""
        ...

    def close(self) -> None:
        """Leave the driver alone from now on: the process ends."""
        ...


class Driver(Protocol):
    """A module that opens adapters. These have dicts `info` and `limits`, and names `features`."""

    DriverError: type[Exception]

    def adapters(self) -> list[Any]: ...
    def Engine(self, adapter: Any, debug: bool, /) -> Engine: ...


def _driver() -> Driver:
    """The one that PHLOX_WGPU_ENGINE names; else the native one where it is installed.

    Raises:
        BackendUnavailableError: it names none that is here.
    """
    if sys.platform == "emscripten":
        from . import browser  # noqa: PLC0415 - needs Pyodide

        return cast("Driver", browser)
    wanted = os.environ.get("PHLOX_WGPU_ENGINE", "")
    if wanted not in ("", "native", "wgpu-py"):
        expected = '"native" or "wgpu-py"'
        raise BackendUnavailableError(
            "PHLOX_WGPU_ENGINE", "no such engine", got=wanted, expected=expected
        )
    if wanted != "wgpu-py":
        try:
            found = import_module("phlox_wgpu_engine")
        except ImportError as error:
            if wanted:
                hint = "pip install phlox-wgpu-engine"
                raise BackendUnavailableError("wgpu", str(error), hint=hint) from error
        else:
            return cast("Driver", found)
    from . import wgpu_py  # noqa: PLC0415 - loads wgpu

    return cast("Driver", wgpu_py)


driver = _driver()


def debug() -> bool:
    """PHLOX_WGPU_DEBUG=1: submit every dispatch on its own, so that an error names its kernel."""
    return os.environ.get("PHLOX_WGPU_DEBUG", "") == "1"


def checks() -> bool:
    """PHLOX_WGPU_CHECKS=1: shaders check bounds and count the turns of loops, which takes time."""
    return os.environ.get("PHLOX_WGPU_CHECKS", "") == "1"
