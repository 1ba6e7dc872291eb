"""Matrices of derivatives, and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import prod
from typing import Any, Final, Literal, TypeVar, overload

from phlox_tensor import ArgumentError, Float, GradientError, Tensor, arange, concat, tree
from phlox_tensor.arguments import require_callable
from phlox_tensor.random import Generator, generator, use_generator

from ._batched import Batched, Level, at_level
from ._forward import jvp
from ._lanes import Lanes
from ._levels import describe, is_float, require_arguments, transforming
from ._recorded import ArgNums, Function, Recorded, numbers
from ._transform import gradient
from ._typed import Derivatives
from ._vmap import require_chunk_size, stacked, vmap

_MODES: Final = (None, "columns", "rows")


Q = TypeVar("Q", bound=tuple[Any, ...])


@overload
def jacobian(
    function: Callable[..., Tensor[Float]],
    argnums: Literal[0] = 0,
    *,
    mode: str | None = None,
    chunk_size: int | None = None,
    has_aux: Literal[False] = False,
) -> Derivatives: ...
@overload
def jacobian(
    function: Function,
    argnums: ArgNums = 0,
    *,
    mode: str | None = None,
    chunk_size: int | None = None,
    has_aux: bool = False,
) -> Function: ...
def jacobian(
    function: Function,
    argnums: ArgNums = 0,
    *,
    mode: str | None = None,
    chunk_size: int | None = None,
    has_aux: bool = False,
) -> Function:
    """Return a function that gives all partial derivatives of ``function``.

    For tensors the result has the shape ``value.shape + argument.shape``. Where value or argument
    is a tuple, list or dict, it is a tree of such: the structure of the value outside, of the
    argument inside. All rows (or columns) are computed in one pass with lanes, as by ``vmap``.

    Args:
        function: gives tensors.
        argnums: the arguments to differentiate, by place.
        mode: ``"rows"``, a backward pass with a lane for each element of the value; ``"columns"``,
            a forward pass with one for each element of the arguments; by default the fewer.
        chunk_size: how many lanes run at a time, to save memory; all by default.
        has_aux: ``function`` gives a pair, of which the second is not differentiated; the result
            is then ``(jacobian, aux)``.

    Raises:
        GradientError: from the call, when there is no Float tensor to differentiate, or the value
            holds none.

    Example:
        >>> import phlox_tensor as pt
        >>> jacobian(lambda x: x * x)(pt.asarray([1.0, 2.0])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    require_callable("jacobian", function, "px.jacobian(f)(x)")
    if mode not in _MODES:
        raise ArgumentError("jacobian", "mode", got=repr(mode), expected="'rows', 'columns', None")
    require_chunk_size("jacobian", chunk_size)
    places = numbers("jacobian", argnums)

    @wraps(function, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        random = generator().state()
        call = Recorded("jacobian", function, args, places, kwargs, has_aux=has_aux)
        if not any(map(is_float, tree.leaves(call.output))):
            raise GradientError(
                "jacobian",
                "the value holds no Float tensor",
                got=describe(call.output),
                expected="a tensor with a derivative, or a tree of them",
            )
        fewer = mode is None and _elements(call, call.output) > sum(
            leaf.size for leaf in call.tracked(call.inputs)
        )
        if (mode == "columns" or fewer) and call.tracked(call.output):

            def of(*chosen: Any) -> Any:
                given = list(args)
                for place, value in zip(places, chosen, strict=True):
                    given[place] = value
                with use_generator(Generator(*random)):  # each pass draws what the first drew
                    out = function(*given, **kwargs)
                return out[0] if has_aux else out

            blocks = _columns(call, of, tuple(args[i] for i in places), chunk_size)
        else:
            blocks = _rows(call, chunk_size)
        found = _arranged(call, blocks, single=isinstance(argnums, int))
        return (found, call.aux) if has_aux else found

    return run


def _elements(call: Recorded, output: Any) -> int:
    return sum(leaf.size for leaf in tree.leaves(output) if is_float(leaf))


# By output leaf and input leaf: the derivative, or None where there is none.
Blocks = dict[tuple[int, int], Tensor[Any]]


def _unit_lanes(size: int, shape: tuple[int, ...], like: Tensor[Any], first: int) -> Tensor[Any]:
    """``size`` tensors of a shape, of which the k-th has a 1 at place ``first + k``, else 0."""
    device = like.device
    columns = arange(prod(shape), device=device)
    rows = arange(first, first + size, device=device).reshape((size, 1))
    return (rows == columns).astype(like.dtype).reshape((size, *shape))


def _chunks(count: int, chunk_size: int | None) -> list[tuple[int, int]]:
    """(first, number) of each chunk."""
    step = max(count, 1) if chunk_size is None else chunk_size
    return [(first, min(step, count - first)) for first in range(0, count, step)]


def _rows(call: Recorded, chunk_size: int | None) -> Blocks:
    """Backward passes, each with lanes for elements of one output tensor."""
    leaves = tree.leaves(call.output)
    inputs = tree.leaves(call.inputs)
    device = Batched(call.base)
    blocks: Blocks = {}
    for i, leaf in enumerate(leaves):
        if not is_float(leaf):
            continue
        value = call.lower(leaf)
        parts: dict[int, list[Tensor[Any]]] = {
            j: [] for j, x in enumerate(inputs) if call.tracked(x)
        }
        for first, size in _chunks(value.size, chunk_size):
            units = _unit_lanes(size, value.shape, value, first)
            seeds: list[Any] = [None] * len(leaves)
            seeds[i] = Tensor(Lanes(units.primitive, mapped=True), device)
            with at_level(device, Level(size, loop=True)), transforming(device):
                found = call.pull_leaves(seeds, retain_graph=True)
            for j, part in parts.items():
                part.append(stacked(found[j], device, size))
        for j, part in parts.items():
            shape = (*value.shape, *inputs[j].shape)
            if part:
                blocks[i, j] = (part[0] if len(part) == 1 else concat(part)).reshape(shape)
            else:
                blocks[i, j] = value.zeros(shape)
    return blocks


def _columns(
    call: Recorded, function: Function, given: tuple[Any, ...], chunk_size: int | None
) -> Blocks:
    """Forward passes, each with lanes for elements of one input tensor."""
    blocks: Blocks = {}
    primals, structure = tree.flatten(given)
    outputs = tree.leaves(call.output)
    for j, entered in enumerate(tree.leaves(call.inputs)):
        if not call.tracked(entered):
            continue
        x = call.lower(entered)

        def along(direction: Tensor[Any], place: int = j, x: Tensor[Any] = x) -> Any:
            moving = [None] * len(primals)
            moving[place] = direction  # type: ignore[call-overload]
            points = [x if k == place else p for k, p in enumerate(primals)]
            return jvp(function, structure.rebuild(points), structure.rebuild(moving))[1]

        units = _unit_lanes(x.size, x.shape, x, 0)
        moved = tree.leaves(vmap(along, randomness="same", chunk_size=chunk_size, loop=True)(units))
        for i, (value, tangent) in enumerate(zip(outputs, moved, strict=True)):
            if is_float(value):
                blocks[i, j] = tangent.moveaxis(0, -1).reshape((*value.shape, *x.shape))
    return blocks


def _arranged(call: Recorded, blocks: Blocks, *, single: bool) -> Any:
    """The blocks as a tree: the structure of the value outside, of the arguments inside."""
    _, outer = tree.flatten(call.output)
    inputs, inner = tree.flatten(call.inputs)

    def row(i: int, leaf: Any) -> Any:
        if not is_float(leaf):
            return None
        out = inner.rebuild(
            [blocks.get((i, j)) if call.tracked(x) else None for j, x in enumerate(inputs)]
        )
        return out[0] if single else out

    return outer.rebuild([row(i, leaf) for i, leaf in enumerate(tree.leaves(call.output))])


@overload
def hessian(
    function: Callable[..., Tensor[Float]],
    argnums: Literal[0] = 0,
    *,
    chunk_size: int | None = None,
    has_aux: Literal[False] = False,
) -> Derivatives: ...
@overload
def hessian(
    function: Function,
    argnums: ArgNums = 0,
    *,
    chunk_size: int | None = None,
    has_aux: bool = False,
) -> Function: ...
def hessian(
    function: Function,
    argnums: ArgNums = 0,
    *,
    chunk_size: int | None = None,
    has_aux: bool = False,
) -> Function:
    """Return a function that gives all second derivatives of a function of one element.

    For a tensor the result has the shape ``x.shape + x.shape``. ``chunk_size`` and ``has_aux`` are
    those of ``jacobian``.

    Example:
        >>> import phlox_tensor as pt
        >>> cubes = lambda x: ((x**3).sum(), x.size)
        >>> found, aux = hessian(cubes, has_aux=True)(pt.asarray([1.0, 2.0]))
        >>> found.tolist(), aux
        ([[6.0, 0.0], [0.0, 12.0]], 2)
    """
    require_callable("hessian", function, "px.hessian(f)(x)")
    first = gradient("hessian", function, argnums, has_aux=has_aux)
    return jacobian(first, argnums, mode="rows", chunk_size=chunk_size, has_aux=has_aux)


@overload
def hvp(
    function: Callable[..., Tensor[Float]],
    primals: Q,
    vector: tuple[Any, ...],
    *,
    has_aux: Literal[False] = False,
    kwargs: dict[str, Any] | None = None,
) -> Q: ...
@overload
def hvp(
    function: Callable[..., Any],
    primals: Q,
    vector: tuple[Any, ...],
    *,
    has_aux: Literal[True],
    kwargs: dict[str, Any] | None = None,
) -> tuple[Q, Any]: ...
def hvp(
    function: Function,
    primals: tuple[Any, ...],
    vector: tuple[Any, ...],
    *,
    has_aux: bool = False,
    kwargs: dict[str, Any] | None = None,
) -> tuple[Any, ...]:
    """Return the product of the second derivatives of ``function`` with a vector.

    Forward over reverse: one gradient and its derivative along ``vector``, never the matrix.
    ``function`` gives one element; ``primals`` and ``vector`` are tuples of as many arguments,
    trees and modules among them, with None for what does not move. The product has the structure
    of ``primals``. With ``has_aux``, for a function that gives a pair of which the second is not
    differentiated, the result is ``(product, aux)``. ``kwargs`` are further arguments by name,
    which are constants.

    Raises:
        GradientError: when there is nothing to differentiate, or primals or vector are no tuple.
        ShapeError: when a part of the vector does not fit, or the value is not one element.

    Example:
        >>> import phlox_tensor as pt
        >>> x, v = pt.asarray([1.0, 2.0]), pt.asarray([1.0, 0.0])
        >>> hvp(lambda x: (x**3).sum(), (x,), (v,))[0].tolist()
        [6.0, 0.0]
    """
    require_callable("hvp", function, "px.hvp(f, (x,), (v,))")
    for given in (primals, vector):
        require_arguments("hvp", given)
    if len(primals) != len(vector):
        raise GradientError(
            "hvp",
            "the vector has not a part for each argument",
            got=f"{len(vector)} for {len(primals)}",
            expected="as many, with None for what does not move",
        )
    everything = tuple(range(len(primals)))
    first = gradient("hvp", function, everything, has_aux=has_aux)
    _, product, *aux = jvp(first, primals, vector, has_aux=has_aux, kwargs=kwargs)
    return (product, *aux) if has_aux else product
