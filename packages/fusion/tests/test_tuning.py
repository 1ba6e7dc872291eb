"""Choices between programs by their time: each mode, what is stored, and that no bit changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, final

import pytest

import phlox_tensor as pt
from phlox_fusion import Fusion, _tuning, compile
from phlox_fusion._fused import Fused
from phlox_fusion._replay import plan_of
from phlox_tensor import Backend, CompileError, Numpy, Tensor
from phlox_tensor.capture import Program, ProgramLimits, interpreted


@final
class Clocked(Backend):
    """NumPy with programs that stand still for as long as a test says; time is what it counts."""

    name = "clocked"
    dtypes = Numpy().dtypes
    default_float, default_int = pt.float32, pt.int64
    limits = ProgramLimits(8, folds=True, stages=False, pays_from=1 << 20)

    def __init__(self, program: float, op: float, *, strict: bool = True) -> None:
        self.settings = (program, op, strict)
        self._program, self._op, self.strict = program, op, strict
        self.now = 0.0

    def entry(self, name: str) -> Any:
        """The reference, which takes the time of an op."""
        inside = Numpy().entry(name)

        def run(*args: Any) -> Any:
            self.now += self._op
            return inside(*args) if inside is not None else None

        return None if inside is None else run

    def kernel(self, program: Program, /) -> Any:
        """The interpreter, which takes the time of a program."""
        inside = interpreted(program)

        def run(*args: Any) -> Any:
            self.now += self._program
            return inside(*args)

        return run

    def shape_of(self, primitive: Any, /) -> tuple[int, ...]:
        """Its shape."""
        return Numpy().shape_of(primitive)

    def dtype_of(self, primitive: Any, /) -> pt.DType:
        """Its element type."""
        return Numpy().dtype_of(primitive)

    def upload(self, array: Any, dtype: pt.DType, /) -> Any:
        """A copy."""
        return Numpy().upload(array, dtype)

    def read(self, primitive: Any, /) -> Any:
        """The array."""
        return Numpy().read(primitive)


@pytest.fixture
def tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Sets mode and clock, and forgets what was read from files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def start(mode: str, device: Clocked) -> Clocked:
        monkeypatch.setenv("PHLOX_AUTOTUNE", mode)
        monkeypatch.setattr(_tuning, "perf_counter", lambda: device.now)
        _tuning._store.cache_clear()
        return device

    yield start
    _tuning._store.cache_clear()


def softmax(x: Tensor) -> Tensor:
    e = (x - x.max(axis=-1, keepdims=True)).exp()
    return e / e.sum(axis=-1, keepdims=True)


def programs(device: Backend) -> list[int]:
    """How many ops the programs of a softmax have."""
    x = pt.asarray([[1.0, 2.0, 4.0], [0.0, 0.5, -1.0]], device=device)
    fast = compile(softmax)
    for _ in range(3):
        got = fast(x)
        assert got.numpy().tobytes() == softmax(x).numpy().tobytes()
    steps = plan_of(fast.trace(x)).steps
    return [len(step.nodes) for step in steps if isinstance(step, Fused)]


def files(folder: Path) -> list[Path]:
    return sorted((folder / "phlox").glob("*.jsonl"))


def test_off_measures_and_stores_nothing(tuned: Callable[..., Any], tmp_path: Path) -> None:
    device = tuned("off", Clocked(1.0, 5.0))
    usual = programs(device)
    assert 5 not in usual
    assert files(tmp_path) == []


def test_on_takes_what_is_faster_and_stores_it(tuned: Callable[..., Any], tmp_path: Path) -> None:
    assert programs(tuned("on", Clocked(1.0, 5.0))) == [5]
    (path,) = files(tmp_path)
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    assert [entry["variant"] for entry in entries] == ["whole"]


def test_on_leaves_what_is_not_clearly_faster(tuned: Callable[..., Any], tmp_path: Path) -> None:
    slow = Clocked(50.0, 1.0)
    usual = programs(tuned("off", slow))
    assert programs(tuned("on", slow)) == usual
    (path,) = files(tmp_path)
    assert '"usual"' in path.read_text()


def test_read_takes_what_is_stored_and_measures_nothing(
    tuned: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Clocked(1.0, 5.0)
    assert 5 not in programs(tuned("read", device))
    assert files(tmp_path) == []
    assert programs(tuned("on", device)) == [5]
    monkeypatch.setattr(_tuning, "_fastest", None)
    assert programs(tuned("read", device)) == [5]
    assert 5 not in programs(tuned("read", Clocked(2.0, 5.0)))  # another device: nothing known


def test_lines_that_nobody_wrote_are_left_alone(tuned: Callable[..., Any], tmp_path: Path) -> None:
    device = Clocked(1.0, 5.0)
    assert programs(tuned("on", device)) == [5]
    (path,) = files(tmp_path)
    good = path.read_text()
    for text in ("{\n" + good, "[]\n7\n" + good, good + '{"key": 1}\n{"ke'):
        path.write_text(text)
        assert programs(tuned("read", device)) == [5]
    path.write_bytes(b"\xff\xfe")
    assert 5 not in programs(tuned("read", device))
    path.write_text(good.replace("whole", "another"))
    assert 5 not in programs(tuned("read", device))


def test_a_full_file_grows_no_more(
    tuned: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Clocked(1.0, 5.0)
    programs(tuned("on", device))
    (path,) = files(tmp_path)
    path.write_text("x" * 64 + "\n")
    monkeypatch.setattr(_tuning, "_MOST_STORED", 64)
    assert programs(tuned("on", device)) == [5]
    assert path.read_text() == "x" * 64 + "\n"


def test_where_bits_may_differ_there_is_no_choice(
    tuned: Callable[..., Any], tmp_path: Path
) -> None:
    device = tuned("on", Clocked(1.0, 5.0, strict=False))
    assert 5 not in programs(device)
    assert files(tmp_path) == []


def test_waiting_ops_are_chosen_for_as_well(tuned: Callable[..., Any], tmp_path: Path) -> None:
    device = Fusion(tuned("on", Clocked(1.0, 5.0)), least=0)
    x = pt.ones(8, device=device)
    assert (x * 2 + 1).tolist() == [3.0] * 8
    assert [json.loads(p.read_text())["variant"] for p in files(tmp_path)] == ["whole"]


def test_a_mode_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHLOX_AUTOTUNE", "maybe")
    with pytest.raises(CompileError, match="PHLOX_AUTOTUNE"):
        compile(softmax)
    with pytest.raises(CompileError, match="PHLOX_AUTOTUNE"):
        Fusion(Numpy())
