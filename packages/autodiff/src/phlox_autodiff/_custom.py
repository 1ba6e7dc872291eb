"""Custom derivatives: functions whose cotangents or tangents the user computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar, final

from phlox_tensor import Backend, GradientError, Tensor, is_inside, tree
from phlox_tensor.arguments import require_callable
from phlox_tensor.random import generator

from ._autodiff import Autodiff
from ._batched import Batched, Level, level_of
from ._checkpoint_strategies import Memo
from ._custom_form import Follow, Form, Spec, pulling, pushing, spec_of
from ._forward import Dual, Forward
from ._graph import Node, Pending, Plan, Primitive, accumulate, make_node, ports, primitive
from ._lanes import Lanes
from ._levels import outermost
from ._mode import MODE, paused
from ._plan import OpPlan
from ._transform import vjp
from ._vmap import in_lanes, stacked

Function = Callable[..., tuple[Any, Callable[..., Any]]]
Tensors = tuple[Tensor[Any], ...]
P = ParamSpec("P")
R = TypeVar("R")
# From tensors to values, what carries cotangents back, and what carries tangents on, if anything.
Flat = Callable[..., tuple[Tensors, Follow, Follow | None]]


def custom_gradient(
    function: Callable[P, tuple[R, Callable[..., Any]]],
) -> Callable[P, R]:
    """Give a function a gradient of its own.

    ``function`` gives its value and a function from the cotangent of it to the cotangents of its
    arguments: one for each that holds tensors, or None. Arguments and value are tensors or trees;
    the cotangent of a tree is one of its structure; a tuple of two tensors has two cotangents,
    ``lambda g, h: ...``.
    It runs on the device inside; what it uses of tracked tensors has to be an argument.

    Raises:
        GradientError: from the call, when ``function`` closes over a tracked tensor; from the
            backward pass, when a cotangent does not fit its argument; in forward mode.

    Example:
        >>> import phlox_tensor as pt
        >>> from phlox_autodiff import grad
        >>> clipped = custom_gradient(lambda x: (x, lambda g: g.clip(-1, 1)))
        >>> grad(lambda x: (clipped(x) * 5.0).sum())(pt.asarray([1.0, 2.0])).tolist()
        [1.0, 1.0]
    """
    require_callable("custom_gradient", function, "@px.custom_gradient above a def")
    return _decorated(function, forwards=False)


def custom_jvp(
    function: Callable[P, tuple[R, Callable[..., Any]]],
) -> Callable[P, R]:
    """Give a function a derivative of its own, in both modes.

    ``function`` gives its value and a function from the tangents of its arguments, one for each
    that holds tensors (``lambda t: ...`` for a tensor and a number), to the tangent of the value.
    That one is linear in them: reverse mode goes
    back through it, and does not see what is added that depends on none (``t * 2 + 1``). It runs
    on the device inside; what it uses of tracked tensors has to be an argument.

    Raises:
        GradientError: as ``custom_gradient`` does; from the backward pass, for a step such as
            ``t * t`` or ``t.sin()`` that is not linear in the tangents.

    Example:
        >>> import phlox_tensor as pt
        >>> from phlox_autodiff import grad, jvp
        >>> smooth = custom_jvp(lambda x: (x.abs(), lambda t: t * x.tanh()))
        >>> x = pt.asarray([0.0, 20.0])
        >>> jvp(smooth, (x,), (x,))[1].tolist(), grad(lambda x: smooth(x).sum())(x).tolist()
        ([0.0, 20.0], [0.0, 1.0])
    """
    require_callable("custom_jvp", function, "@px.custom_jvp above a def")
    return _decorated(function, forwards=True)


def _decorated(function: Function, *, forwards: bool) -> Callable[..., Any]:
    nameless = "custom_jvp" if forwards else "custom_gradient"
    plan = _CustomPlan(getattr(function, "__name__", nameless), forwards=forwards)

    @wraps(function, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        call = _Call(plan, function, args, kwargs)
        return call.rebuilt(_apply(plan, call, call.tensors))

    return run


@final
class _CustomPlan(Plan):
    """The plan of one decorated function; the function to pull with is what its nodes keep."""

    __slots__ = ("forwards", "name")

    def __init__(self, name: str, *, forwards: bool) -> None:
        self.name = name
        self.forwards = forwards

    def push(self, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
        """Call the user's function and hand out what it gives."""
        del memo
        pull, metas = node.saved
        given = cotangent if isinstance(cotangent, list) else [cotangent]
        out = pull(*given)
        for parent, part, (shape, dtype, device) in zip(node.parents, out, metas, strict=True):
            if parent is None or part is None:
                continue
            if not isinstance(part, Tensor) or part.shape != shape or part.dtype is not dtype:
                raise self.unfit(part, f"{shape} of {dtype}")
            lanes = isinstance(part.device, Batched)  # of a jacobian, which takes all rows at once
            accumulate(pending, parent, part if lanes else part.to_device(device))

    def unfit(self, part: Any, expected: str) -> GradientError:
        """The error for a cotangent that does not fit."""
        got = f"{part.shape} of {part.dtype}" if isinstance(part, Tensor) else type(part).__name__
        return GradientError(
            self.name,
            "the custom gradient does not fit the argument",
            got=got,
            expected=expected,
        )


