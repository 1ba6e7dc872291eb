"""Functions from functions to their derivatives: ``grad`` and its relatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, final

from phlox_tensor import GradientError, Proposed, ShapeError, Tensor, asarray, stack, tree

from . import _backward
from ._autodiff import Autodiff
from ._forward import jvp
from ._graph import Node
from ._levels import base_device, check_level, running
from ._propose import Proposals, finding

Function = Callable[..., Any]
ArgNums = int | tuple[int, ...]
# Leaves that an error names.
_SHOWN: Final = 4


@final
class _Recorded:
    """A call that was recorded.

    Attributes:
        output: what the function gave, on the device of the transform.
        inputs: the arguments to differentiate, as trees of leaves of the graph.
    """

    def __init__(
        self, op: str, function: Function, args: Any, argnums: tuple[int, ...], kwargs: Any
    ) -> None:
        """Run ``function`` on a device of its own.

        Raises:
            GradientError: when an argument holds nothing to differentiate.
        """
        self._op = op
        self._base = base_device(op, (args, kwargs))
        self.device = Autodiff(self._base)
        places = [_place(op, n, len(args)) for n in argnums]
        given = list(args)
        for place in places:
            given[place] = tree.map(self._enter, args[place])
        self.inputs = tuple(given[place] for place in places)
        self._nodes = {t.primitive.node for t in self._leaves(self.inputs)}
        if not self._nodes:
            raise GradientError(
                op,
                "nothing to differentiate",
                got=", ".join(_describe(args[place]) for place in places) or "no arguments",
                expected="Float tensors that are not frozen",
                hint="x.astype(pt.float32)",
            )
        with running(self.device):
            self.output = function(*given, **kwargs)
        check_level(op, self.output, self.device)

    def _enter(self, leaf: Any) -> Any:
        if isinstance(leaf, float):
            leaf = asarray(leaf, device=self._base)
        if not isinstance(leaf, Tensor) or leaf.dtype.kind != "Float":
            return leaf
        return leaf.to_device(self.device).require_grad()

    def _leaves(self, part: Any) -> list[Tensor[Any]]:
        """The tensors of a tree that belong to the graph."""
        return [
            leaf
            for leaf in tree.leaves(part)
            if isinstance(leaf, Tensor)
            and leaf.device is self.device
            and leaf.primitive.node is not None
        ]

    def lower(self, leaf: Any) -> Any:
        """A leaf of the output, on the device that results are on."""
        return leaf.to_device(self._base) if isinstance(leaf, Tensor) else leaf

    def pull(self, cotangents: list[Any], *, retain_graph: bool) -> tuple[Any, ...]:
        """The gradients of the inputs, given one cotangent (or None) for each output leaf.

        Raises:
            GradientError: when the output depends on a tensor tracked outside of the transform.
            ShapeError: when a cotangent does not fit.
        """
        pending: dict[Node, Any] = {}
        for leaf, cotangent in zip(tree.leaves(self.output), cotangents, strict=True):
            if cotangent is None or not self._leaves(leaf):
                continue
            node = leaf.primitive.node
            seed = _backward.start(self.device, leaf, cotangent)
            pending[node] = pending[node] + seed if node in pending else seed
        with finding() as proposals:
            found = _backward.run(pending, retain_graph=retain_graph)
        if not found.keys() <= self._nodes:
            raise GradientError(
                self._op,
                "the function uses a tracked tensor that is not an argument, on the device of "
                "the transform",
                got=repr(self.device),
                hint=f"x.to_device({self.device!r}) for an argument x, or detach() the tensor",
            )
        return tuple(
            tree.map(lambda leaf: self._gradient(leaf, found, proposals), each)
            for each in self.inputs
        )

    def _gradient(self, leaf: Any, found: dict[Node, Tensor[Any]], proposals: Proposals) -> Any:
        if not self._leaves(leaf):
            here = isinstance(leaf, Tensor) and leaf.device is self.device
            value = proposals.get(leaf.primitive) if here else None
            return None if value is None else Proposed(value)
        gradient = found.get(leaf.primitive.node)
        return leaf.inner().zeros() if gradient is None else gradient


def _place(op: str, number: int, count: int) -> int:
    if not -count <= number < count:
        raise GradientError(op, "no such argument", got=f"argnums {number}", expected=f"{count}")
    return number % count


def _describe(item: Any) -> str:
    """An argument in words: what it is, and what stands in it."""
    if isinstance(item, Tensor):
        return f"a tensor of {item.dtype}"
    name = type(item).__name__
    if not tree.is_node(item):
        return name
    held = tree.leaves_with_paths(item)
    parts = [
        f"{path}: {leaf.dtype if isinstance(leaf, Tensor) else type(leaf).__name__}"
        for path, leaf in held[:_SHOWN]
    ]
    more = [f"{len(held) - _SHOWN} more"] if len(held) > _SHOWN else []
    return f"{name} of {', '.join(parts + more)}" if held else f"{name} of nothing"


def _numbers(argnums: ArgNums) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def value_and_grad(function: Function, argnums: ArgNums = 0) -> Function:
    """Return a function that gives the value of ``function`` and its gradient.

    ``function`` gives a tensor of one element; arguments may be tuples, lists and dicts of
    tensors. The gradient has the structure of the argument, or is a tuple for several ``argnums``.
    It lives on the device of the arguments, and may be differentiated again.

    Raises:
        GradientError: from the call, when there is no Float tensor to differentiate.
        ShapeError: from the call, when the value is not one element.
    """
    name = "grad"

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> tuple[Tensor[Any], Any]:
        call = _Recorded(name, function, args, _numbers(argnums), kwargs)
        value = call.output
        if not isinstance(value, Tensor) or value.dtype.kind != "Float":
            raise GradientError(
                name, "the value is not a Float tensor", got=_describe(value), expected="a loss"
            )
        if value.size != 1:
            raise ShapeError(
                name,
                "the value is not one element",
                got=f"shape {value.shape}",
                expected="one element",
                hint="grad(lambda x: f(x).sum()), or jacobian(f)",
            )
        value = call.lower(value)
        seed = value.zeros() + 1
        gradients = call.pull([seed], retain_graph=False)
        return value, gradients[0] if isinstance(argnums, int) else gradients

    return run


def grad(function: Function, argnums: ArgNums = 0) -> Function:
    """Return a function that gives the gradient of ``function``; see ``value_and_grad``."""
    both = value_and_grad(function, argnums)

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return run


def vjp(function: Function, *xs: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """Return ``function(*xs)`` and a function from a cotangent of it to the cotangents of ``xs``.

    The cotangent has the structure of the value; the result is a tuple, one for each of ``xs``.
    The function may be called many times; it holds the graph.
    """
    call = _Recorded("vjp", function, xs, tuple(range(len(xs))), {})
    value = tree.map(call.lower, call.output)

    def pull(cotangent: Any) -> tuple[Any, ...]:
        _, structure = tree.flatten(call.output)
        return call.pull(structure.leaves_of(cotangent, "vjp"), retain_graph=True)

    return value, pull


def jacobian(function: Function, argnums: ArgNums = 0) -> Function:
    """Return a function that gives all partial derivatives of ``function``.

    For tensors the result has the shape ``value.shape + argument.shape``. Where value or argument
    is a tuple, list or dict, it is a tree of such: the structure of the value outside, of the
    argument inside. There is one backward pass for each element of the value.
    """

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        call = _Recorded("jacobian", function, args, _numbers(argnums), kwargs)
        leaves = tree.leaves(call.output)
        place = iter(range(len(leaves)))

        def rows(leaf: Any) -> Any:
            i = next(place)
            if not isinstance(leaf, Tensor) or leaf.dtype.kind != "Float":
                return None
            out = _rows(call, call.lower(leaf), i, len(leaves))
            return out[0] if isinstance(argnums, int) else out

        return tree.map(rows, call.output)

    return run


def _rows(call: _Recorded, value: Tensor[Any], place: int, count: int) -> Any:
    """Derivatives of one output tensor: a pass for each element, joined by input."""
    zeros = value.zeros((value.size,))
    passes: list[list[Any]] = []
    for k in range(value.size):
        seeds: list[Any] = [None] * count
        seeds[place] = zeros.at[k].set(1.0).reshape(value.shape)
        passes.append(tree.leaves(call.pull(seeds, retain_graph=True)))
    columns = iter(zip(*passes, strict=True)) if passes else None

    def join(leaf: Any) -> Any:
        parts = None if columns is None else next(columns)
        if not isinstance(leaf, Tensor) or leaf.dtype.kind != "Float":
            return None
        if leaf.device is call.device and leaf.primitive.node is None:
            return None  # a constant of a registered type
        shape = (*value.shape, *leaf.shape)
        return leaf.inner().zeros(shape) if parts is None else stack(parts).reshape(shape)

    return tree.map(join, call.inputs)


def hessian(function: Function, argnums: ArgNums = 0) -> Function:
    """Return a function that gives all second derivatives of a function of one element.

    For a tensor the result has the shape ``x.shape + x.shape``.
    """
    return jacobian(grad(function, argnums), argnums)


def hvp(function: Function, primals: tuple[Any, ...], vector: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the product of the second derivatives of ``function`` with a vector.

    Forward over reverse: one gradient and its derivative along ``vector``, never the matrix.
    ``function`` gives one element; ``primals`` and ``vector`` are tuples of as many arguments,
    trees and modules among them, with None for what does not move. The product has the structure
    of ``primals``.

    Raises:
        GradientError: when there is nothing to differentiate.
        ShapeError: when a part of the vector does not fit, or the value is not one element.

    Example:
        >>> import phlox_tensor as pt
        >>> x, v = pt.asarray([1.0, 2.0]), pt.asarray([1.0, 0.0])
        >>> hvp(lambda x: (x**3).sum(), (x,), (v,))[0].tolist()
        [6.0, 0.0]
    """
    everything = tuple(range(len(primals)))
    product: tuple[Any, ...] = jvp(grad(function, everything), primals, vector)[1]
    return product
