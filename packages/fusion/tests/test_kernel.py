"""Functions of elements as one kernel: what they give, and what they refuse."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import phlox_tensor as pt
from phlox_fusion import Kernel, compile, kernel
from phlox_tensor import CompileError, Tensor
from phlox_tensor._programs import formula as _formula

ONE = pt.ones(1)


@kernel
def swish(x: Tensor, beta: Tensor | float) -> Tensor:
    """x over 1 + exp(-beta x)."""
    return x / (1 + (-beta * x).exp())


def test_a_kernel_gives_what_its_function_does() -> None:
    x, beta = pt.asarray([[1.0, -2.0, 3.0]]), pt.asarray([[0.5], [2.0]])
    out = swish(x, beta)
    assert out.shape == (2, 3)
    assert out.tolist() == (x / (1 + (-beta * x).exp())).tolist()


def test_numbers_may_be_others_at_each_call() -> None:
    x = pt.asarray([1.0, -2.0])
    for beta in (0.5, 2.0, 3, -1.5):
        assert swish(x, beta).tolist() == (x / (1 + (-beta * x).exp())).tolist()
        assert swish(beta=beta, x=x).tolist() == swish(x, beta).tolist()


def test_defaults_and_names_of_arguments_hold() -> None:
    @kernel
    def scaled(x: Tensor, factor: float = 2.0, *, negate: bool = False) -> Tensor:
        return -x * factor if negate else x * factor

    x = pt.asarray([1.0, 2.0])
    assert scaled(x).tolist() == [2.0, 4.0]
    assert scaled(x, 3.0, negate=True).tolist() == [-3.0, -6.0]
    assert scaled(x, negate=False).tolist() == [2.0, 4.0]


def test_a_choice_by_a_number_is_made_anew() -> None:
    power = kernel(lambda x, p: x * x if p == 2 else x**p)
    x = pt.asarray([2.0, 3.0])
    assert [power(x, p).tolist() for p in (2, 3.0, 2.0, 2)] == [
        [4.0, 9.0],
        [8.0, 27.0],
        [4.0, 9.0],
        [4.0, 9.0],
    ]


def test_element_types_follow_the_arguments() -> None:
    mean = kernel(lambda x, y: (x + y) / 2)
    half, full = pt.ones(2, dtype=pt.float16), pt.ones(2, dtype=pt.float64)
    assert mean(half, half).dtype is pt.float16
    assert mean(full, full).dtype is pt.float64
    assert mean(half, full).dtype is pt.float64
    inside = kernel(lambda x, low, high: (x >= low) & (x < high))
    assert inside(pt.asarray([1, 2, 3]), 2, 3).tolist() == [False, True, False]
    chosen = kernel(lambda mask, x: mask.where(x, 0.0))
    assert chosen(pt.asarray([True, False]), pt.asarray([5.0, 6.0])).tolist() == [5.0, 0.0]


def test_a_kernel_may_call_another_one() -> None:
    twice = kernel(lambda x: swish(swish(x, 1.0), 2.0))
    x = pt.asarray([0.5, -1.0])
    assert twice(x).tolist() == swish(swish(x, 1.0), 2.0).tolist()
    assert len(twice.program(x).instrs) == 2 * len(swish.program(x, 1.0).instrs)


def test_the_program_of_a_call_can_be_looked_at() -> None:
    program = swish.program(pt.ones(3), 2.0)
    assert [instr.op for instr in program.instrs] == [
        "multiply",
        "exp",
        "add",
        "divide",
    ]
    assert program.inputs == ("float32",)


def test_a_kernel_keeps_the_name_and_text_of_its_function() -> None:
    assert isinstance(swish, Kernel)
    assert (getattr(swish, "__name__", ""), swish.__doc__) == ("swish", "x over 1 + exp(-beta x).")
    assert repr(swish) == "<kernel swish>"


def _reduces(x: Tensor) -> Tensor:
    return x / x.sum()


def _branches(x: Tensor) -> Tensor:
    return x if x > 0 else -x


def _measures(x: Tensor) -> Tensor:
    return x / x.shape[0]


def _counts_axes(x: Tensor) -> Tensor:
    return x * 2 if x.ndim == 1 else x * 3


def _makes(x: Tensor) -> Tensor:
    return x * pt.asarray(2.0)


def _reshapes(x: Tensor) -> Tensor:
    return x.reshape(-1) * 2


def _gives_two(x: Tensor) -> Any:
    return x, -x


def _gives_it_back(x: Tensor) -> Tensor:
    return x


def _draws(x: Tensor) -> Tensor:
    return x * pt.random.normal(x.shape)


def _takes_any(*xs: Tensor) -> Tensor:
    return xs[0]


_OUTSIDE = pt.ones(1, device=pt.Numpy("float64"))


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (_reduces, r"\[kernel _reduces\] sum is in the way of one kernel.*reduction.*test_kernel"),
        (_branches, r"\[kernel _branches\] the function reads a value(.|\n)*px\.where"),
        (_measures, "depends on the shape"),
        (_counts_axes, "depends on the shape"),
        (_makes, r"no argument(.|\n)*hint.*2\.0, not px\.asarray"),
        (_reshapes, "reshape is in the way"),
        (lambda x: x.cumulative_sum(), r"cumulative_sum is in the way of one kernel.*test_kernel"),
        (lambda x: x @ x, r"matmul is in the way of one kernel.*test_kernel"),
        (lambda x: x + pt.ones(6), r"no argument: got an operand of add at .*test_kernel"),
        (_gives_two, r"gives one tensor(.|\n)*one kernel for each result"),
        (_gives_it_back, r"no result of an op(.|\n)*outside"),
        (_draws, r"draws random numbers(.|\n)*drawn outside"),
        (lambda x: x * _OUTSIDE, r"no argument(.|\n)*give the tensor as an argument"),
    ],
)
def test_what_cannot_be_one_kernel_is_refused(function: Callable[..., Any], told: str) -> None:
    with pytest.raises(CompileError, match=told):
        kernel(function)(pt.asarray([1.0]))


def test_arguments_that_are_no_operands_are_refused() -> None:
    with pytest.raises(CompileError, match="no tensor among the arguments"):
        swish(1.0, 2.0)  # type: ignore[arg-type]
    with pytest.raises(CompileError, match=r"got list(.|\n)*px\.asarray"):
        swish(pt.ones(2), [1.0, 2.0])  # type: ignore[arg-type]
    with pytest.raises(CompileError, match=r"argument 1, which is not used(.|\n)*leave"):
        kernel(lambda x, y: x * 2)(pt.ones(2), pt.ones(2))
    with pytest.raises(CompileError, match=r"fixed number of arguments: got \*xs"):
        kernel(_takes_any)
    with pytest.raises(
        pt.WrongTypeError, match=r"\[kernel swish\] missing a required argument: 'beta': .* x, beta"
    ):
        swish(pt.ones(2))  # type: ignore[call-arg]


def test_shapes_that_do_not_broadcast_are_refused_by_the_kernel() -> None:
    for _ in range(2):
        with pytest.raises(pt.ShapeError, match="swish"):
            swish(pt.ones(2), pt.ones(3))


def test_an_error_leaves_the_kernel_as_it_was() -> None:
    gate = kernel(lambda x, y: x * y)
    with pytest.raises(pt.KindError):
        gate(pt.ones(2), pt.asarray([True, False]))
    assert gate(pt.ones(2), pt.ones(2)).tolist() == [1.0, 1.0]


def test_a_bound_that_is_left_out_is_an_infinite_one() -> None:
    x = pt.asarray([-1.0, 0.5, pt.nan, pt.inf])
    lower, upper = kernel(lambda x: x.clip(min=0.0)), kernel(lambda x: x.clip(max=0.75) * 1.0)
    assert str(lower(x).tolist()) == "[0.0, 0.5, nan, inf]"
    assert str(upper(x).tolist()) == "[-1.0, 0.5, nan, 0.75]"


def test_forms_of_calls_are_not_kept_without_end() -> None:
    asks = kernel(lambda x, p: x * 2 if p > 0 else x * 3)
    exact = kernel(lambda x, p: x * float(p))
    x = pt.ones(1)
    for p in range(300):
        assert asks(x, p - 150).item() == (2.0 if p > 150 else 3.0)
        assert exact(x, p).item() == p
    ((_, base),) = asks._kept[0].formula._ops.values()
    assert len(base._versions) == 2
    ((_, base),) = exact._kept[0].formula._ops.values()
    assert 0 < len(base._versions) <= _formula.MOST_KEPT < 300
    named = kernel(lambda x, name: x * len(name))
    for size in range(300):
        assert named(x, "a" * size).item() == size
    formula = named._kept[0].formula
    assert 0 < len(formula._ops) <= _formula.MOST_KEPT
    assert 0 < len(formula._entries) <= _formula.MOST_KEPT


def test_a_float_beside_integers_is_told_to_make_floats_of_them() -> None:
    with pytest.raises(pt.KindError, match=r"got 0\.5 with int64(.|\n)*astype\(\"float32\"\)"):
        kernel(lambda a, b: a + b)(pt.arange(3), 0.5)


def test_a_name_that_stands_for_nothing_any_more_is_an_error_of_python() -> None:
    def made() -> tuple[Any, Any, Any]:
        factor = 2.0

        def drop() -> None:
            nonlocal factor
            del factor

        return kernel(lambda x: x * factor), compile(lambda x: x * factor), drop

    double, fast, drop = made()
    for _ in range(4):
        assert double(pt.ones(1)).item() == fast(pt.ones(1)).item() == 2.0
    drop()
    for function in (double, fast, kernel(double.__wrapped__)):
        with pytest.raises(NameError, match="factor"):
            function(pt.ones(1))


class Scaled:
    """An object with a kernel as a method."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    @kernel
    def of(self, x: Tensor) -> Tensor:
        """Times the factor."""
        return x * self.factor + 1