@final
class _Call:
    """One call of a decorated function, as a function of only tensors.

    Attributes:
        tensors: those among the arguments, from left to right.
    """

    def __init__(
        self, plan: _CustomPlan, function: Function, args: tuple[Any, ...], kwargs: Any
    ) -> None:
        self._plan: Final = plan
        self._function: Final = function
        self._parts: Final = [tree.flatten(part) for part in (*args, *kwargs.values())]
        self._names: Final = tuple(kwargs)
        flags = [([isinstance(x, Tensor) for x in leaves], s) for leaves, s in self._parts]
        self._layout: Final = [each for each in flags if any(each[0])]
        self.tensors: Tensors = tuple(
            leaf for leaves, _ in self._parts for leaf in leaves if isinstance(leaf, Tensor)
        )
        self._output: Any = None

    def __call__(self, *tensors: Tensor[Any]) -> tuple[Tensors, Follow, Follow | None]:
        """The values, and the functions that carry cotangents back and tangents on."""
        rest = iter(tensors)
        parts = [
            structure.rebuild([next(rest) if isinstance(x, Tensor) else x for x in leaves])
            for leaves, structure in self._parts
        ]
        count = len(parts) - len(self._names)
        keywords = dict(zip(self._names, parts[count:], strict=True))
        made: Any = self._function(*parts[:count], **keywords)
        if not isinstance(made, tuple) or len(made) != 2 or not callable(made[1]):
            raise GradientError(
                self._plan.name,
                "the function gives no pair of a value and what carries its derivative on",
                got=type(made).__name__,
                expected="a tuple of a value and a function",
                hint="return x * 2, lambda g: g * 2",
            )
        value, follow = made
        leaves, structure = tree.flatten(value)
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise GradientError(
                    self._plan.name,
                    "the custom gradient's value is not a tensor",
                    got=type(leaf).__name__,
                )
        self._output = structure
        several = type(value) is tuple and all(isinstance(part, Tensor) for part in value)
        made_of = Form(self._plan.name, self._layout, structure, tuple(map(spec_of, leaves)))
        if self._plan.forwards:
            push = pushing(made_of, follow)
            return tuple(leaves), _transposed(made_of, push, tuple(map(spec_of, tensors))), push
        return tuple(leaves), pulling(made_of, follow, several=several), None

    def rebuilt(self, values: Tensors) -> Any:
        """The value as the function gave it."""
        return self._output.rebuild(values)


def _apply(plan: _CustomPlan, flat: Flat, tensors: Tensors) -> Tensors:
    """The values on the outermost device of the tensors, with what it has to remember."""
    device = outermost(plan.name, tensors)
    if isinstance(device, Autodiff):
        return _recorded(plan, flat, tensors, device)
    if isinstance(device, Forward):
        return _moved(plan, flat, tensors, device)
    if isinstance(device, Batched):
        return _over_lanes(plan, flat, tensors, device)
    if device is not None and device.records:  # a decorator that looks on
        lowered = tuple(t.to_device(device).inner() for t in tensors)
        return tuple(t.to_device(device) for t in _apply(plan, flat, lowered))
    return flat(*tensors)[0]


