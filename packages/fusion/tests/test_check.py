"""What check mode takes for equal."""

from __future__ import annotations

import os
from builtins import compile as compile_text
from math import nan
from threading import Thread
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_fusion import Fusion, compile
from phlox_tensor import Backend
from phlox_tensor.capture import Program, ProgramLimits, interpreted, same_bits


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


class Broken(Backend):
    """NumPy with programs, in which tanh is sin, or a value from 2.5 is another one."""

    name = "broken"
    dtypes = pt.Numpy().dtypes
    default_float, default_int = pt.float32, pt.int64
    limits = ProgramLimits(bindings=8, instrs=16, folds=True)

    def __init__(self, how: str = "tanh") -> None:
        self.settings = (how,)
        self._how = how

    def entry(self, name: str) -> Any:
        """The reference of the op."""
        return pt.Numpy().entry(name)

    def shape_of(self, primitive: Any, /) -> tuple[int, ...]:
        """Its shape."""
        return pt.Numpy().shape_of(primitive)

    def dtype_of(self, primitive: Any, /) -> pt.DType:
        """Its element type."""
        return pt.Numpy().dtype_of(primitive)

    def strides_of(self, primitive: Any, /) -> tuple[int, ...]:
        """How its elements lie."""
        return pt.Numpy().strides_of(primitive)

    def upload(self, array: Any, dtype: pt.DType, /) -> Any:
        """A copy."""
        return pt.Numpy().upload(array, dtype)

    def read(self, primitive: Any, /) -> Any:
        """The array."""
        return pt.Numpy().read(primitive)

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


def pasted(error: pt.DisagreementError) -> str:
    """The test in the text of an error."""
    text = str(error)
    start = min(
        at for word in ("from math", "import numpy", "from ") if (at := text.find("\n" + word)) > 0
    )
    return text[start : text.index(", expected the bits of its ops")]


def fails(text: str) -> bool:
    """Whether a pasted test fails by itself."""
    space: dict[str, Any] = {}
    exec(compile_text(text, "pasted", "exec"), space)
    try:
        space["test_a_program_has_the_bits_of_its_ops"]()
    except AssertionError:
        return True
    return False


def caught(function: Any, *args: Any) -> pt.DisagreementError:
    fast = compile(function, check=True)
    fast(*args)
    fast(*args)
    with pytest.raises(pt.DisagreementError) as found:
        fast(*args)
    return found.value


def test_a_program_at_fault_comes_with_a_test_to_paste() -> None:
    x = pt.asarray([[0.5, 2.0, nan]], device=Broken())
    error = caught(lambda x, n: ((x * n + 1).tanh() * 2).exp(), x, 0.125)
    text = pasted(error)
    assert "device = Broken('tanh')" in text
    assert "strided([[0.5, 2.0, nan]], 'float32', (3, 1), device)" in text
    assert "assert_program(program, operands, [0.125, 1" in text
    assert "exp" not in text  # the program ends with the op at fault
    assert fails(text)
    assert not fails(text.replace("Broken('tanh')", "Broken('none')"))


def test_drawn_values_stand_for_many() -> None:
    text = pasted(caught(lambda x: (x + 1).tanh(), pt.ones((5, 40), device=Broken()).T))
    assert "strided(draw(DTYPES['float32'], (40, 5), (-4.0, 4.0), np.random.default_rng(0))" in text
    assert "(1, 40), device)" in text
    assert fails(text)


def test_the_element_that_parts_is_shown_where_drawn_ones_do_not() -> None:
    x = pt.asarray(np.r_[np.zeros(99), [200.0]], dtype=pt.float32, device=Broken("large"))
    text = pasted(caught(lambda x, y: (x * 2 + y) * 0.5, x, x[:1]))
    assert "strided([200.0], 'float32', None, device)" in text
    assert fails(text)


def test_a_fault_of_strides_is_shown_with_them() -> None:
    x = pt.asarray(np.arange(12.0).reshape(3, 4), dtype=pt.float32, device=Broken("strides")).T
    text = pasted(caught(lambda x: (x * 2).sum(axis=-1), x))
    assert "(1, 4), device)" in text
    assert fails(text)
    assert not fails(text.replace("(1, 4), device)", "None, device)"))


def test_streams_give_a_test_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHLOX_FUSION", "check")
    x = pt.ones(3, device=Fusion(Broken(), 17, 0))
    bad = (x * 2).tanh() + 1
    with pytest.raises(pt.DisagreementError) as found:
        bad.tolist()
    assert fails(pasted(found.value))


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
