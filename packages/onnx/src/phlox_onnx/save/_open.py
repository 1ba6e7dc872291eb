"""What a module is called with: tensors by name, and which of their sizes stay open."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np

from phlox_tensor import ArgumentError, Backend, Tensor, asarray, tree

from ._sizes import MOST, Runs, runs_with

Dynamic: TypeAlias = Mapping[str, Mapping[int, str]]
HINT = 'dynamic={"tokens": {0: "batch", 1: "length"}}'


@final
@dataclass(frozen=True)
class Inputs:
    """Example inputs.

    Attributes:
        leaves: tensors, and None where an input is None.
        paths: where each stands among the parameters of ``forward``.
        structure: how they stand in each other.
    """

    leaves: list[Any]
    paths: list[str]
    structure: Any

    def arguments(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments that the module is called with."""
        return tree.rebuild(self.structure, leaves)

    @property
    def places(self) -> list[int]:
        """Which leaves are tensors."""
        return [i for i, leaf in enumerate(self.leaves) if leaf is not None]

    def on(self, device: Backend) -> Inputs:
        """The same on a device."""
        leaves = [None if v is None else _on(v, device) for v in self.leaves]
        return Inputs(leaves, self.paths, self.structure)


def _on(value: Any, device: Backend) -> Tensor[Any]:
    while isinstance(value, Tensor) and value.device.records:
        value = value.inner()
    if isinstance(value, Tensor):
        return value.to_device(device)
    return asarray(value, device=device)


def inputs_of(forward: Any, given: tuple[Any, ...]) -> Inputs:
    """Inputs that may stand in tuples, lists and dicts; lists of numbers are arrays."""
    names = [*inspect.signature(forward).bind(*given).arguments.items()]
    leaves: list[Any] = []
    paths: list[str] = []
    parts: list[Any] = []
    for name, value in names:
        rest = value if isinstance(value, tuple) and name not in _plain(forward) else None
        for i, each in enumerate(rest if rest is not None else (value,)):
            where = f"{name}.{i}" if rest is not None else name
            several = any(isinstance(v, Tensor | np.ndarray) for v in tree.leaves(each))
            if not several or isinstance(each, Tensor | np.ndarray):
                leaves.append(each)
                paths.append(where)
                parts.append(None)
                continue
            for path, leaf in tree.leaves_with_paths(each):
                leaves.append(leaf)
                paths.append(f"{where}.{path}")
            parts.append(each)
    shape = tuple(0 if part is None else tree.map(lambda _: 0, part) for part in parts)
    return Inputs(leaves, paths, tree.flatten(shape)[1])


def _plain(forward: Any) -> set[str]:
    """Parameters that take one argument each."""
    every = inspect.signature(forward).parameters.values()
    return {p.name for p in every if p.kind is not p.VAR_POSITIONAL}