class Layer:
    """Without attributes of its own."""

    __slots__ = ()
    of = kernel(lambda self, x: x * 2)


def test_a_kernel_may_be_a_method_and_follows_its_object() -> None:
    two, three = Scaled(2.0), Scaled(3.0)
    for _ in range(3):
        assert (two.of(pt.ones(1)).item(), three.of(pt.ones(1)).item()) == (3.0, 4.0)
    two.factor = 5.0
    assert two.of(pt.ones(1)).item() == 6.0
    for again in (copy.deepcopy(two), pickle.loads(pickle.dumps(two))):
        again.factor = 7.0
        assert (again.of(pt.ones(1)).item(), two.of(pt.ones(1)).item()) == (8.0, 6.0)
    with pytest.raises(CompileError, match=r"no method(.|\n)*outside of the class"):
        Layer().of(pt.ones(1))


def test_the_kernel_of_an_object_is_not_that_of_a_copy_or_of_another_class() -> None:
    @dataclass
    class Field:
        factor: float
        of = kernel(lambda self, x: x * self.factor + 1)

    for kind in (Scaled, Field):
        two = kind(2.0)
        assert [two.of(ONE).item() for _ in range(3)] == [3.0] * 3
        assert two.of is two.of
        again = copy.copy(two)
        again.factor = 5.0
        assert [again.of(ONE).item() for _ in range(3)] == [6.0] * 3
        assert [two.of(ONE).item() for _ in range(3)] == [3.0] * 3
        assert "of" not in vars(two)


