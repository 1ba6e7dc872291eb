"""Einstein's sums: operands multiplied pair by pair, the smallest result first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ..shapes._equation import Labels, read

if TYPE_CHECKING:
    from .._tensor import Tensor

Shape = tuple[int, ...]


class _Term(NamedTuple):
    """A tensor and the labels of its axes, each once."""

    labels: Labels
    tensor: Tensor[Any]


def einsum(tensors: Sequence[Tensor[Any]], equation: str) -> Tensor[Any]:
    """Multiply the pair that gives the smallest tensor, until one is left."""
    inputs, output, sizes = read(equation, [x.shape for x in tensors])
    terms = [_once(labels, x, sizes) for labels, x in zip(inputs, tensors, strict=True)]
    while len(terms) > 1:
        i, j = _next(terms, output, sizes)
        second, first = terms.pop(j), terms.pop(i)
        wanted = {*output}.union(*(t.labels for t in terms))
        terms.append(
            _product(
                _summed(first, wanted | {*second.labels}),
                _summed(second, wanted | {*first.labels}),
                wanted,
            )
        )
    (last,) = (_summed(term, {*output}) for term in terms)
    missing = [label for label in output if label not in last.labels]  # axes of size 1
    x = last.tensor.reshape((*last.tensor.shape, *(1 for _ in missing)))
    order = (*last.labels, *missing)
    return x.permute_dims(tuple(order.index(label) for label in output))


def _once(labels: Labels, x: Tensor[Any], sizes: dict[str, int]) -> _Term:
    """A tensor whose repeated labels are diagonals, without axes that are broadcast."""
    while len({*labels}) < len(labels):
        label = next(each for each in labels if labels.count(each) > 1)
        i = labels.index(label)
        j = labels.index(label, i + 1)
        others = [k for k in range(x.ndim) if k not in (i, j)]
        n, m = x.shape[i], x.shape[j]
        x = x.permute_dims((*others, i, j))
        if n != m:  # one of them is 1
            x = x.broadcast_to((*x.shape[:-2], max(n, m), max(n, m)))
        x = x.diagonal()
        labels = (*(labels[k] for k in others), label)
    kept = [k for k, label in enumerate(labels) if x.shape[k] == sizes[label]]
    labels = tuple(labels[k] for k in kept)
    return _Term(labels, x.reshape(tuple(x.shape[k] for k in kept)))


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
    return _Term(kept, term.tensor.sum(axis=axes, dtype=term.tensor.dtype))


def _product(a: _Term, b: _Term, wanted: set[str]) -> _Term:
    """One product of matrices, over a batch of the labels that both have and that stay."""
    both = [label for label in a.labels if label in b.labels]
    batch = [label for label in both if label in wanted]
    inner = [label for label in both if label not in wanted]
    rows = [label for label in a.labels if label not in both]
    columns = [label for label in b.labels if label not in both]
    front, sides = _sizes(a, batch), (_sizes(a, rows), _sizes(b, columns))
    middle = prod(_sizes(a, inner))
    x = _ordered(a, (*batch, *rows, *inner)).reshape((*front, prod(sides[0]), middle))
    y = _ordered(b, (*batch, *inner, *columns)).reshape((*front, middle, prod(sides[1])))
    if not inner:
        out = x * y
    elif rows or columns:
        out = x @ y
    else:
        products = x.squeeze(-2) * y.squeeze(-1)
        out = products.sum(axis=-1, dtype=products.dtype)
    labels = (*batch, *rows, *columns)
    return _Term(labels, out.reshape((*front, *sides[0], *sides[1])))


def _sizes(term: _Term, labels: Sequence[str]) -> Shape:
    return tuple(term.tensor.shape[term.labels.index(label)] for label in labels)


def _ordered(term: _Term, labels: Sequence[str]) -> Tensor[Any]:
    return term.tensor.permute_dims(tuple(term.labels.index(label) for label in labels))
