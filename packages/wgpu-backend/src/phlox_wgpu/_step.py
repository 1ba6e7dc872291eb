"""Optimizer steps: a kernel for each large parameter, and for many small ones together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import Final

from phlox_tensor import DType, Rejected, float32

from ._array import GpuArray, Result, result_of
from ._elementwise import Chained, run_program, scalar
from ._launch import Launch
from ._runtime import GpuDevice
from ._table import Entries
from .wgsl.chain import Chain, Node
from .wgsl.sets import sets_source
from .wgsl.walk import WORKGROUP

Arrays = Sequence[GpuArray]
_SMALL: Final = 1 << 16  # elements, whose kernel takes longer to be recorded than to run
_BINDINGS: Final = 128  # of one kernel: the text of each set is compiled


class _Chain:
    """A chain in the making over arrays and numbers with names; it computes in float32."""

    def __init__(self, dtype: DType, arrays: Sequence[str], numbers: Sequence[str]) -> None:
        self.dtype = dtype
        self.inputs = (dtype.name,) * len(arrays) + (float32.name,) * len(numbers)
        self.names = {name: i for i, name in enumerate((*arrays, *numbers))}
        self.nodes: list[Node] = []

    def __call__(self, op: str, *args: int) -> int:
        """Add an op."""
        return self._add(op, args, float32)

    def _add(self, op: str, args: tuple[int, ...], dtype: DType) -> int:
        self.nodes.append(Node(op, args, dtype.name))
        return len(self.names) + len(self.nodes) - 1

    def done(self, outputs: tuple[int, ...]) -> Chained:
        """The chain, which gives these values in the type of the arrays."""
        if self.dtype is not float32:
            outputs = tuple(self._add("cast", (value,), self.dtype) for value in outputs)
        chain = Chain(self.inputs, tuple(self.nodes), outputs)
        return Chained(chain, (self.dtype,) * len(outputs))


@cache
def _adam(dtype: DType, arrays: tuple[str, ...], numbers: tuple[str, ...]) -> Chained:
    """Adam on one parameter; what is not among the names is left out of the formula."""
    emit = _Chain(dtype, arrays, numbers)
    of = emit.names
    x, g = of["x"], of["g"]
    if "decay" in of:
        g = emit("add", g, emit("multiply", x, of["decay"]))
    m = emit("multiply", g, of["rest_1"])
    v = emit("multiply", emit("multiply", g, g), of["rest_2"])
    if "m" in of:
        m = emit("add", m, emit("multiply", of["m"], of["beta_1"]))
        v = emit("add", v, emit("multiply", of["v"], of["beta_2"]))
    top = emit("maximum", v, of["top"]) if "top" in of else v
    root = emit("multiply", emit("sqrt", top), of["root_scale"])
    move = emit("multiply", m, of["scale"])
    move = emit("divide", move, emit("add", root, of["epsilon"]))
    kept = emit("multiply", x, of["keep"]) if "keep" in of else x
    new = emit("subtract", kept, emit("multiply", move, of["lr"]))
    return emit.done((new, m, v, top) if "top" in of else (new, m, v))


def adam_step(  # noqa: PLR0913, PLR0917 - what the op takes
    device: GpuDevice,
    tensors: Arrays,
    grads: Arrays,
    firsts: Arrays | None,
    seconds: Arrays | None,
    largest: Arrays | None,
    lr: float,
    time: int,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    weight_decay: float,
    decoupled: bool,
    amsgrad: bool,
) -> tuple[GpuArray, ...]:
    """Gradient, decay, means, move."""
    lists = {"x": tensors, "g": grads, "m": firsts, "v": seconds}
    if amsgrad:
        lists["top"] = largest
    numbers = {
        "rest_1": 1.0 - beta_1,
        "rest_2": 1.0 - beta_2,
        "root_scale": 1.0 / sqrt(1.0 - beta_2**time),
        "scale": 1.0 / (1.0 - beta_1**time),
        "epsilon": epsilon,
        "lr": lr,
    }
    if firsts:
        numbers |= {"beta_1": beta_1, "beta_2": beta_2}
    if weight_decay:
        numbers |= {"keep": 1.0 - lr * weight_decay} if decoupled else {"decay": weight_decay}
    results = _each(device, _adam, lists, numbers)
    if results and amsgrad and not largest:
        results.append(results[2])
    return tuple(array for part in results for array in part)


@cache
def _sgd(dtype: DType, arrays: tuple[str, ...], numbers: tuple[str, ...]) -> Chained:
    """Gradient descent on one parameter; what is not among the names is left out."""
    emit = _Chain(dtype, arrays, numbers)
    of = emit.names
    x, g = of["x"], of["g"]
    if "decay" in of:
        g = emit("add", g, emit("multiply", x, of["decay"]))
    v = g
    if "v" in of:
        v = emit("add", emit("multiply", of["v"], of["momentum"]), emit("multiply", g, of["rest"]))
    move = emit("add", g, emit("multiply", v, of["nesterov"])) if "nesterov" in of else v
    new = emit("subtract", x, emit("multiply", move, of["lr"]))
    return emit.done((new, v) if "momentum" in of and v != of["g"] else (new,))


def sgd_step(
    device: GpuDevice,
    tensors: Arrays,
    grads: Arrays,
    velocities: Arrays | None,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
) -> tuple[GpuArray, ...]:
    """Gradient, decay, velocity, move."""
    lists = {"x": tensors, "g": grads, "v": velocities if momentum else None}
    numbers = {"lr": lr}
    if momentum:
        numbers |= {"momentum": momentum, "rest": 1.0 - dampening}
    if momentum and nesterov:
        numbers |= {"nesterov": momentum}
    if weight_decay:
        numbers |= {"decay": weight_decay}
    results = _each(device, _sgd, lists, numbers)
    if results and momentum and len(results) == 1:
        results.append(tuple(grads))
    return tuple(array for part in results for array in part)


@dataclass(frozen=True, slots=True)
class _Set:
    """Parameters that one kernel steps: which they are, its launch, and the arrays it makes."""

    rows: tuple[int, ...]
    launch: Launch
    results: tuple[Result, ...]


def _each(
    device: GpuDevice,
    formula: Callable[[DType, tuple[str, ...], tuple[str, ...]], Chained],
    lists: dict[str, Arrays | None],
    numbers: dict[str, float],
) -> list[tuple[GpuArray, ...]]:
    """Run a formula on the arrays that belong together; gives the arrays of each of its results.

    Raises:
        Rejected: the element types differ.
    """
    held = {name: arrays for name, arrays in lists.items() if arrays}
    names, values = tuple(numbers), [scalar(x, "float32") for x in numbers.values()]
    rows = [*zip(*held.values(), strict=True)]
    key = (formula, tuple(held), names, *[x.known or x.layout for row in rows for x in row])

    def chained(dtype: DType) -> Chained:
        return formula(dtype, tuple(held), names)

    sets: tuple[_Set, ...] = device.plans.get(key) or device.plans.find(
        key, lambda: _sets(device, chained, rows)
    )
    results: list[Sequence[GpuArray]] = [()] * len(rows)
    for part in sets:
        inputs = [x for row in part.rows for x in rows[row]]
        made = part.launch.run(device, inputs, [], values, part.results)
        count = len(made) // len(part.rows)
        for at, row in enumerate(part.rows):
            results[row] = made[at * count : (at + 1) * count]
    for row, operands in enumerate(rows):
        if not results[row]:
            results[row] = run_program(device, chained(operands[0].dtype), (*operands, *values))
    return list(zip(*results, strict=True))


def _sets(
    device: GpuDevice, formula: Callable[[DType], Chained], rows: Sequence[Arrays]
) -> tuple[_Set, ...]:
    """Small parameters dealt out to kernels; those that are left over have one each.

    Raises:
        Rejected: the element types differ.
    """
    small: dict[DType, list[int]] = {}
    for row, operands in enumerate(rows):
        x = operands[0]
        if any(y.dtype is not x.dtype or y.shape != x.shape for y in operands):
            raise Rejected
        if 0 < x.size <= _SMALL and all(y.contiguous for y in operands):
            small.setdefault(x.dtype, []).append(row)
    made = []
    for dtype, places in small.items():
        chained, arrays = formula(dtype), len(rows[0])
        most = min(device.max_bindings, _BINDINGS) // (arrays + len(chained.dtypes))
        for first in range(0, len(places) if most > 1 else 0, most):
            part = places[first : first + most]
            sizes = tuple(rows[row][0].size for row in part)
            groups = sum(-(-size // WORKGROUP) for size in sizes)
            kernel = sets_source, chained.chain, arrays, len(part)
            results = [result_of(rows[row][0].shape, t) for row in part for t in chained.dtypes]
            places_of = ((1, ()),) * (arrays * len(part))
            launch = Launch.of(device, kernel, groups, sizes, places_of)
            made.append(_Set((*part,), launch, (*results,)))
    return tuple(made)


ENTRIES: Entries = {"adam_step": adam_step, "sgd_step": sgd_step}
