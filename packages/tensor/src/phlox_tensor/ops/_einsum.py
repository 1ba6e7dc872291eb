"""Einstein's sums: operands multiplied pair by pair, the smallest result first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import Any, Final, NamedTuple

from .._values.tensor import Tensor
from ..shapes._equation import Labels, read

Shape = tuple[int, ...]
Move = Callable[["Tensor[Any]"], "Tensor[Any]"]
Pair = Callable[["Tensor[Any]", "Tensor[Any]"], "Tensor[Any]"]

# Plans of as many equations and shapes are kept.
_KEPT: Final = 512


class _Term(NamedTuple):
    """A tensor to be: the labels of its axes, each once, their sizes, and what makes it."""

    labels: Labels
    shape: Shape
    moves: tuple[Move, ...] = ()


class _Step(NamedTuple):
    """Two of the tensors that are left, taken away for their product, which comes last."""

    places: tuple[int, int]
    moves: tuple[tuple[Move, ...], tuple[Move, ...]]
    product: Pair


class _Plan(NamedTuple):
    """Products, and what is done to the one tensor that they leave.

    More than one product of matrices would round between its steps: ``widely`` keeps these in
    float32.
    """

    steps: tuple[_Step, ...]
    last: tuple[Move, ...]
    widely: bool


def einsum(tensors: Sequence[Tensor[Any]], equation: str) -> Tensor[Any]:
    """Multiply the pair that gives the smallest tensor, until one is left."""
    plan = _plan(equation, tuple([x.shape for x in tensors]))
    dtype = tensors[0].dtype
    left = [x.to_full_precision() for x in tensors] if plan.widely else list(tensors)
    for (i, j), (first, second), product in plan.steps:
        y, x = left.pop(j), left.pop(i)
        left.append(product(_moved(x, first), _moved(y, second)))
    return _moved(left[0], plan.last).astype(dtype)


def _moved(x: Tensor[Any], moves: Iterable[Move]) -> Tensor[Any]:
    for move in moves:
        x = move(x)
    return x


@lru_cache(_KEPT)
def _plan(equation: str, shapes: tuple[Shape, ...]) -> _Plan:
    """The steps for an equation and shapes; nothing else decides them."""
    inputs, output, sizes = read(equation, shapes)
    terms = [_once(_Term(*each), sizes) for each in zip(inputs, shapes, strict=True)]
    steps: list[_Step] = []
    while len(terms) > 1:
        i, j = _next(terms, output, sizes)
        second, first = terms.pop(j), terms.pop(i)
        wanted = {*output}.union(*(t.labels for t in terms))
        first = _summed(first, wanted | {*second.labels})
        second = _summed(second, wanted | {*first.labels})
        moves, product, made = _product(first, second, wanted)
        steps.append(_Step((i, j), moves, product))
        terms.append(made)
    (last,) = (_summed(term, {*output}) for term in terms)
    missing = tuple(label for label in output if label not in last.labels)  # axes of size 1
    last = _reshaped(last, (*last.labels, *missing), (*last.shape, *(1 for _ in missing)))
    alone = {*inputs[0]} ^ {*inputs[-1]}  # which two tensors sum before they are multiplied
    several = len(steps) > 1 or any(step.product is _dots for step in steps)
    widely = several or (len(steps) == 1 and not alone <= {*output})
    return _Plan(tuple(steps), _ordered(last, output).moves, widely)


def _once(term: _Term, sizes: dict[str, int]) -> _Term:
    """A tensor whose repeated labels are diagonals, without axes that are broadcast."""
    while len({*term.labels}) < len(term.labels):
        labels, shape, moves = term
        label = next(each for each in labels if labels.count(each) > 1)
        i = labels.index(label)
        j = labels.index(label, i + 1)
        others = [k for k in range(len(labels)) if k not in (i, j)]
        front = tuple(shape[k] for k in others)
        moves = (*moves, _permute((*others, i, j)), _diagonal)
        term = _Term((*(labels[k] for k in others), label), (*front, shape[i]), moves)
    kept = [k for k, label in enumerate(term.labels) if term.shape[k] == sizes[label]]
    labels = tuple(term.labels[k] for k in kept)
    return _reshaped(term, labels, tuple(term.shape[k] for k in kept))


def _next(terms: Sequence[_Term], output: Labels, sizes: dict[str, int]) -> tuple[int, int]:
    """The pair whose product is smallest beside what goes into it, the cheapest of several."""

    def cost(pair: tuple[int, int]) -> tuple[int, int]:
        a, b = ({*terms[i].labels} for i in pair)
        rest = {*output}.union(*(t.labels for k, t in enumerate(terms) if k not in pair))
        return _size((a | b) & rest, sizes) - _size(a, sizes) - _size(b, sizes), _size(a | b, sizes)

    return min(combinations(range(len(terms)), 2), key=cost)


def _size(labels: Iterable[str], sizes: dict[str, int]) -> int:
    return prod(sizes[label] for label in labels)


def _summed(term: _Term, wanted: set[str]) -> _Term:
    """Without the axes that nothing else has."""
    axes = tuple(i for i, label in enumerate(term.labels) if label not in wanted)
    if not axes:
        return term
    kept = tuple(label for label in term.labels if label in wanted)
    return _Term(kept, tuple(_sizes(term, kept)), (*term.moves, _total(axes)))


def _product(
    a: _Term, b: _Term, wanted: set[str]
) -> tuple[tuple[tuple[Move, ...], tuple[Move, ...]], Pair, _Term]:
    """One product of matrices, over a batch of the labels that both have and that stay."""
    both = [label for label in a.labels if label in b.labels]
    batch = [label for label in both if label in wanted]
    inner = [label for label in both if label not in wanted]
    rows = [label for label in a.labels if label not in both]
    columns = [label for label in b.labels if label not in both]
    front, sides = _sizes(a, batch), (_sizes(a, rows), _sizes(b, columns))
    middle = prod(_sizes(a, inner))
    x, y = _ordered(a, (*batch, *rows, *inner)), _ordered(b, (*batch, *inner, *columns))
    labels, shape = (*batch, *rows, *columns), (*front, *sides[0], *sides[1])
    if inner and not (rows or columns):
        product = _dots if batch else _matmul
        x, y = (_reshaped(each, (), (*front, middle)) for each in (x, y))
        return (x.moves, y.moves), product, _Term(labels, front)
    x = _reshaped(x, (), (*front, prod(sides[0]), middle))
    y = _reshaped(y, (), (*front, middle, prod(sides[1])))
    made = _Term((), (*front, prod(sides[0]), prod(sides[1])))
    return (x.moves, y.moves), _matmul if inner else _times, _reshaped(made, labels, shape)


def _sizes(term: _Term, labels: Sequence[str]) -> Shape:
    return tuple(term.shape[term.labels.index(label)] for label in labels)


def _ordered(term: _Term, labels: Sequence[str]) -> _Term:
    order = tuple(term.labels.index(label) for label in labels)
    if order == tuple(range(len(order))):
        return term
    return _Term(tuple(labels), _sizes(term, labels), (*term.moves, _permute(order)))


def _reshaped(term: _Term, labels: Labels, shape: Shape) -> _Term:
    moves = term.moves if term.shape == shape else (*term.moves, _reshape(shape))
    return _Term(labels, shape, moves)


def _permute(order: Shape) -> Move:
    return lambda x: x.permute_dims(order)


def _reshape(shape: Shape) -> Move:
    return lambda x: x.reshape(shape)


def _total(axes: Shape) -> Move:
    return lambda x: x.sum(axis=axes, dtype=x.dtype)


def _diagonal(x: Tensor[Any]) -> Tensor[Any]:
    return x.diagonal()


def _dots(x: Tensor[Any], y: Tensor[Any]) -> Tensor[Any]:
    """A sum of products for each of a batch."""
    products = x * y
    return products.sum(axis=-1, dtype=products.dtype)


def _matmul(x: Tensor[Any], y: Tensor[Any]) -> Tensor[Any]:
    return x @ y


def _times(x: Tensor[Any], y: Tensor[Any]) -> Tensor[Any]:
    return x * y
