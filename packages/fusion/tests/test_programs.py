"""Replays run clusters of elementwise ops as programs, with the results of the ops."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, final

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import phlox_tensor as pt
from phlox_fusion import compile
from phlox_fusion.plan import plan as planning
from phlox_fusion.plan.items import Fused, gives, last_uses, takes
from phlox_fusion.replay.replay import folded, plan_of
from phlox_tensor import Backend, Numpy, Tensor
from phlox_tensor._device.numpy_backend import Arrays
from phlox_tensor.capture import Graph, Program, ProgramLimits, interpreted


@final
class Programs(Arrays):
    """NumPy with programs, which the reference interprets; it counts their calls."""

    name = "programs"

    def __init__(
        self,
        bindings: int = 8,
        instrs: int = 16,
        *,
        mixed: bool = True,
        pays_from: int = 0,
        folds: bool = False,
        made_by: Callable[[Program], Any] = interpreted,
    ) -> None:
        self.settings = (bindings, instrs, mixed, pays_from, folds, made_by)
        self.made_by = made_by
        self.limits = ProgramLimits(bindings, instrs, mixed, pays_from, folds)
        self.made: list[Program] = []
        self.calls = 0

    def entry(self, name: str) -> Any:
        """The reference of the op."""
        return Numpy().entry(name)

    def kernel(self, program: Program, /) -> Any:
        """The interpreter; there is none for erf, and none for float16."""
        dtypes = {*program.inputs, *(instr.dtype for instr in program.instrs)}
        if "float16" in dtypes or any(instr.op == "erf" for instr in program.instrs):
            return None
        self.made.append(program)
        run = self.made_by(program)

        def counted(*args: Any) -> Any:
            out = run(*args)
            self.calls += 1
            return out

        return counted


DEVICE = Programs()
FOLDING = Programs(folds=True)


def bits(x: Tensor) -> bytes:
    return x.numpy().tobytes()


def graph_of(function: Any, *args: Any) -> Graph:
    return compile(function).trace(*args)


def programs(function: Any, *args: Any) -> list[list[str]]:
    """The ops of the programs that a replay runs."""
    steps = plan_of(graph_of(function, *args)).steps
    return [[n.op.name for n in step.nodes] for step in steps if isinstance(step, Fused)]


def ones(*shape: int, device: Backend = DEVICE, dtype: Any = pt.float32) -> Tensor:
    return pt.ones(shape, device=device, dtype=dtype)


def test_a_chain_is_one_program_and_numbers_stay_free() -> None:
    function = compile(lambda x, factor: (x * factor + 1).relu().exp())
    x = ones(3, 2)
    for i in range(5):
        out = function(x, 0.5 + i)
        assert bits(out) == bits((x * (0.5 + i) + 1).relu().exp())
    (text,) = function.sources
    assert text.count("kernel_") == 1
    assert "multiply" not in text
    assert programs(lambda x: (x * 2.0 + 1).relu().exp(), x) == [["multiply", "add", "relu", "exp"]]


def test_branches_that_meet_are_one_program() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        a, b = x.exp() + 1, y.exp() * 2
        return a * b, a

    assert programs(function, ones(4), ones(4)) == [["exp", "add", "exp", "multiply", "multiply"]]
    fast = compile(function)
    x, y = pt.random.normal((4,), device=DEVICE), ones(4)
    for _ in range(4):
        assert [*map(bits, fast(x, y))] == [*map(bits, function(x, y))]


def test_branches_that_read_the_same_are_one_program_unless_one_needs_the_other() -> None:
    def lion(x: Tensor, mean: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
        return x - (mean * 0.9 + grad * 0.1).sign() * 0.01, mean * 0.99 + grad * 0.01

    given = [pt.random.normal((5, 3), device=DEVICE) for _ in range(3)]
    (ops,) = programs(lion, *given)
    assert len(ops) == 9
    fast = compile(lion)
    for _ in range(4):
        assert [*map(bits, fast(*given))] == [*map(bits, lion(*given))]
        given = [x * 1.5 for x in given]

    def needing(x: Tensor) -> Tensor:
        first = x * 2 + 1
        return x * first.cumulative_sum(axis=0) + 1

    assert programs(needing, given[0]) == [["multiply", "add"], ["multiply", "add"]]
    # Others read the first one before the second one could run.
    between = lambda x: ((x * 2 + 1).sum(axis=0), (x * 3 + x.mean(axis=0)).exp())  # noqa: E731
    assert len(programs(between, given[0])) == 2
    # Beside each other they would hold more at once than the ops do.
    held = lambda x: ((x * 2 + 1)[:1] * 2, (x * 3).exp())  # noqa: E731
    assert sorted(map(len, programs(held, given[0]))) == [2, 2]


def test_an_op_that_reads_in_between_ends_a_program() -> None:
    def function(x: Tensor) -> Tensor:
        y = x * 2 + 1
        return y.exp() * 3 - y.sum() + (y - 1)

    # What reads y behind the sum cannot run before it, nor y after it.
    assert programs(function, ones(4)) == [
        ["multiply", "add", "exp", "multiply"],
        ["subtract", "subtract", "add"],
    ]
    x = pt.random.normal((4,), device=DEVICE)
    fast = compile(function)
    for _ in range(4):
        assert bits(fast(x)) == bits(function(x))


def test_shapes_are_kept_apart_and_inputs_broadcast() -> None:
    def function(x: Tensor, row: Tensor) -> Tensor:
        return (x + (row * 2 + 1)).exp()

    assert programs(function, ones(3, 4), ones(4)) == [["multiply", "add"], ["add", "exp"]]


def test_limits_hold() -> None:
    def long(x: Tensor) -> Tensor:
        for _ in range(40):
            x = x * 2
        return x

    assert [len(ops) for ops in programs(long, ones(2))] == [16, 16, 8]

    def many(*xs: Tensor) -> Tensor:
        return sum(xs[1:], xs[0])

    found = programs(many, *[ones(2) for _ in range(12)])
    assert max(len(ops) for ops in found) == 6
    few = Programs(bindings=2)
    assert programs(many, *[ones(2, device=few) for _ in range(3)]) == []


def test_wide_and_narrow_types_part_where_a_backend_says_so() -> None:
    def function(x: Tensor) -> Tensor:
        return (x * 2 + 1).astype(pt.float64) * 2 - 1

    ops = ["multiply", "add", "cast", "multiply", "subtract"]
    assert programs(function, ones(2)) == [ops]
    apart = Programs(mixed=False)
    assert programs(function, ones(2, device=apart)) == [ops[:2], ops[2:]]


def test_two_ops_on_little_stand_alone_where_a_backend_says_so() -> None:
    device = Programs(pays_from=64)
    assert programs(lambda x: x * 2 + 1, ones(15, device=device)) == []
    assert programs(lambda x: x * 2 + 1, ones(16, device=device)) == [["multiply", "add"]]
    assert programs(lambda x: (x * 2 + 1).exp(), ones(1, device=device)) == [
        ["multiply", "add", "exp"]
    ]


def test_ops_without_a_kernel_stand_alone() -> None:
    assert programs(lambda x: (x + 1).erf() * 2 + 1, ones(2)) == [["multiply", "add"]]
    assert programs(lambda x: x * 2 + 1, ones(2, dtype=pt.float16)) == []
    assert programs(lambda x: x * 2 + 1, ones(2, device=Numpy())) == []


def test_explain_says_what_is_fused_and_why_not() -> None:
    fast = compile(lambda x: ((x * 2 + 1).sum(axis=0) - 1).erf())
    text = fast.explain(ones(3, 2))
    assert "ops: 5 to run" in text
    assert "calls: 4, of which 1 program for 2 ops" in text
    assert "program of 2: multiply, add; 1 input, 1 output, from " in text
    assert "1 sum: reduction is not elementwise" in text
    assert "1 erf: Programs" in text
    assert "1 subtract: no elementwise op beside it" in text


def test_a_number_that_does_not_fit_raises_as_the_function_does() -> None:
    fast = compile(lambda x, n: (x + n) * n)
    x = ones(2, dtype=pt.int32)
    for n in (1, 2, 3):
        assert fast(x, n).numpy().tolist() == [(1 + n) * n] * 2
    with pytest.raises(pt.DTypeError, match="out of range"):
        fast(x, 2**40)


@final
class Altered(Arrays):
    """NumPy whose programs are not those of its ops."""

    name = "altered"
    limits = ProgramLimits(bindings=8)
    entry = Programs.entry

    def __init__(self, kernel: Callable[[Program], Any]) -> None:
        self.settings = (kernel,)
        self._kernel = kernel

    def kernel(self, program: Program, /) -> Any:
        """What runs a program."""
        return self._kernel(program)


def off_by_one(program: Program) -> Any:
    """The interpreter, and one more."""
    run = interpreted(program)
    return lambda *args: tuple(out + out.dtype.type(1) for out in run(*args))


def sin_for_tanh(program: Program) -> Any:
    """The interpreter with sin in the place of tanh, in what is more than one op."""
    if len(program.instrs) == 1:
        return interpreted(program)
    wrong = [i._replace(op="sin") if i.op == "tanh" else i for i in program.instrs]
    return interpreted(program._replace(instrs=tuple(wrong)))


def test_check_mode_sees_a_program_that_is_wrong() -> None:
    x = ones(3, device=Altered(off_by_one))
    fast = compile(lambda x: x * 2 + 1, check=True)
    fast(x)
    fast(x)
    with pytest.raises(pt.DisagreementError, match="the result"):
        fast(x)


def test_a_check_names_the_program_and_the_op_at_fault() -> None:
    def chain(x: Tensor, factor: float) -> tuple[Tensor, Tensor]:
        good = ((x - 1) * factor).sum()
        return good, ((x * factor + 1).tanh() * 2).exp()

    fast = compile(chain, check=True)
    x = ones(3, device=Altered(sin_for_tanh))
    fast(x, 0.5)
    fast(x, 0.25)
    with pytest.raises(pt.DisagreementError) as caught:
        fast(x, 0.125)
    text = str(caught.value)
    assert "a program differs from its ops" in text
    assert "tanh, op 3 of a program of 5 (multiply, add, tanh, multiply, exp), at " in text
    assert __file__ in text


# Random graphs

_ONE = ("exp", "negative", "abs", "sin", "floor", "square", "tanh", "relu", "isfinite")
_FOLDS = ("max", "mean", "min", "prod", "sum")
_TWO = ("add", "multiply", "subtract", "maximum", "less", "divide")


@st.composite
def functions(draw: Any) -> tuple[list[Any], list[tuple[int, ...]], set[int]]:
    """Steps of a function, the shapes of its arguments, and what it returns."""
    shapes = draw(
        st.lists(st.sampled_from([(3, 4), (4,), (3, 1), (), (3, 4)]), min_size=1, max_size=3)
    )
    steps: list[Any] = []
    for _ in range(draw(st.integers(1, 14))):
        count = len(shapes) + len(steps)
        pick = st.integers(max(0, count - 4), count - 1) | st.integers(0, count - 1)
        kind = draw(
            st.sampled_from(["one", "two", "number", "sum", "fold", "fold", "view", "where"])
        )
        name = draw(st.sampled_from(_ONE if kind == "one" else _TWO))
        steps.append((kind, name, draw(pick), draw(pick), draw(pick)))
    total = len(shapes) + len(steps)
    kept = draw(st.sets(st.integers(len(shapes), total - 1), max_size=3))
    return steps, shapes, kept | {total - 1}


def run(steps: list[Any], kept: set[int], args: tuple[Tensor, ...], number: Any) -> Any:
    values: list[Any] = [*args]
    for kind, name, a, b, c in steps:
        x, y = values[a], values[b]
        if kind == "where":
            x = pt.where(
                values[c].astype(pt.float32) > 0, x.astype(pt.float32), y.astype(pt.float32)
            )
        elif kind == "one":
            x = getattr(pt, name)(x.astype(pt.float32))
        elif kind == "two":
            x = getattr(pt, name)(x.astype(pt.float32), y.astype(pt.float32))
        elif kind == "number":
            x = x.astype(pt.float32) * number + 0.5
        elif kind == "sum":
            x = x.astype(pt.float32).sum(axis=0 if x.ndim else ())
        elif kind == "fold":
            axis = -1 if x.ndim and a % 3 else tuple(range(x.ndim))
            fold = getattr(pt, _FOLDS[b % len(_FOLDS)])
            x = fold(x.astype(pt.float32), axis=axis, keepdims=c % 3 > 0)
        else:
            x = x.astype(pt.float32).broadcast_to((3, 4)) if x.ndim < 2 else x.T.T
        try:
            pt.broadcast_shapes(x.shape, (3, 4))
        except pt.ShapeError:
            x = x.reshape(-1)[:1]
        values.append(x)
    return tuple(values[at] for at in sorted(kept))


@pytest.mark.parametrize("device", [DEVICE, FOLDING])
@settings(max_examples=40, deadline=None)
@given(made=functions())
def test_random_graphs_give_the_bits_of_their_ops_and_hold_no_more(
    device: Programs, made: Any
) -> None:
    steps, shapes, kept = made
    fast = compile(lambda number, *args: run(steps, kept, args, number))
    args: tuple[Tensor, ...] = ()
    with np.errstate(all="ignore"):
        before = 0
        for turn in range(5):
            args = tuple(pt.random.normal(shape, device=device) for shape in shapes)
            number = 0.25 + turn
            before = device.calls
            got, wanted = fast(number, *args), run(steps, kept, args, number)
            assert [*map(bits, got)] == [*map(bits, wanted)]
        assert fast.fallbacks == 0
        graph = fast.trace(0.5, *args)
    nodes, _ = folded(graph)
    wanted_values = {*graph.outputs}
    plan = plan_of(graph)
    assert device.calls - before == sum(isinstance(step, Fused) for step in plan.steps)
    held = [planning._peak(each, graph.specs, wanted_values)[0] for each in (plan.steps, nodes)]
    assert held[0] <= held[1]
    inside = sum(len(step.nodes) for step in plan.steps if isinstance(step, Fused))
    assert inside + len(plan.alone) == len(nodes)


def test_programs_that_wait_for_one_that_is_none_run_in_time() -> None:
    """Two comparisons may be one program, as what reads the first is one with what comes later.

    That would hold too much at once, so its ops run at their own places; one needs the comparison.
    """
    device = Programs(bindings=8, instrs=16)

    def function(x: Tensor) -> Tensor:
        one = x.exp()
        two = one.exp()
        total = one.sum(axis=0)
        left = pt.where(total > 0, one, one)
        return left + pt.where(total > 0, two, total)

    fast = compile(function)
    x = pt.random.normal((3, 4), device=device)
    for _ in range(4):
        assert bits(fast(x)) == bits(function(x))
        x = pt.random.normal((3, 4), device=device)
    graph = fast.trace(x)
    given = {*graph.inputs, *graph.constants}
    for step in plan_of(graph).steps:
        assert given >= {*takes(step)}
        given.update(gives(step))


# What the random graphs are for: each of these faults is found among them

_BUDGET = settings(
    max_examples=400, deadline=None, database=None, derandomize=True, phases=[Phase.generate]
)


def is_found(device: Programs) -> None:
    """Look for a graph whose replay has other bits than its ops, or does not run."""

    def differs(made: Any) -> bool:
        steps, shapes, kept = made
        pt.seed(0)  # the same verdict whenever it is asked for
        fast = compile(lambda number, *args: run(steps, kept, args, number))
        args = tuple(pt.random.normal(shape, device=device) * 3 for shape in shapes)
        before = 0
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the count of what does not run says enough
            for turn in range(3):
                number, before = 0.25 + turn, device.calls
                got, wanted = fast(number, *args), run(steps, kept, args, number)
                if fast.fallbacks or [*map(bits, got)] != [*map(bits, wanted)]:
                    return True
            graph = fast.trace(0.5, *args)
        called = device.calls - before
        return called != sum(isinstance(step, Fused) for step in plan_of(graph).steps)

    find(functions(), differs, settings=_BUDGET)


def test_a_broken_handler_is_found() -> None:
    def broken(program: Program) -> Any:
        instrs = [i._replace(op="subtract") if i.op == "add" else i for i in program.instrs]
        return interpreted(program._replace(instrs=tuple(instrs)))

    is_found(Programs(made_by=broken))


@pytest.mark.long
def test_folds_in_another_order_are_found() -> None:
    def turned(program: Program) -> Any:
        own, count = interpreted(program), len(program.inputs)

        def run(*args: Any) -> Any:
            """The same rows from the other end."""
            wide = max((x.ndim for x in args[:count]), default=0)
            found = own(*(x[..., ::-1] if x.ndim else x for x in args[:count]), *args[count:])
            return tuple(y[..., ::-1] if 0 < wide == y.ndim else y for y in found)

        return run if "sum" in {i.op for i in program.instrs} else own

    is_found(Programs(folds=True, made_by=turned))


def test_a_value_that_goes_too_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:

    def early(steps: Any) -> dict[int, int]:
        return {value: max(place - 1, 0) for value, place in last_uses(steps).items()}

    monkeypatch.setattr("phlox_fusion.replay.steps.last_uses", early)
    is_found(Programs(folds=True))


@pytest.mark.long
def test_a_result_that_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = "phlox_fusion.plan.cluster._Clusters"
    monkeypatch.setattr(f"{clusters}._leaves", lambda self, v, _: v in self._wanted)
    is_found(Programs(folds=True))


def test_programs_in_another_order_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = planning._in_order

    def turned(nodes: Any, made: Any) -> Any:
        steps = [*right(nodes, made)]
        for place, step in enumerate(steps[1:], 1):
            if isinstance(step, Fused):
                steps[place - 1], steps[place] = step, steps[place - 1]
                break
        return tuple(steps)

    monkeypatch.setattr(planning, "_in_order", turned)
    monkeypatch.setattr(planning, "_late", lambda steps: None)  # which would give such programs up
    is_found(Programs(folds=True))