def test_the_kernel_of_an_object_is_that_of_its_class_now() -> None:
    class Other(Scaled):
        def behind(self, x: Tensor) -> Tensor:
            return super().of(x)

    other: Any = Other
    other.of = kernel(lambda self, x: x * self.factor * 10)
    two: Any = Scaled(2.0)
    assert [two.of(ONE).item() for _ in range(3)] == [3.0] * 3
    two.__class__ = Other
    for _ in range(3):
        assert (two.of(ONE).item(), two.behind(ONE).item()) == (20.0, 3.0)


def test_a_kernel_that_a_class_gets_later_takes_the_place_of_the_first() -> None:
    class Later:
        of = kernel(lambda self, x: x * 2)

    item = Later()
    assert item.of(ONE).item() == 2.0
    later: Any = Later
    later.of = kernel(lambda self, x: x * 3)
    assert [item.of(ONE).item() for _ in range(3)] == [3.0] * 3
    assert item.of is item.of


def test_an_object_with_a_kernel_goes_when_nobody_has_it() -> None:
    item = Scaled(2.0)
    item.of(ONE)
    gone = weakref.ref(item)
    del item
    gc.collect()
    assert gone() is None


def test_what_is_static_is_wrapped_inside() -> None:
    with pytest.raises(pt.WrongTypeError, match=r"@staticmethod above @px\.kernel"):
        kernel(staticmethod(lambda x: x * 2))


@kernel
def by_name(x: Tensor) -> Tensor:
    """A kernel that pickles know by its name."""
    return x * 2


def doubled(x: Tensor) -> Tensor:
    """Two of it."""
    return x * 2


def test_kernels_are_pickled_and_copied() -> None:
    assert pickle.loads(pickle.dumps(by_name)) is by_name
    assert copy.deepcopy(by_name) is by_name
    for again in (pickle.loads(pickle.dumps(kernel(doubled))), copy.deepcopy(kernel(doubled))):
        assert isinstance(again, Kernel)
        assert again(pt.ones(1)).item() == 2.0


def test_a_kernel_sets_no_state() -> None:
    count = pt.Cell(0)

    def counted(x: Tensor) -> Tensor:
        count.set(1)
        return x * 2

    with pytest.raises(CompileError, match="changes state"):
        kernel(counted)(pt.ones(1))
