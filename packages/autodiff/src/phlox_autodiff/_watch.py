"""``retain_grad`` and hooks: gradients inside of a graph, kept or seen by functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from phlox_tensor import Backend, GradientError, Tensor
from phlox_tensor.arguments import require_callable

from ._checkpoint_strategies import Memo
from ._forward import Dual
from ._graph import Node, Pending, Plan, Primitive, accumulate, make_node, primitive

Hook = Callable[[Tensor[Any]], "Tensor[Any] | None"]


@final
class _Retained(Plan):
    """A step that changes nothing; its cotangent stays among the gradients of the pass."""

    __slots__ = ()
    name = "retain_grad"

    def push(self, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
        """Pass the cotangent on, and leave it."""
        del memo
        pending[node] = cotangent
        _pass_on(node, cotangent, pending)


@final
class _Hooked(Plan):
    """A step that changes nothing forwards; the cotangent goes through a function."""

    __slots__ = ()
    name = "register_hook"

    def push(self, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
        """Pass on what the function makes of the cotangent."""
        del memo
        (hook,) = node.saved
        out = hook(cotangent)
        if out is None:
            out = cotangent
        elif (
            not isinstance(out, Tensor)
            or out.shape != cotangent.shape
            or out.dtype is not cotangent.dtype
        ):
            raise GradientError(
                self.name,
                "the hook does not give a gradient",
                got=f"{out.shape} of {out.dtype}"
                if isinstance(out, Tensor)
                else type(out).__name__,
                expected=f"{cotangent.shape} of {cotangent.dtype}, or None to leave it as it is",
            )
        _pass_on(node, out, pending)


def _pass_on(node: Node, cotangent: Any, pending: Pending) -> None:
    for parent in node.parents:
        if parent is not None:
            accumulate(pending, parent, cotangent)


_RETAINED: Final = _Retained()
_HOOKED: Final = _Hooked()


def retain_grad(x: Tensor[Any]) -> Tensor[Any]:
    """Return the tensor as one whose gradient a backward pass keeps, though it is no leaf.

    What is computed from the result counts, so go on with it: ``h = retain_grad(h)``, then
    ``h.grad(grads)``. The tensor that was given does not change: without the result nothing is
    kept.

    Raises:
        GradientError: for a tensor to which no gradient flows.

    Example:
        >>> import phlox_tensor as pt
        >>> from phlox_autodiff import Autodiff
        >>> w = pt.asarray([1.0, 2.0], device=Autodiff("numpy")).require_grad()
        >>> h = retain_grad(w * w)
        >>> h.grad((h * 3.0).sum().backward()).tolist()
        [3.0, 3.0]
    """
    return _with_step(x, _RETAINED, ())


def register_hook(x: Tensor[Any], hook: Hook) -> Tensor[Any]:
    """Return the tensor as one whose gradient goes through ``hook`` on its way back.

    The hook sees the gradient of all that is computed from the result, once in a pass, and gives
    another one of its shape, or None to leave it as it is. The tensor that was given does not
    change and has no hook: go on with the result, ``h = register_hook(h, hook)``, or without it
    where there is to be no hook any more.

    Raises:
        GradientError: for a tensor to which no gradient flows; from the backward pass, for a hook
            that does not give a gradient.

    Example:
        >>> import phlox_tensor as pt
        >>> from phlox_autodiff import grad
        >>> half = lambda x: register_hook(x * x, lambda g: g * 0.5)
        >>> grad(lambda x: half(x).sum())(pt.asarray([1.0, 3.0])).tolist()
        [1.0, 3.0]
    """
    require_callable("register_hook", hook, "px.register_hook(x, lambda g: g * 2)")
    return _with_step(x, _HOOKED, (hook,))


def _with_step(x: Tensor[Any], plan: Plan, saved: tuple[Any, ...]) -> Tensor[Any]:
    """The tensor behind a step that changes nothing, on the outermost device that records it.

    Forwards there is no gradient on its way: what moves there alone is as it was.
    """
    device: Backend = x.device
    if type(x.primitive) is not Primitive:
        if type(x.primitive) is Dual:
            return _behind(x, plan, saved)
        if device.inner is None or not x.requires_grad:
            raise _untracked(plan)
        return _with_step(x.inner(), plan, saved).to_device(device)
    node = x.primitive.node
    if node is None:
        raise _untracked(plan)
    made = make_node(plan, (node,), saved, x.shape)
    return Tensor(primitive(x.primitive.value, made, getattr(x.primitive, "recipe", None)), device)


def _behind(x: Tensor[Any], plan: Plan, saved: tuple[Any, ...]) -> Tensor[Any]:
    """The same for a tensor with a tangent, whose own history the device inside has."""
    device: Backend = x.device
    value, tangent = x.primitive.value, x.primitive.tangent
    inner = device.inner
    assert inner is not None
    if inner.is_tracked(value):
        value = _with_step(Tensor(value, inner), plan, saved).primitive
    elif tangent is None:
        raise _untracked(plan)
    return Tensor(Dual(value, tangent), device)


def _untracked(plan: Plan) -> GradientError:
    return GradientError(
        plan.name,
        "no gradient flows to the tensor",
        got="a constant",
        expected="a leaf, or a result that was recorded",
        hint="w = w.require_grad() before what is computed from it",
    )
