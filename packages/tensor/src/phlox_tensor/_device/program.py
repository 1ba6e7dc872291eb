"""Programs: elementwise ops as data that a backend may run as one kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from .._errors.classes import CompileError
from .._op.declaration import REGISTRY

Kernel = Callable[..., tuple[Any, ...]]
"""A function of the primitives and then the numbers of a program that gives its outputs."""


Run = Callable[[Any], tuple[Any, ...]]
"""A function of a sequence of primitives: the same ops with the same attributes at each call."""


class Call(NamedTuple):
    """One call of a sequence, as data.

    Attributes:
        function: an entry of the device, or a kernel.
        each: its arguments: a Value, a tuple of them, a Number, or what is the same each time.
            Several tuples are as many calls of a kernel, whose results follow each other.
        results: the values that it gives.
        ended: the values that nobody takes afterwards.
    """

    function: Callable[..., Any]
    each: tuple[tuple[Any, ...], ...]
    results: tuple[int, ...]
    ended: tuple[int, ...]


class CallSequence(NamedTuple):
    """Calls that follow each other, as data.

    Attributes:
        inputs: the values that they take from before.
        numbers: the places of the Numbers among their arguments.
        calls: in the order in which they run.
        results: the values that are needed afterwards.
        work: elements of all operands and results.
    """

    inputs: tuple[int, ...]
    numbers: tuple[int, ...]
    calls: tuple[Call, ...]
    results: tuple[int, ...]
    work: int


SequenceRun = Callable[[list[Any], tuple[int | float, ...]], tuple[Any, ...]]
"""A function of a list of primitives, which it empties, and of numbers."""


class Instr(NamedTuple):
    """One op of a program: elementwise, a reduction that folds, or a source of random numbers.

    Attributes:
        op: its name.
        args: the values of its operands, then of its attributes, which are numbers. A source has
            the shape of the program, row by row: it takes no argument for that.
        dtype: the element type of its result; an attribute that asks for it is no argument.
    """

    op: str
    args: tuple[int, ...]
    dtype: str


class Program(NamedTuple):
    """Elementwise ops over arrays whose shapes broadcast, and numbers; and folds of rows.

    Values count from 0: inputs, then numbers, then instructions. The outputs have the shape to
    which all inputs broadcast. With ``inner``, the last so many axes are a row: reductions make one
    element of it, which is there for each element of the row again where others read it. Lengths,
    strides and numbers are no part of a program, so one kernel serves all of them; equal programs
    are equal as tuples.

    Attributes:
        inputs: the element types of the arrays.
        numbers: the element types as which the numbers are taken.
        instrs: the ops, each behind those whose results it takes. Every result has the bits that
            the op by itself gives: float16 and bfloat16 are rounded after each.
        outputs: the instructions whose results are wanted, as values.
        inner: how many axes, the last ones, are folded by the reductions among the instructions.
        keepdims: whether outputs that have one element for each row keep these axes.
        rows: the inputs that have one element for each row: of length 1 along these axes.
    """

    inputs: tuple[str, ...]
    numbers: tuple[str, ...]
    instrs: tuple[Instr, ...]
    outputs: tuple[int, ...]
    inner: int = 0
    keepdims: bool = True
    rows: tuple[int, ...] = ()

    @property
    def start(self) -> int:
        """The value of the first instruction."""
        return len(self.inputs) + len(self.numbers)

    def dtype(self, value: int) -> str:
        """Return the element type of a value."""
        if value >= self.start:
            return self.instrs[value - self.start].dtype
        return (*self.inputs, *self.numbers)[value]

    def of_rows(self) -> tuple[bool, ...]:
        """Return for each value whether it has one element for each row, as numbers have."""
        found = [at in self.rows for at in range(len(self.inputs))] + [True] * len(self.numbers)
        for op, args, _ in self.instrs:
            known = REGISTRY[op].traits
            found.append(known.folds or (not known.source and all(found[arg] for arg in args)))
        return tuple(found)

    def check(self) -> None:
        """Refuse a program that no kernel could run.

        Raises:
            CompileError: without inputs or outputs, where a value is taken before it is there, or
                where an output is no instruction or stands twice; where folds have no axes, or
                take what has one element for each row; where a source takes other than numbers.
        """
        for at, instr in enumerate(self.instrs):
            if not instr.args or not all(0 <= arg < self.start + at for arg in instr.args):
                raise CompileError(
                    "program",
                    f"instruction {at} takes values that are not there",
                    got=f"{instr.op}{instr.args}",
                    expected=f"values from 0 up to {self.start + at - 1}",
                )
        made = range(self.start, self.start + len(self.instrs))
        wanted = self.outputs
        if not self.inputs or not wanted or len({*wanted} & {*made}) < len(wanted):
            raise CompileError(
                "program",
                "the outputs are no instructions, or there is nothing to do",
                got=f"{len(self.inputs)} inputs, outputs {wanted}",
                expected=f"an input, and outputs among {made.start} to {made.stop - 1}",
            )
        rows = self.of_rows()
        for op, args, _ in self.instrs:
            if REGISTRY[op].traits.source and not all(
                len(self.inputs) <= a < self.start for a in args
            ):
                raise CompileError(
                    "program",
                    "a source takes what is no number",
                    got=f"{op}{args}",
                    expected=f"values from {len(self.inputs)} up to {self.start - 1}",
                )
            if REGISTRY[op].traits.folds and (self.inner < 1 or len(args) != 1 or rows[args[0]]):
                raise CompileError(
                    "program",
                    "a fold has nothing to fold",
                    got=f"{op}{args} along {self.inner} axes",
                    expected="a value that is not one of rows, along the last axes",
                )

    def __str__(self) -> str:
        names = [f"{dtype} x{i}" for i, dtype in enumerate(self.inputs)]
        names += [f"{dtype} n{i}" for i, dtype in enumerate(self.numbers, len(self.inputs))]
        for at in self.rows:
            names[at] = f"row {names[at]}"
        folded = f", folded along {self.inner} of its axes" if self.inner else ""
        lines = [f"program({', '.join(names)}){folded}"]
        for value, instr in enumerate(self.instrs, self.start):
            args = ", ".join(map(self._name, instr.args))
            lines.append(f"  v{value}: {instr.dtype} = {instr.op}({args})")
        return "\n".join([*lines, f"  gives {', '.join(map(self._name, self.outputs))}"])

    def _name(self, value: int) -> str:
        letter = "x" if value < len(self.inputs) else "n" if value < self.start else "v"
        return f"{letter}{value}"


class RowProduct(NamedTuple):
    """Products of the same few rows, with a norm before them and elementwise ops after them.

    Its kernel takes the rows, the weight of the norm if there is one, the matrices, the inputs of
    the program behind those that are the products, and its numbers.

    Attributes:
        op: what multiplies: an op of rows, a matrix and a bias, of which there is none.
        attributes: those of the op.
        matrices: how many there are.
        epsilon: of the norm before them, ``limits.product_norm``; None without one.
        last: what makes one result of all products, its first inputs; None where they are results.
    """

    op: str
    attributes: tuple[Any, ...]
    matrices: int
    epsilon: float | None
    last: Program | None

    @property
    def arrays(self) -> int:
        """How many arrays the kernel takes."""
        more = 0 if self.last is None else len(self.last.inputs) - self.matrices
        return 1 + (self.epsilon is not None) + self.matrices + more


class ProgramLimits(NamedTuple):
    """What one kernel of a backend may take.

    Attributes:
        bindings: inputs and outputs together; 0: the backend runs no programs.
        instrs: instructions.
        mixed: one program may have element types of 8 bytes and of 2 or 4.
        folds: reductions of the last axes may stand among the instructions.
        folds_from: bytes of what is folded from which that is faster than the ops.
        stages: what a fold gives may be read for each element of the row again.
        pays_from: bytes of a result from which two ops are faster as a program; below, three are.
        draws_from: bytes of random numbers from which they are drawn faster inside.
        stages_from: bytes of what is folded from which reading the fold again pays.
        apart: ops with an entry of which programs know nothing: kernels spell them out.
        finishes: activations that ``fused_linear`` does with the bits of the ops by themselves,
            and the op in front of each, which is ``linear``.
        finishes_from: bytes of a result from which that is faster.
        products: the ops that multiply few rows, of which ``row_product`` makes kernels.
        product_rows: how many rows that are at most.
        product_norm: the op of rows, a weight and an epsilon that may stand before them.
    """

    bindings: int = 0
    instrs: int = 64
    mixed: bool = True
    pays_from: int = 0
    folds: bool = False
    folds_from: int = 0
    stages: bool = True
    draws_from: int = 0
    stages_from: int = 0
    apart: frozenset[str] = frozenset()
    finishes: Mapping[str, str] = MappingProxyType({})
    finishes_from: int = 0
    products: frozenset[str] = frozenset()
    product_rows: int = 0
    product_norm: str = ""
