"""``vmap``: a function of one example as a function of many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from phlox_tensor import ArgumentError, Backend, Proposed, ShapeError, Tensor, concat, tree
from phlox_tensor.arguments import require_callable
from phlox_tensor.capture import drawing_by_lane, drawing_once
from phlox_tensor.random import generator

from ._batched import Batched, Level, at_level, level_of
from ._lanes import Lanes
from ._levels import base_device, check_result, transforming

Function = Callable[..., Any]
# An axis for all tensors, None for those that are the same in all lanes, or a tree of them.
Axes = Any
_RANDOMNESS: Final = ("different", "same")

P = ParamSpec("P")
R = TypeVar("R")


class _Mapped(NamedTuple):
    """A leaf of the arguments, and the axis that counts its lanes; None where it has none."""

    path: str
    leaf: Any
    axis: int | None


def vmap(
    function: Callable[P, R],
    in_axes: Axes = 0,
    out_axes: Axes = 0,
    *,
    randomness: str = "different",
    chunk_size: int | None = None,
    loop: bool = False,
) -> Callable[P, R]:
    """Return ``function`` for many examples at once: it sees one, and runs once for all.

    The arguments have one more axis, which counts the examples (lanes); so has what comes out.
    Inside, shapes are those of one lane. Arguments and value are trees, modules among them;
    numbers, text and None are the same in all lanes, and keyword arguments are mapped over their
    first axis. It nests with itself and with ``grad``, ``jvp`` and the others in any order:
    ``vmap(grad(loss), (None, 0, 0))`` gives a gradient for each example, ``vmap`` over the
    parameters of many models an ensemble.

    Args:
        function: a function of one example.
        in_axes: the axis of the lanes: one for all arguments, or a tuple with one for each, where
            None is an argument that all lanes share; a tree of them for a tree.
        out_axes: where the axis goes in the value: one for all, or a tree.
        randomness: ``"different"``: each lane draws numbers of its own, as consecutive draws do;
            ``"same"``: all lanes have the same, whatever ``chunk_size`` is.
        chunk_size: how many lanes run at a time, to save memory; all by default.
        loop: run an op that has no batching rule lane by lane, instead of refusing it.

    Raises:
        ArgumentError: when axes do not fit the arguments, or nothing is mapped.
        BatchingError: from the call, when the function reads a value that differs from lane to
            lane, or uses an op that has no rule.
        ShapeError: when the arguments have different numbers of lanes.

    Example:
        >>> import phlox_tensor as pt
        >>> xs, w = pt.asarray([[1.0, 2.0], [3.0, 4.0]]), pt.asarray([10.0, 1.0])
        >>> vmap(lambda x, w: (x * w).sum(), in_axes=(0, None))(xs, w).tolist()
        [12.0, 34.0]
    """
    require_callable("vmap", function, "px.vmap(f)(xs)")
    if randomness not in _RANDOMNESS:
        raise ArgumentError(
            "vmap", "randomness", got=repr(randomness), expected="'different' or 'same'"
        )
    require_chunk_size("vmap", chunk_size)
    one: Callable[..., Any] = function  # of a lane, whose arguments are other tensors

    @wraps(function, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        base = base_device("vmap", (args, kwargs))
        given, structure = _mapped(in_axes, args, kwargs)
        size = _size(given)
        step = size if chunk_size is None else min(chunk_size, size)
        whole = all(m.axis in (None, 0) for m in given)
        outs = []
        numbers = generator().state()
        for first in range(0, size, max(step, 1)) if size else (0,):
            count = min(step, size - first)
            lanes = [_enter(m, Batched(base), first, count, size) for m in given]
            inner_args, inner_kwargs = structure.rebuild(lanes)
            if first and randomness == "same":
                generator().set_state(*numbers)
            with in_lanes(Batched(base), Level(count, randomness, loop, whole and count == size)):
                out = one(*inner_args, **inner_kwargs)
            check_result("vmap", out, Batched(base))
            outs.append(_leave(out, out_axes, Batched(base), count))
        return outs[0] if len(outs) == 1 else _joined(outs, out_axes)

    return run


@contextmanager
def in_lanes(device: Batched, level: Level) -> Iterator[None]:
    """Run a function of one lane: its draws are of all lanes, unless these have the same."""
    with at_level(device, level), transforming(device), drawing_once(), ExitStack() as draws:
        for each in _inside_out(device):
            level_there = level_of(each) or level
            if level_there.randomness == "different":
                assert each.inner is not None
                draws.enter_context(drawing_by_lane(each.inner, each))
        yield


def _inside_out(device: Backend) -> list[Backend]:
    """The devices with lanes inside of one, the innermost first."""
    inside = [] if device.inner is None else _inside_out(device.inner)
    return [*inside, device] if isinstance(device, Batched) else inside


def require_chunk_size(op: str, size: Any) -> None:
    """Refuse a number of lanes that goes nowhere."""
    if size is not None and (type(size) is not int or size < 1):
        raise ArgumentError(op, "chunk_size", got=repr(size), expected="None, or at least 1")


# Arguments


def _mapped(in_axes: Axes, args: tuple[Any, ...], kwargs: Any) -> tuple[list[_Mapped], Any]:
    """The leaves of the arguments with their axes, and the structure of all of them."""
    if isinstance(in_axes, tuple | list):
        if len(in_axes) != len(args):
            raise ArgumentError(
                "vmap",
                "in_axes has not one axis for each argument",
                got=f"{len(in_axes)} axes for {len(args)} arguments",
                expected="a tuple with one for each, or one axis for all",
                hint=f"in_axes=({', '.join(['0'] * len(args))},)",
            )
        each = list(in_axes)
    else:
        each = [in_axes] * len(args)
    parts = [(f"argument {i}", axes, a) for i, (axes, a) in enumerate(zip(each, args, strict=True))]
    parts += [(name, 0, value) for name, value in kwargs.items()]
    given = [m for path, axes, value in parts for m in _spread(axes, value, path, "in_axes")]
    _, structure = tree.flatten((args, kwargs))
    return given, structure


def _spread(axes: Axes, value: Any, path: str, what: str) -> list[_Mapped]:
    """One axis for each leaf, out of one for all of them or a tree of axes."""
    if axes is None or (isinstance(axes, int) and not isinstance(axes, bool)):
        return [
            _Mapped(f"{path}.{name}" if name else path, leaf, axes)
            for name, leaf in tree.leaves_with_paths(value)
        ]
    parts, inside = tree.children(value), dict(tree.children(axes))
    if not tree.is_node(axes) or not tree.is_node(value) or {n for n, _ in parts} != set(inside):
        raise ArgumentError(
            "vmap",
            f"{what} does not fit {path}",
            got=repr(axes),
            expected="an int, None, or a tree of them with the structure of the value",
        )
    return [m for n, part in parts for m in _spread(inside[n], part, f"{path}.{n}", what)]


def _size(given: list[_Mapped]) -> int:
    """The number of lanes that all mapped tensors have."""
    sizes: dict[int, str] = {}
    for path, leaf, axis in given:
        if axis is None or not isinstance(leaf, Tensor):
            continue
        if not -leaf.ndim <= axis < leaf.ndim:
            raise ArgumentError(
                "vmap",
                f"{path} has no axis {axis} for the lanes",
                got=f"shape {leaf.shape}",
                expected=f"at least {axis + 1 if axis >= 0 else -axis} axes",
                hint="in_axes=None for what all lanes share",
            )
        sizes.setdefault(leaf.shape[axis], path)
    if not sizes:
        raise ArgumentError(
            "vmap",
            "nothing is mapped",
            got="no tensor argument with an axis",
            expected="one at least",
            hint="px.vmap(f, in_axes=0)(xs)",
        )
    if len(sizes) > 1:
        raise ShapeError(
            "vmap",
            "the arguments have different numbers of lanes",
            got=", ".join(f"{n} in {path}" for n, path in sizes.items()),
            expected="one number",
            hint="in_axes=None for what all lanes share",
        )
    return next(iter(sizes))


def _enter(item: _Mapped, device: Backend, first: int, count: int, size: int) -> Any:
    """A leaf of the arguments as the function sees it."""
    leaf = item.leaf
    if not isinstance(leaf, Tensor) or item.axis is None:
        return leaf
    inner = device.inner
    assert inner is not None
    lanes = to_front(leaf.to_device(inner), item.axis)
    if count != size:
        lanes = lanes[first : first + count]
    return Tensor(Lanes(lanes.primitive, mapped=True), device)


def to_front(x: Tensor[Any], axis: int) -> Tensor[Any]:
    """The tensor with its lanes along the first axis."""
    return x if axis % x.ndim == 0 else x.moveaxis(axis, 0)


# Results


def stacked(x: Tensor[Any], device: Backend, size: int) -> Tensor[Any]:
    """A tensor of ``device``, or of one inside, with its lanes along the first axis."""
    inner = device.inner
    assert inner is not None
    if x.device is device and x.primitive.mapped:
        return Tensor(x.primitive.value, inner)
    same = x.to_device(inner)
    return same.reshape((1, *same.shape)).broadcast_to((size, *same.shape))


def _leave(out: Any, out_axes: Axes, device: Backend, size: int) -> Any:
    """The value with the lanes as an axis, on the device of the arguments."""
    _, structure = tree.flatten(out)
    return structure.rebuild(
        [_out(item, device, size) for item in _spread(out_axes, out, "value", "out_axes")]
    )


def _out(item: _Mapped, device: Backend, size: int) -> Any:
    path, leaf, axis = item
    if isinstance(leaf, Proposed):
        leaf = leaf.value
        return Proposed(_out(_Mapped(path, leaf, axis), device, size))
    if leaf is None or isinstance(leaf, str):
        return leaf
    if not isinstance(leaf, Tensor):
        raise ArgumentError(
            "vmap",
            f"{path} is not a tensor, so it has no lanes",
            got=type(leaf).__name__,
            expected="tensors in the value of the function",
            hint="px.asarray(value)",
        )
    if axis is None:
        if leaf.device is device and leaf.primitive.mapped:
            raise ArgumentError(
                "vmap",
                f"{path} differs from lane to lane",
                got="out_axes=None",
                expected="an axis for the lanes",
                hint="out_axes=0",
            )
        assert device.inner is not None
        return leaf.to_device(device.inner)
    lanes = stacked(leaf, device, size)
    if not -lanes.ndim <= axis < lanes.ndim:
        raise ArgumentError(
            "vmap",
            f"{path} has no place for an axis {axis}",
            got=f"shape {lanes.shape[1:]} in one lane",
            expected=f"-{lanes.ndim} <= out_axes < {lanes.ndim}",
        )
    return lanes if axis % lanes.ndim == 0 else lanes.moveaxis(0, axis)


def _joined(outs: list[Any], out_axes: Axes) -> Any:
    """The values of the chunks, one after the other."""
    _, structure = tree.flatten(outs[0])
    columns = [_spread(out_axes, out, "value", "out_axes") for out in outs]

    def join(parts: tuple[_Mapped, ...]) -> Any:
        leaf, axis = parts[0].leaf, parts[0].axis
        if isinstance(leaf, Proposed):
            return Proposed(_concat([p.leaf.value for p in parts], axis))
        return _concat([p.leaf for p in parts], axis) if isinstance(leaf, Tensor) else leaf

    return structure.rebuild([join(parts) for parts in zip(*columns, strict=True)])


def _concat(parts: list[Tensor[Any]], axis: int | None) -> Tensor[Any]:
    return parts[0] if axis is None else concat(parts, axis=axis)