def _below(plan: _CustomPlan, flat: Flat, lowered: Tensors, device: Backend) -> Any:
    """The values on the device inside, and the functions that carry derivatives here."""
    numbers = generator()
    before = numbers.state()
    values, pull, push = flat(*lowered)
    if any(map(_is_followed, (*lowered, *values))):
        # The level below has its own derivative to record, by the same function once more.
        numbers.set_state(*before)
        values = _apply(plan, flat, lowered)
    return tuple(_result(plan.name, v, device) for v in values), pull, push


def _is_followed(x: Tensor[Any]) -> bool:
    """Whether a device records a tensor, moves it or has lanes of it, on whatever level."""
    held = x.primitive
    if type(held) is Lanes:
        return True
    if type(held) is Dual and held.tangent is not None:
        return True
    if type(held) is Primitive and held.node is not None:
        return True
    return x.device.inner is not None and _is_followed(x.inner())


def _recorded(plan: _CustomPlan, flat: Flat, given: Tensors, device: Autodiff) -> Tensors:
    """The values as results of one step."""
    tensors = [t.to_device(device) for t in given]
    lowered = tuple(t.inner() for t in tensors)
    results, pull, _ = _below(plan, flat, lowered, device)
    parents = [t.primitive.node for t in tensors]
    if all(node is None for node in parents) or (MODE.pauses and paused()):
        return tuple(Tensor(primitive(t.primitive), device) for t in results)
    saved = (pull, [(t.shape, t.dtype, device.inner) for t in tensors])
    node = make_node(plan, parents, saved, results[0].shape)
    if len(results) == 1:
        return (Tensor(primitive(results[0].primitive, node), device),)
    made = ports(
        node,
        [t.primitive for t in results],
        [t.shape for t in results],
        [t.dtype.kind == "Float" for t in results],
    )
    return tuple(Tensor(p, device) for p in made)


def _transposed(form: Form, push: Follow, points: tuple[Spec, ...]) -> Follow:
    """A linear function of tangents, as one of cotangents."""
    floats = [t.dtype.kind == "Float" for t in points]

    def pull(*cotangents: Any) -> tuple[Tensor[Any] | None, ...]:
        def of(*moving: Tensor[Any]) -> tuple[Any, ...]:
            rest = iter(moving)
            every = [next(rest) if f else t.zeros() for f, t in zip(floats, points, strict=True)]
            device = outermost(form.name, moving)
            found = zip(push(*every), form.values, strict=True)
            out = tuple(_on_level(v.zeros() if t is None else t, device) for t, v in found)
            _require_linear(form.name, out)
            return out

        still = [t.zeros() for t, f in zip(points, floats, strict=True) if f]
        found = iter(vjp(of, *still)[1](tuple(form.filled(cotangents))))
        return tuple(next(found) if f else None for f in floats)

    return pull


def _on_level(tangent: Tensor[Any], device: Backend | None) -> Tensor[Any]:
    """A tangent on the device of a transform; one that depends on nothing is not there yet."""
    if device is None or not is_inside(tangent.device, device):
        return tangent
    return tangent.to_device(device)


def _require_linear(name: str, tangents: tuple[Any, ...]) -> None:
    """Refuse a recorded function of tangents with a step whose derivative depends on them."""
    found = [t.primitive.node for t in tangents if t is not None and t.requires_grad]
    seen = set(found)
    for node in found:  # which grows meanwhile
        if isinstance(node.plan, OpPlan) and node.plan.bends:
            raise GradientError(
                name,
                "the tangent is not linear in the tangents of the arguments",
                got=f"{node.plan.name} of one, whose derivative depends on it",
                expected="sums of tangents, times what does not depend on them",
                hint="return x.sin(), lambda t: t * x.cos()",
            )
        for parent in node.parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                found.append(parent)