@final
@dataclass(frozen=True)
class Opened:
    """Which sizes are open.

    Attributes:
        axes: of each leaf, the names of its open axes.
        own: the sizes of the example.
        runs: the sizes to run with.
    """

    axes: list[dict[int, str]]
    own: dict[str, int]
    runs: Runs

    def above_own(self) -> Opened:
        """The same with runs in sizes above all of the example, whose values may be such sizes."""
        runs = runs_with(self.runs.names, self.runs.dynamic, max(self.own.values(), default=0))
        return replace(self, runs=runs)

    def first(self, words: Sequence[str], places: Sequence[int]) -> dict[str, tuple[str, int]]:
        """Where each size may be read: the name of an input, and its axis."""
        found: dict[str, tuple[str, int]] = {}
        for word, place in zip(words, places, strict=True):
            for axis, name in self.axes[place].items():
                found.setdefault(name, (word, axis))
        return found

    def resized(self, leaves: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
        """The inputs in other sizes: their elements again and again."""
        known = dict(zip(self.runs.names, sizes, strict=True))
        return [
            x if not axes else _repeated(x, {axis: known[name] for axis, name in axes.items()})
            for x, axes in zip(leaves, self.axes, strict=True)
        ]


def _repeated(x: Tensor[Any], sizes: Mapping[int, int]) -> Tensor[Any]:
    array = x.numpy()
    for axis, count in sizes.items():
        array = np.take(array, np.arange(count) % array.shape[axis], axis=axis)
    return asarray(np.ascontiguousarray(array), device=x.device)


def open_sizes(
    inputs: Inputs, words: Sequence[str], dynamic: Dynamic | None, batch: bool
) -> Opened:
    """Which sizes are open, of inputs on a device.

    Raises:
        ArgumentError: for inputs and axes that are not there, and sizes that contradict each other.
    """
    shapes = [None if v is None else tuple(v.shape) for v in inputs.leaves]
    if batch:
        if dynamic is not None:
            got, expected = "dynamic and dynamic_batch", "one of them"
            raise ArgumentError("save", "open sizes are said twice", got=got, expected=expected)
        axes = _batch_of(shapes)
    else:
        axes = _axes_of(inputs, words, dynamic or {}, shapes)
    own: dict[str, int] = {}
    for shape, each in zip(shapes, axes, strict=True):
        for axis, name in each.items():
            assert shape is not None
            size = own.setdefault(name, shape[axis])
            if size != shape[axis] or not size:
                got = f"{name!r} is {size}, and {shape[axis]} in {shape}"
                expected = "one size above 0 for each name"
                raise ArgumentError("save", "open sizes do not fit", got=got, expected=expected)
    if len(own) > MOST:
        raise ArgumentError("save", "too many open sizes", got=len(own), expected=f"up to {MOST}")
    return Opened(axes, own, runs_with(list(own), dynamic or {}))


def _batch_of(shapes: Sequence[Any]) -> list[dict[int, str]]:
    known = [s for s in shapes if s is not None]
    if not known or not all(s and s[0] for s in known) or len({s[0] for s in known}) > 1:
        expected = "inputs with one size of the first axis"
        raise ArgumentError("save", "inputs without a batch", got=known, expected=expected)
    return [{} if s is None else {0: "batch"} for s in shapes]


def _axes_of(
    inputs: Inputs, words: Sequence[str], dynamic: Dynamic, shapes: Sequence[Any]
) -> list[dict[int, str]]:
    names = dict(zip(inputs.places, words, strict=True))
    out: list[dict[int, str]] = [{} for _ in shapes]
    for key, axes in _checked(dynamic).items():
        fits = [i for i in names if key == names[i] or _is_in(inputs.paths[i], key)]
        if not fits:
            expected = ", ".join(names.values())
            hint = "names=[...] names the inputs"
            what = "no input has such a name"
            raise ArgumentError("save", what, got=repr(key), expected=expected, hint=hint)
        for i in fits:
            rank = len(shapes[i])
            for axis, name in axes.items():
                if not -rank <= axis < rank:
                    got = f"axis {axis} of {names[i]!r} {shapes[i]}"
                    expected = f"{-rank} to {rank - 1}"
                    raise ArgumentError("save", "no such axis", got=got, expected=expected)
                out[i][axis % rank] = name
    return out


def _is_in(path: str, key: str) -> bool:
    return path == key or path.startswith(f"{key}.")


def _checked(dynamic: Any) -> Dynamic:
    fits = isinstance(dynamic, Mapping) and all(
        isinstance(key, str)
        and isinstance(axes, Mapping)
        and all(type(a) is int and isinstance(n, str) and n.isidentifier() for a, n in axes.items())
        for key, axes in dynamic.items()
    )
    if not fits:
        expected = "for each input a name for each open axis"
        what = "dynamic says no sizes"
        raise ArgumentError("save", what, got=repr(dynamic), expected=expected, hint=HINT)
    return dynamic
