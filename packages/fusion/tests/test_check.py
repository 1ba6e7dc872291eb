"""What check mode takes for equal."""

from __future__ import annotations

import os
from math import nan
from threading import Thread
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_fusion import Fusion, compile
from phlox_tensor import capture
from phlox_tensor._device.numpy_backend import Arrays
from phlox_tensor.capture import Program, ProgramLimits, interpreted, same_bits
from phlox_tensor.testing import assert_program


class Loose(pt.Decorator):
    """A device whose kernels may round a product and a sum once."""

    name = "loose"

    def __init__(self, backend: pt.Backend) -> None:
        """Wrap a backend."""
        super().__init__(backend)
        self.strict = False

    def decorate(self, op: pt.Op, inside: Any) -> Any:
        """Change nothing."""
        return inside


def test_floats_of_a_device_that_is_not_strict_may_differ_in_the_last_bits() -> None:
    loose, strict = Loose(pt.Numpy()), pt.Numpy()
    own = np.array([1.0, 2.0, np.inf, np.nan], np.float32)
    near, far = own + np.float32(1e-7), own * np.float32(1.01)
    assert same_bits(near, own, pt.float32, loose)
    assert not same_bits(near, own, pt.float32, strict)
    assert not same_bits(far, own, pt.float32, loose)
    assert not same_bits(own[::-1].copy(), own, pt.float32, loose)
    whole = np.arange(3)
    assert not same_bits(whole, whole + 1, pt.int64, loose)


def test_an_op_that_fails_raises_as_it_does_without_a_check() -> None:
    fast = compile(lambda x, i: pt.take(x, i, axis=0), check=True)
    x, good, bad = pt.ones(3), pt.asarray([0, 2]), pt.asarray([0, 9])
    for _ in range(3):
        fast(x, good)
    with pytest.raises(pt.IndexOutOfRangeError) as caught:
        fast(x, bad)
    assert not any("phlox_fusion>" in str(entry.path) for entry in caught.traceback)


class Broken(Arrays):
    """NumPy with programs, in which tanh is sin, or a value from 2.5 is another one."""

    name = "broken"
    limits = ProgramLimits(bindings=8, instrs=16, folds=True)

    def __init__(self, how: str = "tanh") -> None:
        self.settings = (how,)
        self._how = how

    def entry(self, name: str) -> Any:
        """The reference of the op."""
        return pt.Numpy().entry(name)

    def kernel(self, program: Program, /) -> Any:
        """The interpreter, as it should not be."""
        if len(program.instrs) == 1:
            return interpreted(program)
        if self._how == "tanh":
            wrong = [i._replace(op="sin") if i.op == "tanh" else i for i in program.instrs]
            return interpreted(program._replace(instrs=tuple(wrong)))
        run, count = interpreted(program), len(program.inputs)

        def other(*args: Any) -> Any:
            """Its results; other ones for elements from 100, or where rows lie as columns."""
            if self._how == "large":
                given = [np.where(x > 100, x + 1, x) for x in args[:count]]
            else:
                turned = [x.ndim > 1 and 0 < x.strides[0] < x.strides[1] for x in args[:count]]
                given = [x + x.dtype.type(t) for x, t in zip(args[:count], turned, strict=True)]
            return run(*given, *args[count:])

        return other


def caught(function: Any, *args: Any) -> pt.DisagreementError:
    fast = compile(function, check=True)
    fast(*args)
    fast(*args)
    with pytest.raises(pt.DisagreementError) as found:
        fast(*args)
    return found.value


def test_a_program_at_fault_is_shown_with_what_it_ran_on() -> None:
    x = pt.asarray([[0.5, 2.0, nan]], device=Broken())
    error = caught(lambda x, n: ((x * n + 1).tanh() * 2).exp(), x, 0.125)
    program, operand, numbers = str(error.got).splitlines()[1:]
    assert operand == "float32 (1, 3), strides (3, 1): [[0.5, 2. , nan]]"
    assert numbers.startswith("numbers [0.125, 1")
    assert "exp" not in program  # it ends with the op at fault
    given, found = eval(numbers.removeprefix("numbers ")), eval(program, {**vars(capture)})
    assert_program(found, [pt.asarray(x.numpy(), device=Broken("none"))], given)
    with pytest.raises(AssertionError):
        assert_program(found, [x], given)


def test_many_values_are_cut_off() -> None:
    error = caught(lambda x: (x + 1).tanh(), pt.ones((5, 40), device=Broken()).T)
    assert "float32 (40, 5), strides (1, 40): [[1., 1., 1., 1., 1.]," in str(error)
    assert "..., " in str(error)


def test_streams_show_it_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHLOX_FUSION", "check")
    x = pt.ones(3, device=Fusion(Broken(), 17, 0))
    bad = (x * 2).tanh() + 1
    with pytest.raises(
        pt.DisagreementError, match=r"float32 \(3,\), strides \(1,\): \[1., 1., 1.\]"
    ):
        bad.tolist()


def test_threads_that_draw_numbers_are_compared_one_after_the_other() -> None:
    fast = compile(lambda x: x + pt.random.normal((2,)), check=True)
    told: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(100):
                fast(pt.zeros(2))
        except Exception as error:
            told.append(error)

    threads = [Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not told


def test_other_containers_and_texts_are_other_results(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "_".join(["PHLOX", "TEST", "MODE"])  # which no code names

    def told(x: pt.Tensor) -> Any:
        return {"x": x, "mode": os.environ[name]}

    def held(x: pt.Tensor) -> Any:
        return [x, x + 1] if os.environ[name] == "a" else (x, x + 1)

    for function, how in ((told, "got 'a', not 'b'"), (held, "list of 2 parts, not tuple of")):
        monkeypatch.setenv("PHLOX_TEST_MODE", "a")
        fast = compile(function, check=True)
        for _ in range(4):
            fast(pt.ones(2))
        monkeypatch.setenv("PHLOX_TEST_MODE", "b")
        with pytest.raises(pt.DisagreementError, match=how):
            fast(pt.ones(2))