def _moved(plan: _CustomPlan, flat: Flat, given: Tensors, device: Forward) -> Tensors:
    """The values with their tangents."""
    tensors = [t.to_device(device) for t in given]
    lowered = tuple(t.inner() for t in tensors)
    moving = any(t.primitive.tangent is not None for t in tensors)
    if not moving or (MODE.pauses and paused()):
        return tuple(v.to_device(device) for v in _below(plan, flat, lowered, device)[0])
    results, _, push = _below(plan, flat, lowered, device)
    if push is None:
        raise GradientError(
            plan.name,
            "a custom gradient has no forward derivative",
            hint="vjp or grad, which run backwards; or px.custom_jvp, which serves both",
        )
    tangents = [
        x.zeros() if t.primitive.tangent is None else Tensor(t.primitive.tangent, x.device)
        for t, x in zip(tensors, lowered, strict=True)
    ]
    out = []
    for result, tangent in zip(results, push(*tangents), strict=True):
        if tangent is not None and tangent.shape != result.shape:
            raise plan.unfit(tangent, f"{result.shape} of {result.dtype}")
        moved = None if tangent is None else tangent.to_device(result.device).primitive
        out.append(Tensor[Any](Dual(result.primitive, moved), device))
    return tuple(out)


def _over_lanes(plan: _CustomPlan, flat: Flat, given: Tensors, device: Batched) -> Tensors:
    """The values with their lanes: the function of all lanes has a derivative below."""
    tensors = [t.to_device(device) for t in given]
    mapped = [t.primitive.mapped for t in tensors]
    lowered = tuple(Tensor[Any](t.primitive.value, device.inner) for t in tensors)
    if not any(mapped):
        return tuple(v.to_device(device) for v in _apply(plan, flat, lowered))
    size = next(t.shape[0] for t, m in zip(lowered, mapped, strict=True) if m)
    level = level_of(device) or Level(size)

    def whole(*inside: Tensor[Any]) -> tuple[Tensors, Follow, Follow | None]:
        below = outermost(plan.name, inside)
        assert below is not None

        def run(function: Callable[..., Any], flags: list[bool], items: Any) -> Any:
            given = outermost(plan.name, items) or below
            lanes = Batched(given if is_inside(below, given) else below)
            with in_lanes(lanes, level):
                return function(*[_laned(x, lanes, m) for x, m in zip(items, flags, strict=True)])

        values, pull, push = run(flat, mapped, inside)
        every = [True] * len(values)

        def carried(follow: Follow, before: list[bool], after: list[bool]) -> Follow:
            def carry(*items: Any) -> tuple[Tensor[Any] | None, ...]:
                out = run(follow, before, items)
                pairs = zip(out, after, strict=True)
                return tuple(None if x is None else _whole(x, size, m) for x, m in pairs)

            return carry

        onwards = None if push is None else carried(push, mapped, every)
        return tuple(_whole(v, size, True) for v in values), carried(pull, every, mapped), onwards

    return tuple(_laned(v, device, True) for v in _apply(plan, whole, lowered))


def _laned(x: Any, device: Backend, mapped: bool) -> Any:
    """A tensor of the device inside as one with lanes."""
    if not isinstance(x, Tensor):
        return x
    inner = device.inner
    assert inner is not None
    return Tensor(Lanes(x.to_device(inner).primitive, mapped=mapped), device)


def _whole(x: Tensor[Any], size: int, mapped: bool) -> Tensor[Any]:
    """A tensor with lanes on the device inside: with the axis, or summed over the lanes."""
    if isinstance(x.device, Batched):
        out = stacked(x, x.device, size)
    else:
        out = x.reshape((1, *x.shape)).broadcast_to((size, *x.shape))
    return out if mapped else out.sum(axis=0)


def _result(name: str, value: Tensor[Any], device: Backend) -> Tensor[Any]:
    """A result of the user's function, on the device inside."""
    inner = device.inner
    assert inner is not None
    if value.device is device:
        raise GradientError(
            name,
            "the function closes over a tensor on the recording device",
            got=repr(device),
            expected=f"a result on {inner!r}",
            hint="pass the tensor as an argument",
        )
    return value.to_device(inner)
