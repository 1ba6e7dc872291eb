"""The lazy device: what waits, when it runs, and what it leaves alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, final

import pytest

import phlox_tensor as pt
from phlox_fusion import Fusion, compile, kernel
from phlox_fusion.device import fusion as _fusion
from phlox_fusion.device import stream as _stream
from phlox_tensor import Entry, Numpy, Tensor
from phlox_tensor._device.numpy_backend import Arrays
from phlox_tensor.capture import Kernel, Program, ProgramLimits, interpreted

LAZY = Fusion(Numpy(), least=0)


def waits(x: Tensor[Any]) -> bool:
    return x.primitive.stream is not None


def test_ops_of_elements_wait_until_a_result_is_read() -> None:
    x = pt.asarray([1.0, -2.0], device=LAZY)
    y = (x * 2 + 1).relu()
    assert (y.shape, y.dtype, waits(y)) == ((2,), pt.float32, True)
    assert y.tolist() == [3.0, 0.0]
    assert not waits(y)


def test_an_op_of_another_class_makes_what_it_takes() -> None:
    x = pt.asarray([1.0, -2.0], device=LAZY)
    y = x.exp()
    total = (y * 2).sum()
    assert not waits(total)
    assert not waits(y)
    assert total.item() == pytest.approx(2 * (2.7182817 + 0.13533528))


def test_what_nobody_needs_is_not_computed() -> None:
    seen: list[str] = []
    device = Fusion(Noting(seen), least=0)
    x = pt.ones(3, device=device)
    seen.clear()
    x.exp()
    y = x.log() + 1
    assert y.tolist() == [1.0, 1.0, 1.0]
    assert seen == ["log", "add"]


def test_ops_of_integers_and_on_little_run_at_once() -> None:
    device = Fusion(Numpy())
    assert not waits(pt.ones(3, device=device).exp())
    assert waits(pt.ones(1 << 16, device=device).exp())
    whole = pt.asarray([1, 2], device=LAZY)
    assert not waits(whole + 1)
    with pytest.raises(pt.ArgumentError):
        _ = whole ** pt.asarray([-1, 2], device=LAZY)


def test_errors_come_from_the_line_of_the_op() -> None:
    x = pt.ones((2, 3), device=LAZY).exp()
    with pytest.raises(pt.ShapeError, match="add"):
        _ = x + x[:, :2]
    assert x.shape == (2, 3)
    with pytest.raises(pt.KindError):
        pt.add(x, pt.asarray([True], device=LAZY))  # type: ignore[misc]


def test_at_most_so_many_ops_wait() -> None:
    device = Fusion(Numpy(), pending=4, least=0)
    x = pt.ones(2, device=device)
    for turn in range(1, 10):
        x = x + 1
        assert waits(x) is (turn % 4 != 0)
    assert x.tolist() == [10.0, 10.0]
    off = Fusion(Numpy(), pending=0)
    assert (pt.ones(1 << 17, device=off) + 1).primitive.shape == (1 << 17,)
    assert repr(off) == "Fusion(Numpy(), pending=0)"
    assert Fusion(Numpy()) is Fusion("numpy")


def test_sync_memory_and_flush_run_what_waits() -> None:
    for run in (LAZY.sync, LAZY.flush):
        y = pt.ones(2, device=LAZY).exp()
        run()
        assert not waits(y)
    y = pt.ones(2, device=LAZY).exp()
    with pytest.raises(pt.DeviceError, match="does not count"):
        LAZY.memory()
    assert not waits(y)


def test_a_known_sequence_is_planned_once() -> None:
    device = Fusion(Numpy(), pending=9, least=0)
    for turn in range(5):
        y = pt.ones((2, 2), device=device) * float(turn) + 0.5
        assert y.tolist() == [[turn + 0.5] * 2] * 2
    assert device.plans == 1
    pt.ones((2, 3), device=device).exp().tolist()
    assert device.plans == 2


def test_tensors_cross_threads() -> None:
    def work(turn: int) -> list[float]:
        x = pt.ones(8, device=LAZY) * turn
        out: list[float] = ((x + shared) * 2).tolist()
        return out

    shared = pt.ones(8, device=LAZY).exp()
    e = shared.detach()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(40)))
    wanted = (pt.ones(8) * 1.0).exp()
    assert found == [((pt.ones(8) * turn + wanted) * 2).tolist() for turn in range(40)]
    assert e.tolist() == wanted.tolist()


def test_an_op_that_fails_tells_whoever_asks() -> None:
    device = Fusion(Noting([], failing="exp"), least=0)
    x = pt.ones(3, device=device)
    good, bad = x + 1, x.exp()
    for _ in range(2):
        with pytest.raises(MemoryError):
            bad.tolist()
    assert good.tolist() == [2.0, 2.0, 2.0]
    assert (x * 3).tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize("wrong", ["", "programs"])
def test_an_op_that_failed_tells_nobody_else(wrong: str) -> None:
    device = Fusion(Noting([], failing="exp", wrong=wrong), pending=3, least=0)
    x = pt.ones(3, device=device)
    bad = x.exp()
    for use in (lambda: float((bad * 2)[0]), lambda: bad.sum().item(), lambda: bad + x):
        with pytest.raises(MemoryError, match="exp"):
            use()
    uses: list[Any] = [
        lambda: pt.ones(2, device=device),
        lambda: pt.asarray([1.0], device=device),
        lambda: x.sum(axis=0).item(),
        lambda: float((x * 3)[0]),
        lambda: x + 1 + 2 + 3,
    ]
    for use in uses:
        bad = x.exp()
        use()
        with pytest.raises(MemoryError, match="exp"):
            bad.detach().tolist()
    bad = x.exp()
    with pytest.raises(MemoryError, match="exp"):
        device.flush()


def test_an_interrupt_is_raised_once_and_told_afterwards() -> None:
    device = Fusion(Noting([], failing="exp, once interrupted"), least=0)
    x = pt.ones(3, device=device)
    lost = x.exp()
    with pytest.raises(KeyboardInterrupt):
        lost.tolist()
    with pytest.raises(pt.DeviceError, match="were interrupted: got KeyboardInterrupt"):
        lost.tolist()
    assert x.exp().tolist() == pytest.approx([2.7182817] * 3)


def test_a_program_that_fails_alone_is_one_warning_and_a_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = Fusion(Noting([], failing="programs"), 34, 0)
    x = pt.ones(3, device=device)
    with pytest.warns(UserWarning, match=r"a program of .*failed.* NameError: v3") as told:
        assert (x * 2 + 1).exp().tolist() == pytest.approx([20.085537] * 3)
    assert (told[0].filename, device.fallbacks) == (__file__, 1)
    assert (x * 3 + 1).tolist() == [4.0] * 3
    assert device.fallbacks == 2
    monkeypatch.setenv("PHLOX_FUSION", "check")
    bad = pt.ones(3, device=Fusion(Noting([], failing="programs"), 35, 0)) * 2 + 1
    with pytest.raises(pt.DisagreementError, match="a program failed where its ops"):
        bad.tolist()


def test_a_device_inside_and_counts_are_asked_for() -> None:
    nothing: Any = None
    with pytest.raises(pt.ArgumentError, match="no device inside"):
        Fusion(nothing)
    with pytest.raises(pt.ArgumentError, match="least: got -1, expected a number of bytes"):
        Fusion("numpy", least=-1)
    wrong: Any = Fusion
    with pytest.raises(
        pt.UnknownArgumentError, match=r"\[Fusion\] .*got foo, expected backend, pending, least"
    ):
        wrong("numpy", foo=1)
    with pytest.raises(pt.WrongTypeError, match=r"\[Fusion\] missing a required .*'backend'"):
        wrong()
    other: Any = Numpy
    with pytest.raises(pt.UnknownArgumentError, match="got least, expected float, int"):
        other(least=1)


def test_a_mode_of_the_environment_switches_it_off_and_checks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PHLOX_FUSION", "off")
    assert pt.ones(3, device=Fusion(Numpy(), 31, 0)).exp().primitive.shape == (3,)
    monkeypatch.setenv("PHLOX_FUSION", "sometimes")
    with pytest.raises(pt.CompileError, match="check, off, on"):
        Fusion(Numpy(), 32, 0)
    monkeypatch.setenv("PHLOX_FUSION", "check")
    x = pt.ones(3, device=Fusion(Noting([], wrong="tanh"), 33, 0))
    fine = (x * 2 + 1).exp()
    assert fine.tolist() == pytest.approx([20.085537] * 3)
    bad = (x * 2).tanh() + 1
    with pytest.raises(pt.DisagreementError) as caught:
        bad.tolist()
    assert f"tanh, op 2 of a program of 3 (multiply, tanh, add), at {__file__}" in str(caught.value)


def test_it_nests_and_takes_kernels_and_compiled_functions() -> None:
    twice = Fusion(LAZY)
    x = pt.asarray([0.5, -1.0], device=twice)
    assert (x * 2).exp().tolist() == (pt.asarray([0.5, -1.0]) * 2).exp().tolist()
    swish = kernel(lambda x: x / (1 + (-x).exp()))
    y = pt.asarray([0.5, -1.0], device=LAZY)
    assert swish(y + 1).tolist() == swish(pt.asarray([0.5, -1.0]) + 1).tolist()
    fast = compile(lambda x, n: (x * n + 1).exp())
    for n in (1.0, 2.0, 3.0, 4.0):
        got = fast(y + 1, n)
        assert got.device is LAZY
        assert got.tolist() == ((pt.asarray([0.5, -1.0]) + 1) * n + 1).exp().tolist()


def _failing(*args: Any) -> Any:
    """Stands in the place of a kernel."""
    del args
    raise NameError("v3")


@final
class Noting(Arrays):
    """NumPy that notes what it runs, and fails where it should."""

    name = "noting"

    def __init__(self, seen: list[str], failing: str = "", wrong: str = "") -> None:
        self.settings = (id(seen), failing, wrong)
        self._seen, self._failing, self._wrong = seen, failing, wrong
        self.limits = ProgramLimits(bindings=8 if wrong or failing == "programs" else 0)

    def kernel(self, program: Program, /) -> Kernel | None:
        if "programs" in (self._failing, self._wrong):
            return _failing
        if len(program.instrs) == 1:
            return interpreted(program)
        off = [i._replace(op="sin") if i.op == self._wrong else i for i in program.instrs]
        return interpreted(program._replace(instrs=tuple(off)))

    def entry(self, name: str) -> Entry | None:
        inside = Numpy().entry(name)
        if inside is None:
            return None

        def run(*args: Any) -> Any:
            self._seen.append(name)
            if name == self._failing:
                raise MemoryError(name)
            if self._failing == f"{name}, once interrupted" and self._seen.count(name) == 1:
                raise KeyboardInterrupt
            return inside(*args)

        return run


def test_plans_and_shapes_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_stream, "_MOST_PLANS", 8)
    monkeypatch.setattr(_fusion, "_MOST_SHAPES", 16)
    device = Fusion(Numpy(), least=0)
    for size in range(1, 100):
        x = pt.ones(size, device=device)
        assert (x * 2 + size).exp().shape == (size,)
        assert (x + 1).tolist() == [2.0] * size
    assert device.plans > 90
    assert len(device._plans.kept) <= 8
    assert len(device._shapes) <= 16
