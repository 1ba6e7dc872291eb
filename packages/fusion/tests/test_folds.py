"""Programs with folds; equal programs as one call; formulas of ops as programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_fusion import Fusion, compile
from phlox_fusion.plan.items import Fused
from phlox_fusion.replay.replay import plan_of
from phlox_tensor import Backend, Numpy, Tensor
from phlox_tensor._device.numpy_backend import Arrays
from phlox_tensor.capture import Instr, Program, ProgramLimits, interpreted

FORMULAS = ("elu", "hard_shrink", "hard_tanh", "leaky_relu", "log_sigmoid", "relu6", "threshold")


@final
class Folding(Arrays):
    """NumPy with programs that fold, or not; their kernels are counted, or as a test makes them."""

    name = "folding"

    def __init__(
        self,
        kernel: Callable[[Program], Any] | None = None,
        *,
        folds: bool = True,
        folds_from: int = 0,
        stages: bool = True,
    ) -> None:
        self.settings = (kernel, folds, folds_from, stages)
        self.limits = ProgramLimits(8, folds=folds, folds_from=folds_from, stages=stages)
        self._kernel = kernel
        self.made: list[Program] = []
        self.calls = 0

    def entry(self, name: str) -> Any:
        """The reference of the op; none for those of which the formula is to run."""
        return None if name in FORMULAS else Numpy().entry(name)

    def kernel(self, program: Program, /) -> Any:
        """What the test makes; else the interpreter, which there is none of for float16."""
        if self._kernel is not None:
            return self._kernel(program)
        if "float16" in program.inputs:
            return None
        self.made.append(program)
        run = interpreted(program)

        def counted(*args: Any) -> Any:
            out = run(*args)
            self.calls += 1
            return out

        return counted


DEVICE = Folding()
MAPS = Folding(folds=False)
OPS = Folding(lambda program: None)  # op by op


def bits(x: Tensor) -> bytes:
    return x.numpy().tobytes()


def programs(function: Any, *args: Any) -> list[list[str]]:
    """The ops of the programs that a replay runs."""
    steps = plan_of(compile(function).trace(*args)).steps
    return [[n.op.name for n in step.nodes] for step in steps if isinstance(step, Fused)]


def ones(*shape: int, device: Backend = DEVICE) -> Tensor:
    return pt.ones(shape, device=device)


# Equal programs


@final
class Over:
    """A kernel that takes several calls at once, and notes how many."""

    def __init__(self, program: Program) -> None:
        self._run = interpreted(program)
        self.counts: list[int] = []

    def __call__(self, *args: Any) -> Any:
        self.counts.append(1)
        return self._run(*args)

    def over(self, calls: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        self.counts.append(len(calls))
        return tuple(out for args in calls for out in self._run(*args))


def test_the_rule_of_an_optimizer_is_one_call_over_all_parameters() -> None:
    kernels: list[Over] = []

    def kernel(program: Program) -> Over:
        kernels.append(Over(program))
        return kernels[-1]

    device = Folding(kernel)

    def step(rate: float, tensors: list[Tensor], grads: list[Tensor]) -> list[Tensor]:
        small = [tensor * (1.0 - rate) for tensor in tensors]  # held, so that more at once is not
        moved = [(t - g.sign() * rate) * (1.0 - rate) for t, g in zip(tensors, grads, strict=True)]
        return [*moved, *small]

    tensors, grads = (
        [pt.random.normal(shape, device=device) for shape in ((3, 4), (4,), (4, 2), (2,))]
        for _ in range(2)
    )
    fast = compile(step)
    for i in range(5):
        got, wanted = fast(0.1 * i, tensors, grads), step(0.1 * i, tensors, grads)
        assert [*map(bits, got)] == [*map(bits, wanted)]
    assert [k.counts for k in kernels if k.counts] == [[4, 4]]
    assert fast.sources[0].count("kernel_") == 1
    assert "4 of them are one call" in fast.explain(0.5, tensors, grads)
    # A program that takes what the one before gives waits for it.
    chain = compile(lambda x: ((x * 2 + 1).sum(axis=0) * 2 + 1).sum(axis=0) * 2 + 1)
    del kernels[:]
    for _ in range(3):
        chain(ones(3, 3, device=device))
    assert {count for k in kernels for count in k.counts} == {1}


# Expansions


def test_an_op_that_is_a_formula_alone_is_one_kernel() -> None:
    numbers = np.random.default_rng(1).standard_normal((3, 5)).astype("f4") * 3
    x, plain = pt.asarray(numbers, device=DEVICE), pt.asarray(numbers, device=OPS)
    for name in FORMULAS:
        op, before = pt.REGISTRY[name], DEVICE.calls
        assert bits(op(x)) == bits(op(plain)), name
        assert DEVICE.calls == before + 1, name


def test_formulas_go_by_their_numbers_and_types_and_join_what_is_compiled() -> None:
    x = pt.random.normal((4,), device=DEVICE)
    for alpha in (0.5, 2.0, 0.25):
        assert bits(pt.leaky_relu(x, alpha)) == bits(pt.leaky_relu(x.to_device(OPS), alpha))
    before = DEVICE.calls
    assert pt.elu(x.astype(pt.float16)).dtype is pt.float16  # no kernel: its ops run
    assert DEVICE.calls == before
    (ops,) = programs(lambda x: pt.leaky_relu(x, 0.5) * 2, x)
    assert ops[-1] == "multiply"
    assert len(ops) > 2


# Folds


def softmax(x: Tensor) -> Tensor:
    e = (x - x.max(axis=-1, keepdims=True)).exp()
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    d = x - x.mean(axis=-1, keepdims=True)
    return d / (d.square().mean(axis=-1, keepdims=True) + 1e-5).sqrt() * scale + shift


def test_softmax_and_layer_norm_as_users_write_them_are_one_program() -> None:
    x, row = (pt.random.normal(shape, device=DEVICE) for shape in ((3, 5), (5,)))
    cases: list[tuple[Any, tuple[Tensor, ...]]] = [(softmax, (x,)), (layer_norm, (x, row, row))]
    for function, args in cases:
        (ops,) = programs(function, *args)
        assert len(ops) == {softmax: 5, layer_norm: 9}[function]
        fast, before = compile(function), DEVICE.calls
        for _ in range(5):
            assert bits(fast(*args)) == bits(function(*args))
        assert DEVICE.calls == before + 2  # calls 1, 2 and 4 record
    assert DEVICE.made[-1].inner == 1
    assert programs(softmax, ones(3, 5, device=MAPS)) == [["subtract", "exp"]]  # without folds


def test_a_map_that_ends_in_a_fold_is_one_program_and_goes_on_with_what_it_gives() -> None:
    x = pt.random.normal((2, 3, 4), device=DEVICE)
    cases: list[tuple[Any, list[list[str]]]] = [
        (lambda x: (x * 2 - 1).square().mean(), [["multiply", "subtract", "square", "mean"]]),
        (lambda x: x.abs().max().sqrt() + 1, [["abs", "max", "sqrt", "add"]]),
        (lambda x: x / x.sum(), [["sum", "divide"]]),
        (lambda x: x.square().sum(axis=(1, 2)).sqrt(), [["square", "sum", "sqrt"]]),
        (
            lambda x: x.square().min(axis=2) + x.square().sum(axis=2),
            [["square", "min", "square", "sum", "add"]],
        ),
        # Other axes, and axes that are gone when what they were folded to is read.
        (lambda x: x.square().sum(axis=0), []),
        (
            lambda x: x.square() - x.square().sum(axis=(0, 1), keepdims=True),
            [["square", "subtract"]],
        ),
        (lambda x: (x * x).sum(axis=2) - x[:, 0, 0].reshape(2, 1), [["multiply", "sum"]]),
        (lambda x: x.sum(axis=2) * 2, []),
    ]
    for function, wanted in cases:
        assert programs(function, x) == wanted
        fast, before = compile(function), DEVICE.calls
        for _ in range(5):
            assert bits(fast(x)) == bits(function(x))
        assert DEVICE.calls == before + 2 * len(wanted)


def test_limits_say_what_may_be_folded_and_whether_it_is_read_again() -> None:
    few = Folding(folds_from=64)
    assert programs(lambda x: (x * 2).square().sum(), ones(15, device=few)) == [
        ["multiply", "square"]
    ]
    assert len(programs(lambda x: (x * 2).square().sum(), ones(16, device=few))[0]) == 3
    ends = Folding(stages=False)
    x = pt.random.normal((3, 5), device=ends)
    assert programs(softmax, x) == [["subtract", "exp", "sum"]]
    rows = [["square", "mean", "add", "sqrt"]]
    assert programs(lambda x: (x.square().mean(axis=1) + 1e-5).sqrt(), x) == rows
    fast = compile(softmax)
    for _ in range(4):
        assert bits(fast(x)) == bits(softmax(x))


def test_what_is_folded_is_read_again_from_some_bytes_on_where_limits_say_so() -> None:
    far = Folding()
    far.limits = far.limits._replace(stages_from=4 * 15)
    assert programs(softmax, ones(3, 5, device=far)) == [
        ["max", "subtract", "exp", "sum", "divide"]
    ]
    assert programs(softmax, ones(2, 7, device=far)) == [["subtract", "exp", "sum"]]


def test_rows_of_as_many_elements_as_there_are_rows_are_not_taken_for_columns() -> None:
    def function(x: Tensor) -> Tensor:
        return (x * 2 - x.square().sum(axis=1)).exp()  # the sums lie along the last axis

    x = pt.random.normal((3, 3), device=DEVICE)
    assert programs(function, x) == [["square", "sum"], ["multiply", "subtract", "exp"]]
    fast = compile(function)
    for _ in range(4):
        assert bits(fast(x)) == bits(function(x))


def test_a_gradient_through_what_folds_is_what_it_is_without_programs() -> None:
    numbers = np.random.default_rng(0).standard_normal((4, 6)).astype("f4")
    found = []
    for device in (DEVICE, MAPS):
        x = pt.asarray(numbers, device=device)
        fast = compile(lambda x: softmax(x * 3) * x.mean(axis=-1, keepdims=True))
        found += [bits(fast(x)) for _ in range(3)]
    assert len({*found}) == 1


def test_explain_says_why_a_reduction_stands_alone() -> None:
    text = compile(lambda x: (x.square().sum(axis=0) - 1).exp().sum()).explain(
        ones(3, 2, device=DEVICE)
    )
    assert "1 sum: it folds other axes than the last ones" in text
    assert "program of 3: subtract, exp, sum; 1 input, 1 output" in text


def sums_for_means(program: Program) -> Any:
    """The interpreter with sums in the place of means, in what is more than one op."""
    if len(program.instrs) == 1:
        return interpreted(program)
    wrong = [i._replace(op="sum") if i.op == "mean" else i for i in program.instrs]
    return interpreted(program._replace(instrs=tuple(wrong)))


def test_a_check_names_the_fold_at_fault() -> None:
    device = Folding(sums_for_means)
    fast = compile(lambda x: (x.square().mean(axis=-1, keepdims=True) - x).exp(), check=True)
    x = pt.random.normal((2, 3), device=device)
    fast(x)
    fast(x)
    with pytest.raises(
        pt.DisagreementError, match=r"mean, op 2 of a program of 4 \(square, mean, "
    ):
        fast(x)


def test_a_program_whose_folds_have_nothing_to_fold_is_refused() -> None:
    fold = Program(("float32",), (), (Instr("sum", (0,), "float32"),), (1,), 1)
    (out,) = interpreted(fold)(np.array([[1, 2], [3, 4]], "f4"))
    assert out.tolist() == [[3.0], [7.0]]
    assert interpreted(fold._replace(keepdims=False))(np.array([1, 2], "f4"))[0].shape == ()
    for wrong in (fold._replace(inner=0), fold._replace(rows=(0,))):
        with pytest.raises(pt.CompileError, match="nothing to fold"):
            interpreted(wrong)
    for shape in ((), (0, 2), (2, 0)):
        with pytest.raises(pt.Rejected, match="to fold"):
            interpreted(fold)(np.ones(shape, "f4"))
    assert "program(float32 x0), folded along 1 of its axes" in str(fold)


def test_folds_that_have_no_kernel_together_leave_the_rest_of_it_one() -> None:
    def one_fold(program: Program) -> Any:
        folds = [i for i in program.instrs if i.op in ("max", "mean", "sum")]
        return interpreted(program) if len(folds) < 2 else None

    x = ones(3, 4, device=Folding(one_fold))

    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        y = (x * 2 + 1).exp()
        return y.sum(axis=-1), y.max(axis=-1)

    fast = compile(both)
    for _ in range(3):
        for got, wanted in zip(fast(x), both(x), strict=True):
            assert bits(got) == bits(wanted)
    assert programs(both, x) == [["multiply", "add", "exp"]]
    assert "no kernel for them together" in fast.explain(x)


# Folds of what waits


def test_a_fold_of_what_waits_is_a_part_of_its_program() -> None:
    base = Folding()
    x = ones(4, 6, device=Fusion(base, least=0))
    made = ((x * 2 - 1).exp()).mean(axis=(0, 1)), (x + 1).sum(axis=-1, keepdims=True)
    assert [each.primitive.stream is not None for each in made] == [True, True]
    assert [each.shape for each in made] == [(), (4, 1)]
    plain = ones(4, 6, device=Numpy())
    wanted = (plain * 2 - 1).exp().mean(), (plain + 1).sum(axis=-1, keepdims=True)
    assert [bits(each) for each in made] == [bits(each) for each in wanted]
    made_programs = [[instr.op for instr in program.instrs] for program in base.made]
    assert ["multiply", "subtract", "exp", "mean"] in made_programs
    assert ["add", "sum"] in made_programs


@pytest.mark.parametrize(
    "fold",
    [
        lambda x: x.sum(axis=0),  # another axis than the last ones
        lambda x: x.sum(axis=()),
        lambda x: x.sum(dtype=pt.float64),
        lambda x: x.argmax(axis=-1),
    ],
)
def test_other_reductions_run_at_once(fold: Callable[[Tensor], Tensor]) -> None:
    x = ones(4, 6, device=Fusion(Folding(), least=0))
    found = fold(x * 3)
    assert found.primitive.stream is None
    assert bits(found) == bits(fold(ones(4, 6, device=Numpy()) * 3))


def test_a_fold_of_what_is_there_runs_at_once_and_so_does_one_of_little() -> None:
    x = ones(4, 6, device=Fusion(Folding(), least=0))
    assert x.sum(axis=-1).primitive.stream is None
    little = ones(4, 6, device=Fusion(Folding(folds_from=1 << 10), least=0))
    assert (little * 2).sum(axis=-1).primitive.stream is None
    assert ones(4, 6, device=Fusion(MAPS, least=0)).exp().sum(axis=-1).primitive.stream is None


def test_a_fold_of_nothing_says_what_the_op_says() -> None:
    x = ones(4, 0, device=Fusion(Folding(), least=0))
    with pytest.raises(pt.ShapeError, match="max"):
        (x * 2).max(axis=-1)
