"""Numbers that follow from open sizes, told from runs with several sizes of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isclose, prod
from typing import Any, Final, TypeAlias, final

import numpy as np

from phlox_tensor.capture import same

# The first sizes to run with, and those by which the rest is proven: halves, remainders and roots
# are no sums of products there. No two of one run are equal, so that nothing hangs on that.
_FIRST: Final = (2, 5, 9, 14)
_FAR: Final = (7, 11, 16, 23)
MOST: Final = len(_FIRST)

ONE: Final = "px.onnx.save(module, inputs, path), for the sizes of the inputs alone"

Product: TypeAlias = tuple[str, ...]  # names of sizes; () is 1


@final
@dataclass(frozen=True)
class Followed:
    """A number that follows from open sizes: a sum of products of them, each times a factor."""

    terms: tuple[tuple[Product, float], ...]

    @property
    def whole(self) -> bool:
        """Whether it is a whole number for all sizes."""
        return all(isinstance(factor, int) for _, factor in self.terms)

    @property
    def plus(self) -> float:
        """What does not follow."""
        return dict(self.terms).get((), 0)

    def __add__(self, other: Any) -> Any:
        found = dict(self.terms)
        for product, factor in _terms(other):
            found[product] = found.get(product, 0) + factor
        return followed(found)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + other * -1

    def __rsub__(self, other: Any) -> Any:
        return self * -1 + other

    def __mul__(self, other: int) -> Any:
        return followed({product: factor * other for product, factor in self.terms})

    __rmul__ = __mul__

    def __repr__(self) -> str:
        out = ""
        for product, factor in self.terms:
            name = "*".join(product)
            word = name if factor == 1 else f"{factor}*{name}" if name else f"{factor}"
            out += ("+" if out and not word.startswith("-") else "") + word
        return out


def _terms(value: Any) -> tuple[tuple[Product, float], ...]:
    return value.terms if isinstance(value, Followed) else (((), value),)


def followed(terms: Mapping[Product, float]) -> Any:
    """A number that follows from sizes, or one that does not."""
    kept = [(product, factor) for product, factor in terms.items() if product and factor]
    plus = terms.get((), 0)
    if not kept:
        return plus
    ordered = sorted(kept, key=lambda term: (len(term[0]), term[0]))
    return Followed((*ordered, *([((), plus)] if plus else [])))


@final
@dataclass(frozen=True)
class Unlike:
    """What differs from run to run in another way."""

    values: tuple[Any, ...]

    def __repr__(self) -> str:
        return " / ".join(map(repr, self.values))


def has(item: Any, kind: type) -> bool:
    """Whether there is one of a kind among the parts of an attribute."""
    if isinstance(item, slice):
        item = item.start, item.stop, item.step
    return any(has(i, kind) for i in item) if isinstance(item, tuple) else isinstance(item, kind)


@final
@dataclass(frozen=True)
class Spread:
    """A constant of runs: a sum of products of sizes, then spread to a shape.

    Attributes:
        terms: arrays by what they are multiplied with; that of ``()`` is always there.
        dtype: its element type.
        shape: where it is spread to, or None.
    """

    terms: Mapping[Product, Any]
    dtype: Any
    shape: tuple[Any, ...] | None = None


@final
@dataclass(frozen=True)
class Runs:
    """With which sizes a module runs.

    Attributes:
        names: of the open sizes.
        points: the sizes of each run; the last one proves what the others say.
        dynamic: what the caller asked for, by input and axis.
    """

    names: tuple[str, ...] = ()
    points: tuple[tuple[int, ...], ...] = ((),)
    dynamic: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    @property
    def one(self) -> str:
        """What differs from run to run."""
        return "batch" if self.names == ("batch",) else "size"

    @property
    def form(self) -> str:
        """How numbers may follow from sizes."""
        return f"a * {self.names[0]} + b" if len(self.names) == 1 else "sum of products of sizes"

    def shown(self, i: int) -> str:
        """The sizes of a run in words."""
        sizes = self.points[i]
        if self.names == ("batch",):
            return f"a batch of {sizes[0]}"
        return ", ".join(f"{name} {n}" for name, n in zip(self.names, sizes, strict=True))

    def raised(self, i: int) -> set[str]:
        """Which sizes are others in a run than in the first."""
        both = zip(self.names, self.points[0], self.points[i], strict=True)
        return {name for name, first, size in both if first != size}

    def moving(self, value: Unlike) -> set[str]:
        """Which sizes a value hangs on, told by the runs in which one of them is another."""
        runs = [i for i, n in enumerate(value.values) if n != value.values[0]]
        alone = [raised for i in runs if len(raised := self.raised(i)) == 1]
        return set().union(*alone) or set(self.names)

    def without(self, names: set[str]) -> str:
        """The call that leaves these sizes as the inputs have them."""
        rest = {
            key: {axis: name for axis, name in axes.items() if name not in names}
            for key, axes in self.dynamic.items()
        }
        kept = {key: axes for key, axes in rest.items() if axes}
        return f"px.onnx.save(module, inputs, path, dynamic={kept})" if kept else ONE

    @property
    def all_shown(self) -> str:
        """The sizes of all runs in words."""
        if self.names == ("batch",):
            return f"batches of {' / '.join(str(n) for (n,) in self.points)}"
        sizes = [str(p[0]) if len(p) == 1 else str(p) for p in self.points]
        return f"{', '.join(self.names)} of {' / '.join(sizes)}"

    def merged(self, found: Sequence[Any]) -> Any:
        """What the runs have in common: a value, what follows from sizes, or ``Unlike``."""
        first = found[0]
        if all(type(v) is tuple and len(v) == len(first) for v in found):
            return tuple(self.merged(each) for each in zip(*found, strict=True))
        if all(isinstance(v, slice) for v in found):
            parts = [[getattr(v, k) for v in found] for k in ("start", "stop", "step")]
            return slice(*map(self.merged, parts))
        if all(v is first or same(v, first) for v in found):
            return first
        if all(type(v) is int for v in found) or all(type(v) is float for v in found):
            terms = self._terms(found, lambda a, b: a - b)
            if type(first) is float:
                least = 1e-12 * max(map(abs, found))
                terms = {k: v if abs(v) > least else 0.0 for k, v in terms.items()}
            if isclose(self._at(terms, self.points[-1]), found[-1], rel_tol=1e-11):
                return followed(terms)
        return Unlike(tuple(found))

    def spread(self, arrays: Sequence[Any]) -> Spread | None:
        """What constants of the runs have in common, or None where it cannot be said."""
        first = arrays[0]
        if len(arrays) == 1:
            return Spread({(): first}, first.dtype)
        if len({a.dtype for a in arrays}) > 1 or len({a.ndim for a in arrays}) > 1:
            return None
        shape = self.merged([a.shape for a in arrays])
        if has(shape, Unlike):
            return None
        axes = [i for i, n in enumerate(shape) if isinstance(n, Followed)]
        if axes:
            rows = [_row(a, axes) for a in arrays]
            inner = None if any(row is None for row in rows) else self.spread(rows)
            return None if inner is None else Spread(inner.terms, inner.dtype, shape)
        if all(a.tobytes() == first.tobytes() for a in arrays):
            return Spread({(): first}, first.dtype)
        return self._sum(arrays) if first.dtype.kind in "iuf" else None

    def _sum(self, arrays: Sequence[Any]) -> Spread | None:
        """Arrays as a sum of products of sizes, element by element."""
        whole = arrays[0].dtype.kind in "iu"
        wide = [a.astype(np.int64 if whole else np.float64) for a in arrays]
        near = 0.0 if whole else 8 * float(np.finfo(arrays[0].dtype).eps)  # each was rounded
        most = np.max([np.abs(a) for a in wide], axis=0, initial=0)
        with np.errstate(invalid="ignore", over="ignore"):
            terms = self._terms(wide, lambda a, b: np.where(a == b, 0, a - b))
            if len(self.names) > 1:
                for product in filter(None, terms):  # what rounding left is no product
                    factor = terms[product]
                    terms[product] = np.where(np.abs(factor) <= near * most, 0, factor)
            there = self._at(terms, self.points[-1])
        if not np.allclose(there, wide[-1], rtol=near, atol=0, equal_nan=True):
            return None
        kept = {k: v for k, v in terms.items() if not k or np.any(v != 0)}
        return Spread(kept, arrays[0].dtype)

    def _terms(self, found: Sequence[Any], less: Any) -> dict[Product, Any]:
        """The sum of products through all runs but the last: differences, then multiplied out."""
        base, start, count = self.points[0], found[0], len(self.names)
        slopes = [less(v, start) for v in found[1 : 1 + count]]
        constant: Any = start
        lines: list[Any] = list(slopes)
        both: dict[Product, Any] = {}
        for (i, j), v in zip(combinations(range(count), 2), found[1 + count : -1], strict=True):
            cross = less(less(v, start), slopes[i] + slopes[j])
            both[self.names[i], self.names[j]] = cross
            lines[i] = lines[i] - cross * base[j]
            lines[j] = lines[j] - cross * base[i]
            constant = constant + cross * (base[i] * base[j])
        for slope, size in zip(slopes, base, strict=True):
            constant = constant - slope * size
        return {(): constant, **{(n,): v for n, v in zip(self.names, lines, strict=True)}, **both}

    def _at(self, terms: Mapping[Product, Any], point: tuple[int, ...]) -> Any:
        sizes = dict(zip(self.names, point, strict=True))
        out: Any = 0
        for product, factor in terms.items():
            out = out + factor * prod(sizes[name] for name in product)
        return out


def runs_with(names: Sequence[str], dynamic: Any, above: int = 0) -> Runs:
    """The runs that tell what follows from open sizes, all of which are above a number."""
    count = len(names)
    if not count:
        return Runs()
    first, far = ([n + above for n in sizes[:count]] for sizes in (_FIRST, _FAR))
    raised = [(), *((i,) for i in range(count)), *combinations(range(count), 2)]
    points = [tuple(n + (i in up) for i, n in enumerate(first)) for up in raised]
    return Runs(tuple(names), (*points, tuple(far)), dynamic)


def _row(array: Any, axes: Sequence[int]) -> Any:
    """The first along some axes, where all are alike."""
    row = array[tuple(slice(0, 1) if i in axes else slice(None) for i in range(array.ndim))]
    nan = array.dtype.kind == "f"
    return row if np.array_equal(array, np.broadcast_to(row, array.shape), equal_nan=nan) else None
