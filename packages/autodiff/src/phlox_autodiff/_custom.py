"""Custom gradients: a function that says itself how cotangents pass it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, final

from phlox_tensor import Backend, GradientError, Tensor

from ._autodiff import Autodiff
from ._checkpoint import Memo
from ._forward import Forward
from ._graph import Node, Pending, Plan, accumulate, make_node, ports, primitive
from ._levels import outermost
from ._mode import MODE, paused

Function = Callable[..., tuple[Any, Callable[..., Any]]]


@final
class _CustomPlan(Plan):
    """The plan of one decorated function; the function to pull with is what its nodes keep."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._name

    def push(self, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
        """Call the user's function and hand out what it gives."""
        del memo
        pull, metas = node.saved
        given = cotangent if isinstance(cotangent, list) else [cotangent]
        out = pull(*given)
        out = out if isinstance(out, tuple) else (out,)
        if len(out) != len(metas):
            raise GradientError(
                self._name,
                "the custom gradient gives not one cotangent per tensor argument",
                got=len(out),
                expected=len(metas),
            )
        for parent, part, (shape, dtype, device) in zip(node.parents, out, metas, strict=True):
            if parent is None or part is None:
                continue
            if not isinstance(part, Tensor) or part.shape != shape or part.dtype is not dtype:
                raise GradientError(
                    self._name,
                    "the custom gradient does not fit the argument",
                    got=f"{part.shape} of {part.dtype}"
                    if isinstance(part, Tensor)
                    else type(part).__name__,
                    expected=f"{shape} of {dtype}",
                )
            accumulate(pending, parent, part.to_device(device))


def custom_gradient(function: Function) -> Callable[..., Any]:
    """Give a function a gradient of its own.

    ``function`` gives its value, a tensor or a tuple of tensors, and a function from the cotangent
    of each to the cotangents of its tensor arguments: one, or a tuple with None where there is
    none. It runs on the device inside; what it uses of tracked tensors has to be an argument.

    Raises:
        GradientError: from the call, when ``function`` closes over a tracked tensor; from the
            backward pass, when a cotangent does not fit its argument.
    """
    name = getattr(function, "__name__", "custom_gradient")
    plan = _CustomPlan(name)

    @wraps(function)
    def run(*args: Any) -> Any:
        return _apply(plan, function, args)

    return run


def _apply(plan: _CustomPlan, function: Function, args: tuple[Any, ...]) -> Any:
    device = outermost(plan.name, args)
    if isinstance(device, Forward):
        return _constant(plan, function, args, device)
    if not isinstance(device, Autodiff):
        return function(*args)[0]
    inner = device.inner
    lifted = [a.to_device(device) if isinstance(a, Tensor) else a for a in args]
    lowered = [a.inner() if isinstance(a, Tensor) else a for a in lifted]
    value, pull = function(*lowered)
    if isinstance(inner, Autodiff | Forward):
        # The level below has its own derivative to record, by the same function.
        value = _apply(plan, function, tuple(lowered))
    single = not isinstance(value, tuple)
    values = (value,) if single else value
    results = [_result(plan.name, v, device) for v in values]
    tensors = [a for a in lifted if isinstance(a, Tensor)]
    parents = [t.primitive.node for t in tensors]
    if all(node is None for node in parents) or (MODE.pauses and paused()):
        out = [Tensor(primitive(t.primitive), device) for t in results]
    else:
        saved = (pull, [(t.shape, t.dtype, inner) for t in tensors])
        node = make_node(plan, parents, saved, results[0].shape)
        if single:
            out = [Tensor(primitive(results[0].primitive, node), device)]
        else:
            made = ports(
                node,
                [t.primitive for t in results],
                [t.shape for t in results],
                [t.dtype.kind == "Float" for t in results],
            )
            out = [Tensor(p, device) for p in made]
    return out[0] if single else tuple(out)


def _constant(plan: _CustomPlan, function: Function, args: tuple[Any, ...], device: Backend) -> Any:
    """The value on a forward device, as long as nothing moves."""
    tensors = [a.to_device(device) if isinstance(a, Tensor) else a for a in args]
    if any(isinstance(t, Tensor) and t.primitive.tangent is not None for t in tensors):
        raise GradientError(
            plan.name,
            "a custom gradient has no forward derivative",
            hint="vjp or grad, which run backwards",
        )
    lowered = tuple(t.inner() if isinstance(t, Tensor) else t for t in tensors)
    value = _apply(plan, function, lowered)
    if isinstance(value, tuple):
        return tuple(_result(plan.name, v, device).to_device(device) for v in value)
    return _result(plan.name, value, device).to_device(device)


def _result(name: str, value: Any, device: Backend) -> Tensor[Any]:
    """A result of the user's function, on the device inside."""
    inner = device.inner
    assert inner is not None
    if not isinstance(value, Tensor):
        raise GradientError(
            name, "the custom gradient's value is not a tensor", got=type(value).__name__
        )
    if value.device is device:
        raise GradientError(
            name,
            "the function closes over a tensor on the recording device",
            got=repr(device),
            expected=f"a result on {inner!r}",
            hint="pass the tensor as an argument",
        )
    return value.to_device(inner)
