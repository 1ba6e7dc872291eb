"""Forward mode: a device whose primitives carry a tangent, on the same table of rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any, Literal, TypeVar, final, overload

import numpy as np

from phlox_tensor import Decorator, Entry, GradientError, Op, Proposed, Tensor, asarray, tree
from phlox_tensor.arguments import require_callable
from phlox_tensor.capture import Number

from ._autodiff import Autodiff
from ._derived import rule_of
from ._graph import next_id
from ._levels import (
    as_tensor,
    base_device,
    brought,
    check_level,
    check_result,
    describe,
    note_read,
    require_arguments,
    require_fit,
    running,
)
from ._mode import MODE, paused
from ._recorded import pair_of
from ._rule import (
    ByAttribute,
    Joint,
    NoDerivative,
    RuleFunction,
    SimpleRule,
    Source,
    functions_of,
    names_of,
    parameters_of,
    rounds_otherwise,
)
from .rules import SECOND

# From operands, tangents (None for 0), results and attributes to the tangents of the results.
Tangents = Callable[[list[Any], list[Any], list[Any], tuple[Any, ...]], list[Any]]


@final
class Dual:
    """A primitive of the inner backend and its tangent, where None is 0."""

    __slots__ = ("tangent", "value")

    def __init__(self, value: Any, tangent: Any = None) -> None:
        """Join the two."""
        self.value = value
        self.tangent = tangent


@final
class Forward(Decorator):
    """A device that computes a derivative along with each value; ``jvp`` uses it.

    Args:
        backend: the device to compute on, or its name.
    """

    name = "forward"
    transient = True

    def decorate(self, op: Op, inside: Entry) -> Entry:
        """Return the inner entry, followed by the derivative where an operand has a tangent."""
        move = _derivative(op)
        count = len(op.signature.operands)
        single = not op.signature.several
        follows = move is None and not rounds_otherwise(op, self)

        def run(*args: Any) -> Any:
            operands, attributes = args[:count], args[count:]
            moving = any(map(_is_moving, tree.leaves(operands)))
            moving = moving and not (MODE.pauses and paused())
            if moving and follows:
                duals = self._follow(op, args)
                return duals[0] if single else duals
            given = self.lower_all(op, args)
            out = inside(*given)
            outs = (out,) if single else out
            if not moving:
                duals = tuple(Dual(o) for o in outs)
            elif move is None:
                # The value is the entry's, so that asking for a derivative changes none.
                followed = self._follow(op, args)
                duals = tuple(Dual(o, f.tangent) for o, f in zip(outs, followed, strict=True))
            else:
                xs = [tree.map(self._wrap, v) for v in given[:count]]
                ts = [tree.map(self._tangent, a) for a in operands]
                ys = [Tensor(o, self._inner) for o in outs]
                moved = move(xs, ts, ys, attributes)
                duals = tuple(
                    Dual(o, None if t is None else t.primitive)
                    for o, t in zip(outs, moved, strict=True)
                )
            return duals[0] if single else duals

        return run

    def propose(self, result: Any, target: Tensor[Any], value: Tensor[Any], /) -> Any:
        """Return ``result`` with a new value for ``target`` in what devices inside record."""
        return Dual(self._inner.propose(result.value, target, value), result.tangent)

    def _follow(self, op: Op, args: tuple[Any, ...]) -> tuple[Dual, ...]:
        """Run the expansion of an op on this device."""
        if op.expand is None:
            raise GradientError(
                op.name, "the op has no derivative rule and no expansion", hint="x.detach()"
            )
        out = op.expand(
            *[tree.map(lambda p: Tensor(p, self) if isinstance(p, Dual) else p, a) for a in args]
        )
        return tuple(t.primitive for t in (out if op.signature.several else (out,)))

    def _wrap(self, value: Any) -> Any:
        plain = value is None or type(value) in (bool, float, int, np.float64, Number)
        return value if plain else Tensor(value, self._inner)

    def _tangent(self, item: Any) -> Tensor[Any] | None:
        if not isinstance(item, Dual) or item.tangent is None:
            return None
        return Tensor(item.tangent, self._inner)

    # Primitives

    def lift(self, inside: Any, /) -> Any:
        """Make a constant from a primitive of the inner device."""
        return Dual(inside)

    def lower(self, primitive: Any, /) -> Any:
        """Return the primitive of the inner device."""
        return primitive.value

    def read(self, primitive: Any, /) -> np.ndarray[Any, Any]:
        """Return the data as a NumPy array, which says nothing of the tangent."""
        if primitive.tangent is not None:
            note_read(self)
        return self._inner.read(primitive.value)

    def is_tracked(self, primitive: Any, /) -> bool:
        """Whether the primitive has a tangent."""
        return primitive.tangent is not None


def _is_moving(item: Any) -> bool:
    return isinstance(item, Dual) and item.tangent is not None


def _derivative(op: Op) -> Tangents | None:
    """The derivative of an op by its class; None where the expansion has it."""
    rule = rule_of(op, Autodiff)
    if isinstance(rule, NoDerivative):
        return lambda xs, ts, ys, attributes: [None] * len(ys)
    if rule is None:
        return None
    if op.traits.linear:
        return lambda xs, ts, ys, attributes: _linear(op, xs, ts, attributes)
    if op.traits.multilinear:
        return lambda xs, ts, ys, attributes: _multilinear(op, xs, ts, attributes)
    second = SECOND.get(op.name)
    if second is not None:
        names = op.attribute_names
        return lambda xs, ts, ys, attributes: list(
            second(xs, ts, ys, dict(zip(names, attributes, strict=True)))
        )
    if (op.op_class.diagonal or op.op_class.reduces) and not isinstance(rule, ByAttribute):
        return _diagonal(op, rule)
    if op.expand is None and not isinstance(rule, ByAttribute):
        return _transposed(op, rule)
    return None


def _floats(attributes: tuple[Any, ...]) -> bool:
    """Whether a result whose type is an attribute can have a tangent."""
    return all(getattr(a, "kind", "Float") == "Float" for a in attributes)


def _linear(op: Op, xs: list[Any], ts: list[Any], attributes: tuple[Any, ...]) -> list[Any]:
    if not _floats(attributes):
        return [None]

    def moved(x: Any, t: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(map(moved, x, t))
        if t is not None or x is None or x.dtype.kind != "Float":
            return x if t is None else t
        return x.zeros()

    out = op(*map(moved, xs, ts), *attributes)
    return list(out) if op.signature.several else [out]


def _multilinear(op: Op, xs: list[Any], ts: list[Any], attributes: tuple[Any, ...]) -> list[Any]:
    parts = [op(*xs[:i], t, *xs[i + 1 :], *attributes) for i, t in enumerate(ts) if t is not None]
    return [reduce(add, parts)]


def _bound(op: Op, rule: SimpleRule) -> list[tuple[RuleFunction, tuple[Source, ...]] | None]:
    """The functions of a rule, and what each needs."""
    names = names_of(op)
    return [None if f is None else (f, parameters_of(op, f, names)) for f in functions_of(op, rule)]


def _argument(source: Source, cotangents: list[Any], pool: list[Any]) -> Any:
    if source.kind == "cotangent":
        return cotangents[source.place]
    item = pool[source.place]
    return item if source.kind == "pool" else getattr(item, source.kind)


def _diagonal(op: Op, rule: SimpleRule) -> Tangents:
    """The rule of an elementwise op or a reduction, read forwards.

    An elementwise derivative scales, so the rule maps tangents as it maps cotangents. In a
    reduction the rule for a cotangent of ones gives what each element counts for.
    """
    functions, reduces = _bound(op, rule), op.op_class.reduces

    def move(xs: list[Any], ts: list[Any], ys: list[Any], attributes: tuple[Any, ...]) -> list[Any]:
        (y,) = ys
        if not _floats(attributes):
            return [None]
        pool = [*xs, *ys, *attributes]
        total: Any = None
        for t, entry in zip(ts, functions, strict=True):
            if t is None or entry is None:
                continue
            function, sources = entry
            given = [y.zeros() + 1 if reduces else t]
            part = function(*[_argument(source, given, pool) for source in sources])
            if part is None:
                continue
            if reduces:
                axis = attributes[op.attribute_names.index("axis")]
                part = (part * t).sum(axis=axis).reshape(y.shape).astype(y.dtype)
            total = part if total is None else total + part
        if total is not None and total.shape != y.shape:
            total = total.broadcast_to(y.shape)
        return [total]

    return move


def _transposed(op: Op, rule: SimpleRule) -> Tangents:
    """Any rule, read forwards: it is linear in the cotangents, so its own gradient moves tangents.

    Two passes backwards make one forwards: Townsend, "A new trick for calculating
    Jacobian vector products", 2017.
    """
    functions, joint = _bound(op, rule), isinstance(rule, Joint)

    def move(xs: list[Any], ts: list[Any], ys: list[Any], attributes: tuple[Any, ...]) -> list[Any]:
        recording = Autodiff(ys[0].device)
        cotangents = [y.zeros().to_device(recording).require_grad() for y in ys]
        pool = [*xs, *ys, *attributes]
        found: list[Any] = []
        for i, entry in enumerate(functions):
            out: Any = None
            if entry is not None and (joint or ts[i] is not None):
                out = entry[0](*[_argument(source, cotangents, pool) for source in entry[1]])
            found.extend(out) if joint else found.append(out)
        pairs = [(c, t) for c, t in zip(found, ts, strict=True) if c is not None and t is not None]
        grads = reduce(add, [(c * t).sum() for c, t in pairs]).backward()
        return [grads.get(g) for g in cotangents]

    return move


R = TypeVar("R")
X = TypeVar("X")


@overload
def jvp(
    function: Callable[..., R],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    has_aux: Literal[False] = False,
    kwargs: dict[str, Any] | None = None,
) -> tuple[R, R]: ...
@overload
def jvp(
    function: Callable[..., tuple[R, X]],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    has_aux: Literal[True],
    kwargs: dict[str, Any] | None = None,
) -> tuple[R, R, X]: ...
@overload
def jvp(
    function: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    has_aux: bool,
    kwargs: dict[str, Any] | None = None,
) -> tuple[Any, ...]: ...
def jvp(
    function: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    has_aux: bool = False,
    kwargs: dict[str, Any] | None = None,
) -> tuple[Any, ...]:
    """Return ``function(*primals)`` and its derivative in the direction ``tangents``.

    Computed forwards, in one pass and without a graph. Arguments and value may be tuples, lists
    and dicts of tensors and floats; tangents have the structure of the primals, with None for no
    movement. What is computed in ``no_grad`` does not move. With ``has_aux``, for a function that
    gives a pair, ``aux`` comes third. ``kwargs`` are further arguments by name, which do not move.

    Raises:
        GradientError: when primals or tangents are no tuple, a tangent belongs to what cannot
            move, such as an integer, or a function with ``has_aux`` gives no pair.
        ShapeError: when a tangent does not fit its primal.

    Example:
        >>> import phlox_tensor as pt
        >>> x, way = pt.asarray([1.0, 2.0]), pt.asarray([1.0, 0.0])
        >>> value, slope = jvp(lambda x: x * x, (x,), (way,))
        >>> slope.tolist()
        [2.0, 0.0]
    """
    require_callable("jvp", function, "px.jvp(f, (x,), (v,))")
    for given in (primals, tangents):
        require_arguments("jvp", given)
    base = base_device("jvp", (primals, tangents, kwargs))
    device = Forward(base)

    points, structure = tree.flatten(tuple(primals))
    along = structure.leaves_of(tuple(tangents), "jvp")
    moving = structure.rebuild([_entered(x, t, device) for x, t in zip(points, along, strict=True)])
    with running(device, next_id()) as read:
        out = function(*moving, **(kwargs or {}))
    aux: Any = None
    if has_aux:
        out, aux = pair_of("jvp", out)
        check_result("jvp", aux, device)
    check_level("jvp", out, device, others=kwargs, read=read)

    def value(leaf: Any) -> Any:
        return brought(leaf, base) if isinstance(leaf, Tensor) else leaf

    def tangent(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor) or leaf.dtype.kind != "Float":
            return None
        if leaf.device is not device or leaf.primitive.tangent is None:
            return brought(leaf, base).zeros()
        return brought(Tensor(leaf.primitive.tangent, base), base)

    moved = tree.map(value, out), tree.map(tangent, out)
    return (*moved, tree.map(value, aux)) if has_aux else moved


def _entered(x: Any, tangent: Any, device: Forward) -> Any:
    """A leaf of the primals with its tangent; a Float tensor that has none is a constant.

    Raises:
        GradientError: when there is no derivative by such a leaf, or the tangent is no tensor.
        ShapeError: when the tangent does not fit.
    """
    base = device.inner
    assert base is not None
    if tangent is None and isinstance(x, Tensor) and x.dtype.kind == "Float":
        return Tensor(Dual(brought(x, base).primitive), device)
    if tangent is None or isinstance(tangent, Proposed):
        return x
    point = as_tensor(x, base)
    if not isinstance(point, Tensor) or point.dtype.kind != "Float":
        raise GradientError(
            "jvp",
            "a tangent for what cannot move",
            got=f"one for {describe(x)}",
            expected="Float tensors and floats, and None for all else",
            hint=f"{float(x)}" if type(x) is int else "None as its tangent",
        )
    is_number = type(tangent) in (int, float)
    t = asarray(tangent, dtype=point.dtype, device=base) if is_number else tangent
    if not isinstance(t, Tensor):
        raise GradientError(
            "jvp",
            "a tangent is no tensor",
            got=describe(tangent),
            expected=f"a tensor of shape {point.shape}",
            hint="px.asarray(tangent)",
        )
    require_fit("jvp", "a tangent", t, point)
    dual = Dual(brought(point, base).primitive, brought(t, base).primitive)
    return Tensor(dual, device)
