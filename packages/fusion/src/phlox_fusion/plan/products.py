"""Products of few rows: one kernel for those of the same rows, with what is around them.

Where a text goes on by one token each op takes as long as a kernel takes to begin.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import prod
from typing import Any, Final, NamedTuple

from phlox_tensor import Spec
from phlox_tensor.capture import (
    Kernel,
    Lowered,
    Node,
    Number,
    Program,
    RowProduct,
    Value,
    arguments_of,
    lowered,
)

from .items import Fused, Known, Products, Single, Step, gives, run_steps, takes

_MOST: Final = 4  # matrices of a kernel


class _Last(NamedTuple):
    """What makes one result of products: its place, a program, and what it takes besides them."""

    place: int
    program: Program
    more: tuple[Any, ...]


def with_products(
    steps: Sequence[Step], specs: Sequence[Spec], wanted: set[int]
) -> tuple[Single, ...]:
    """Return the steps with products of few rows as one, where the device has a kernel."""
    return _Finder(steps, specs, wanted).found()


class _Finder:
    """Looks for products in the steps of a plan."""

    def __init__(self, steps: Sequence[Step], specs: Sequence[Spec], wanted: set[int]) -> None:
        self._steps, self._specs, self._wanted = steps, specs, wanted
        self._made = {value: at for at, step in enumerate(steps) for value in gives(step)}
        self._readers: defaultdict[int, list[int]] = defaultdict(list)
        for at, step in enumerate(steps):
            for value in takes(step):
                self._readers[value].append(at)

    def found(self) -> tuple[Single, ...]:
        """Return the steps."""
        groups: defaultdict[Any, list[int]] = defaultdict(list)
        for at, step in enumerate(self._steps):
            if isinstance(step, Node) and self._multiplies(step):
                key = id(step.device), step.operands[0], step.op.name, step.attributes
                groups[key].append(at)
        made: dict[int, Products] = {}
        gone: set[int] = set()
        norms: Counter[int] = Counter()
        for places in groups.values():
            for first in range(0, len(places), _MOST):
                self._join(places[first : first + _MOST], made, gone, norms)
        for at, count in norms.items():
            (normal,) = gives(self._steps[at])
            if count == len(self._readers[normal]) and normal not in self._wanted:
                gone.add(at)
        steps = [made.get(at, step) for at, step in enumerate(self._steps)]
        return tuple(step for at, step in enumerate(steps) if at in made or at not in gone)

    def _multiplies(self, node: Node) -> bool:
        """Whether a node multiplies few rows by a matrix."""
        limits = node.device.limits
        if node.op.name not in limits.products:
            return False
        x, matrix, bias = node.operands
        if type(x) is not Value or type(matrix) is not Value or bias is not None:
            return False
        return 0 < prod(self._specs[x.number].shape[:-1]) <= limits.product_rows

    def _join(
        self,
        places: list[int],
        made: dict[int, Products],
        gone: set[int],
        norms: Counter[int],
    ) -> None:
        """Put one step in the place of products of the same rows, if the device has a kernel."""
        last = self._last(places)
        if last is None or last.place in made:  # products of other rows have taken it
            last = None  # so the kernel runs where the first product was
            places = [at for at in places if self._ready(at, places[0])]
        nodes: list[Any] = [self._steps[at] for at in places]
        rows = nodes[0].operands[0]
        norm = self._norm(rows.number)
        if norm is None and last is None and len(places) == 1:
            return
        steps: list[Step] = [*nodes]
        args = [rows]
        if norm is not None:
            steps.insert(0, norm)
            args = [*norm.operands]
        args += [node.operands[1] for node in nodes]
        results = [node.results[0] for node in nodes]
        if last is not None:
            steps.append(self._steps[last.place])
            args += last.more
            results = [*gives(steps[-1])]
        epsilon = None if norm is None else norm.attributes[0]
        program = None if last is None else last.program
        product = RowProduct(nodes[0].op.name, nodes[0].attributes, len(nodes), epsilon, program)
        formula = _formula(tuple(steps), args, tuple(results), self._specs)
        kernel = nodes[0].device.row_product(product, formula)
        if kernel is None:
            return
        whole = Products(tuple(steps), product, tuple(args), tuple(results), kernel)
        place = places[0] if last is None else last.place
        made[place] = whole
        gone.update({*places} - {place})
        if norm is not None:
            norms[self._made[rows.number]] += len(places)

    def _ready(self, at: int, first: int) -> bool:
        """Whether all that a step takes is made before a place."""
        return all(self._made.get(value, -1) < first for value in takes(self._steps[at]))

    def _norm(self, value: int) -> Node | None:
        """The norm that gives a value."""
        step = self._steps[self._made[value]] if value in self._made else None
        if not isinstance(step, Node) or step.op.name != step.device.limits.product_norm:
            return None
        x, weight = step.operands
        fits = type(x) is type(weight) is Value and type(step.attributes[0]) is float
        same = fits and self._specs[x.number].dtype is self._specs[value].dtype
        return step if same else None

    def _last(self, places: list[int]) -> _Last | None:
        """What alone reads the products, element by element."""
        results = [value for at in places for value in gives(self._steps[at])]
        readers = {at for value in results for at in self._readers[value]}
        if len(readers) != 1 or not self._wanted.isdisjoint(results):
            return None
        (place,) = readers
        device = self._steps[places[0]].device  # type: ignore[union-attr]
        found = self._lowered(self._steps[place], device)
        if found is None or not {*results} <= {*found.inputs}:
            return None
        if any(type(number) is Number for number in found.numbers):
            return None
        spec = self._specs[results[0]]
        if any(self._specs[v] != spec for v in (*found.inputs, *found.results)):
            return None
        more = [value for value in found.inputs if value not in results]
        program = _reordered(found.program, [found.inputs.index(v) for v in (*results, *more)])
        return _Last(place, program, (*map(Value, more), *found.numbers))

    def _lowered(self, step: Step, device: Any) -> Lowered | None:
        """A step as a program of elements with one result."""
        if isinstance(step, Fused):
            one = step.nodes[0].device is device and len(step.lowered.results) == 1
            return step.lowered if one and not step.lowered.program.inner else None
        if step.device is not device or isinstance(arguments_of(step, self._specs), str):
            return None
        return lowered((step,), self._specs, step.results)


def _reordered(program: Program, order: list[int]) -> Program:
    """A program whose inputs are taken in another order."""
    to = {value: at for at, value in enumerate(order)}
    instrs = [i._replace(args=tuple(to.get(arg, arg) for arg in i.args)) for i in program.instrs]
    inputs = tuple(program.inputs[value] for value in order)
    return program._replace(inputs=inputs, instrs=tuple(instrs))


def _formula(
    steps: tuple[Step, ...], args: list[Any], results: tuple[int, ...], specs: Sequence[Spec]
) -> Kernel:
    """The steps one by one, as a function of what one kernel takes."""

    def run(*operands: Any) -> tuple[Any, ...]:
        values = {x.number: y for x, y in zip(args, operands, strict=True) if type(x) is Value}
        run_steps(steps, Known(values, specs, ()))
        return tuple(values[value] for value in results)

    return run
