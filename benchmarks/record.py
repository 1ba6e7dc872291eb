"""Saving and loading 1 GB beside safetensors, one tensor of it, and the start of a model.

Both sides do the same work. Every save ends on the disk: ours always does, the file of safetensors
is synced behind it. Every load ends with the numbers in memory of the process, new to it, and each
page read once more; the time to give it back counts for neither. A cold file is in no cache; a new
file lies where none was. Files are where temporary ones are.

A new page may cost a virtual machine far more than a page that was in use a moment ago. So free
memory is touched before each sample, or the side would lose that comes first.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Case, Run
from phlox import nn
from phlox.record import (
    FullPrecision,
    HalfPrecision,
    NamedMsgpackRecorder,
    Recorder,
    SafetensorsRecorder,
    materialize,
)

Ready = Callable[..., Run]

VERSUS = "safetensors"
COUNT, SHAPE = 256, (1024, 1024)  # 1.07 GB in float32
ONE = "t100"
WANTED = 0.9
_PAGE = 1024  # numbers of float32 in a page
_TOUCHED = int(2.5 * COUNT * SHAPE[0] * SHAPE[1] * 4)
ONE_SECONDS = 5e-3
PRECISIONS = {"f32": FullPrecision, "half": HalfPrecision}


def cases(*, with_safetensors: bool) -> Iterator[Case]:
    """Yield the benchmarks of the group; files are there as long as it is iterated."""
    with tempfile.TemporaryDirectory(prefix="phlox-bench-") as folder:
        place = Path(folder)
        twin = _Safetensors(place) if with_safetensors else None
        made = _Files(place)
        for name in PRECISIONS:
            yield from _saving(made, twin, name)
        for name in PRECISIONS:
            yield from _loading(made, twin, name)
        yield from _one(made, twin)
        del made, twin
        yield from _starts(place)


class _Files:
    """What phlox writes and reads."""

    def __init__(self, folder: Path) -> None:
        self.device = px.Cpu()
        self.tree = {f"t{n}": px.asarray(_numbers(n), device=self.device) for n in range(COUNT)}
        self.folder = folder
        self.plain = {n: NamedMsgpackRecorder(p, checksums=False) for n, p in PRECISIONS.items()}
        self.checked = NamedMsgpackRecorder()
        self.foreign = SafetensorsRecorder()

    def save(self, recorder: Recorder, name: str) -> Path:
        return recorder.record(self.tree, self.folder / name)

    def load(self, recorder: Recorder, path: Path) -> object:
        found = recorder.load(path, device=self.device)
        return found, _seen(tensor.numpy() for tensor in found.values())

    def one(self, recorder: Recorder, path: Path) -> object:
        found = materialize(recorder.open(path)[ONE], device=self.device)
        return found, _seen([found.numpy()])


class _Safetensors:
    """The same with the package, on arrays of NumPy."""

    def __init__(self, folder: Path) -> None:
        import safetensors  # noqa: PLC0415 - for comparisons
        import safetensors.numpy  # noqa: PLC0415

        self.package: Any = safetensors
        self.tree = {f"t{n}": _numbers(n) for n in range(COUNT)}
        self.folder = folder

    def save(self, name: str) -> None:
        path = self.folder / f"their-{name}"
        half = name == "half"
        tree = {k: a.astype(np.float16) for k, a in self.tree.items()} if half else self.tree
        self.package.numpy.save_file(tree, path)
        with path.open("rb") as file:
            os.fsync(file.fileno())

    def load(self, name: str) -> object:
        found = self.package.numpy.load_file(self.folder / f"their-{name}")
        if name == "half":
            found = {key: array.astype(np.float32) for key, array in found.items()}
        return found, _seen(found.values())

    def one(self) -> object:
        with self.package.safe_open(self.folder / "their-f32", "numpy") as file:
            found = file.get_tensor(ONE)
        return found, _seen([found])


def _numbers(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(SHAPE, np.float32)


def _seen(arrays: Iterable[np.ndarray[Any, Any]]) -> float:
    """Read a number of each page, so that none is only promised."""
    return sum(float(array.reshape(-1)[::_PAGE].sum()) for array in arrays)


def _saving(made: _Files, twin: _Safetensors | None, name: str) -> Iterator[Case]:
    other = None if twin is None else lambda: twin.save(name)
    nbytes = _bytes(name)

    def row(title: str, recorder: Recorder, prepare: Run, times: float = WANTED) -> Case:
        def run() -> object:
            return made.save(recorder, f"{_kind(recorder)}-{name}")

        return Case(f"save {title}", run, other, bytes=nbytes, times=times, prepare=prepare)

    def anew() -> None:
        for path in made.folder.iterdir():
            path.unlink()
        over()

    def over() -> None:
        os.sync()
        _touch_free_memory()

    yield row(f"{name}, new file", made.plain[name], anew)
    yield row(f"{name}, over a file", made.plain[name], over)
    if name == "f32":
        yield row("f32, .safetensors, over a file", made.foreign, over)
        yield row("f32, with checksums, over a file", made.checked, over, 0.0)


def _loading(made: _Files, twin: _Safetensors | None, name: str) -> Iterator[Case]:
    other = None if twin is None else lambda: twin.load(name)
    if twin is not None:
        twin.save(name)

    def row(title: str, recorder: Recorder, ready: Ready, times: float = WANTED) -> Case:
        path = made.save(recorder, f"{_kind(recorder)}-{name}")

        def run() -> object:
            return made.load(recorder, path)

        prepare = ready(path, made.folder / f"their-{name}")
        nbytes = _bytes(name)
        return Case(f"load {title}", run, other, bytes=nbytes, times=times, prepare=prepare)

    yield row(f"{name}, cold", made.plain[name], _forgetting)
    yield row(f"{name}, warm", made.plain[name], _knowing)
    if name == "f32":
        yield row("f32, .safetensors, warm", made.foreign, _knowing)
        yield row("f32, with checksums, warm", made.checked, _knowing, 0.0)


def _one(made: _Files, twin: _Safetensors | None) -> Iterator[Case]:
    other = None if twin is None else twin.one
    for title, recorder in {
        "": made.plain["f32"],
        " with checksum": made.checked,
        ", .safetensors": made.foreign,
    }.items():
        path = made.save(recorder, f"{_kind(recorder)}-f32")
        both = path, made.folder / "their-f32"

        def run(recorder: Recorder = recorder, path: Path = path) -> object:
            return made.one(recorder, path)

        yield Case(f"4 MB of 1 GB{title}, cold", run, other, prepare=_forgetting(*both))
        warm = _knowing(*both)
        yield Case(f"4 MB of 1 GB{title}, warm", run, other, seconds=ONE_SECONDS, prepare=warm)


def _starts(folder: Path) -> Iterator[Case]:
    """A model of 100 million numbers: made from a file, and initialized before it is loaded."""
    layer = nn.TransformerEncoderLayerConfig(1024, 16, 4096)
    config = nn.TransformerEncoderConfig(layer, 8)
    recorder = NamedMsgpackRecorder()
    path = config.init("cpu").save_file(folder / "model", recorder)

    def config_and_record() -> object:
        return config.init_with(recorder.open(path))

    def initialized_then_loaded() -> object:
        model = config.init("cpu")
        for param in model.param_list():
            _ = param.value
        return model.load_record(recorder.open(path))

    warm = _knowing(path)
    yield Case("start: config and record, 100M numbers", config_and_record, prepare=warm)
    yield Case("start: init, then load, 100M numbers", initialized_then_loaded, prepare=warm)


def _bytes(name: str) -> float:
    return COUNT * SHAPE[0] * SHAPE[1] * (2.0 if name == "half" else 4.0)


def _kind(recorder: Recorder) -> str:
    return "checked" if recorder.checksums else "plain"


def _forgetting(*paths: Path) -> Run:
    """Return what puts files out of the system's cache, where there are."""

    def forget() -> None:
        px.empty_cache()
        os.sync()  # only pages that are on the disk can be dropped
        for path in filter(Path.exists, paths):
            with path.open("rb") as file, contextlib.suppress(AttributeError):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        _touch_free_memory()

    return forget


def _knowing(*paths: Path) -> Run:
    """Return what puts files into it, where there are."""

    def know() -> None:
        px.empty_cache()
        for path in filter(Path.exists, paths):
            with path.open("rb") as file:
                while file.read(1 << 24):
                    pass
        _touch_free_memory()

    return know


def _touch_free_memory() -> None:
    """Let a virtual machine have what the tensors and the cache of a file will take."""
    np.empty(_TOUCHED, np.uint8)[::4096] = 1
