"""How state changes: a forward in training proposes new values, and a step takes them over.

A proposal is kept in the graph of the layer's result, so that ``loss.backward()`` returns it with
the gradients. Where there is no graph, ``collect`` gathers proposals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, Literal, ParamSpec, TypeVar, final

from phlox_tensor import ArgumentError, Decorator, GradientError, Proposed, Tensor
from phlox_tensor.blocks import block
from phlox_tensor.capture import EAGER, MODES, depend_on

from ..param.param import Param
from ..parts import fields as _fields
from ..parts import walk as _walk
from .module import Module

M = TypeVar("M", bound="Module")
P = ParamSpec("P")
R = TypeVar("R")


@final
class Updates:
    """New values that were proposed for state, by parameter; ``a + b`` has those of both.

    A parameter takes the mean of its proposals, or, of whole numbers, the sum of their changes.
    """

    __slots__ = ("_proposed",)

    def __init__(self) -> None:
        """Start without any."""
        self._proposed: Final[dict[str, list[Tensor[Any]]]] = {}

    def add(self, param: Param, value: Tensor[Any]) -> None:
        """Add a proposal without its graph, taken out of ``Autodiff`` and, as a mean, ``vmap``."""
        value = value.detach()
        while isinstance(device := value.device, Decorator):
            if not (device.records or device.transient):
                break
            value = Tensor(device.outside(value.primitive), device.inner)
        self._proposed.setdefault(param.id, []).append(value)

    def get(self, param: Param) -> Tensor[Any] | None:
        """Return what was proposed for a parameter; None if nothing was.

        Several make their mean or, of whole numbers, the old value plus the sum of their changes.
        """
        values = self._proposed.get(param.id)
        return None if values is None else Proposed.joined(values, param.value.detach())

    def params(self, module: Module) -> dict[str, Param]:
        """Return by id those parameters of a module that get a new value, with that value."""
        new: dict[str, Param] = {}
        if not self._proposed:
            return new
        for param in _walk.by_id(module).values():
            value = self.get(param)
            if value is not None:
                new[param.id] = param.with_value(value.to_device(param.device))
        return new

    def map(self, function: Callable[[Tensor[Any]], Tensor[Any]]) -> Updates:
        """Return updates with ``function`` of each value, such as its mean over processes."""
        mapped = Updates()
        mapped._proposed.update({k: [function(v) for v in vs] for k, vs in self._proposed.items()})
        return mapped

    def apply(self, module: M, *, strict: bool = True) -> M:
        """Return the module with the new values.

        Args:
            module: the module whose forward proposed them.
            strict: raise for values of parameters that it lacks; else they are left out.

        Raises:
            ArgumentError: when ``strict``, and a value is for another module.
        """
        given: object = module
        if not isinstance(given, _fields.ModuleNode):
            got = type(given).__name__
            raise ArgumentError("apply", "not a module", got=got, hint="updates.apply(model)")
        known = _walk.by_id(module)
        unknown = sum(key not in known for key in self._proposed)
        if strict and unknown:
            raise ArgumentError(
                "apply",
                "updates are for state that the module lacks",
                got=f"{unknown} of {len(self)}, for {type(module).__name__}",
                expected="the module whose forward proposed them, or one that holds it",
                hint="updates.apply(module, strict=False) leaves the others out",
            )
        return module.with_params(self.params(module))

    def __add__(self, other: Updates) -> Updates:
        joined = Updates()
        for each in (self, other):
            for key, values in each._proposed.items():
                joined._proposed.setdefault(key, []).extend(values)
        return joined

    def __len__(self) -> int:
        return len(self._proposed)

    def __repr__(self) -> str:
        return f"Updates(of {len(self)} parameters)"


_collecting: ContextVar[Updates | None] = ContextVar("phlox_updates", default=None)
# A replay calls no ``propose``: inside of ``collect`` compiled functions run as they are written.
depend_on(lambda: None if _collecting.get() is None else EAGER, mode=True)


@block
def collect() -> Iterator[Updates]:
    """Gather in a ``with`` block what layers propose for their state; then no graph keeps it.

    >>> import phlox_nn as nn, phlox_tensor as pt
    >>> norm = nn.BatchNorm(1).with_training(True)
    >>> with nn.collect() as updates:
    ...     _ = norm(pt.full((4, 1), 2.0))
    >>> norm.running_mean.value.tolist(), updates.apply(norm).running_mean.value.tolist()
    ([0.0], [0.20000000298023224])
    """
    updates = Updates()
    MODES.change(1)  # compiled functions ask modes, such as this one, only while one is entered
    token = _collecting.set(updates)
    try:
        yield updates
    finally:
        _collecting.reset(token)
        MODES.change(-1)


def with_updates(function: Callable[P, R]) -> Callable[P, tuple[R, Updates]]:
    """Return a function that gives the result of ``function`` and what was proposed in the call."""

    @wraps(function, updated=())
    def run(*args: P.args, **kwargs: P.kwargs) -> tuple[R, Updates]:
        with collect() as updates:
            result = function(*args, **kwargs)
        return result, updates

    return run


def propose(result: Tensor[Any], param: Param, value: Tensor[Any]) -> Tensor[Any]:
    """Return ``result``, and propose ``value`` as the next value of ``param``, which is state.

    ``optimizer.step`` takes the value over, if its gradients come from a loss that was computed
    from the returned tensor: a layer must return that one, or the proposal never arrives. Several
    proposals make their mean; of whole numbers, which count, all changes are added.

    Raises:
        ArgumentError: when the parameter is no state, or shape or element type differ.
    """
    if param.role != "state" or (value.shape, value.dtype) != (param.shape, param.dtype):
        raise ArgumentError(
            "propose",
            "the parameter cannot take the value",
            got=f"{value.dtype}{list(value.shape)} for {param!r}",
            expected=f"{param.dtype}{list(param.shape)}, for state",
            hint=_hint(param, value),
        )
    updates = _collecting.get()
    if updates is not None:
        updates.add(param, value)
        return result
    return Tensor(result.device.propose(result.primitive, param.value, value), result.device)


def _hint(param: Param, value: Tensor[Any]) -> str:
    """What to type where a parameter cannot take a value."""
    if param.role != "state":
        return "nn.State(x) in the constructor"
    if value.shape == param.shape:
        return f"nn.propose(result, param, value.astype({param.dtype.name!r}))"
    return f"nn.State(px.zeros({value.shape})) in the constructor, or a value of {param.shape}"


def updates_of(module: Module, grads: Any) -> Updates:
    """Return what the forward of a module proposed for its state, which comes with its gradients.

    Args:
        module: the module whose forward proposed.
        grads: what ``loss.backward()`` or ``grad`` gave; a dict of gradients has no proposals.
    """
    updates = Updates()
    ask: Any
    if isinstance(grads, _fields.ModuleNode):
        given = {p.id: p.proposed for _, p in _walk.params(grads)}
        ask = lambda param: given.get(param.id)  # noqa: E731 - one of three
    elif hasattr(grads, "proposed"):
        ask = lambda param: grads.proposed(param.value) if param.is_initialized else None  # noqa: E731
    else:
        return updates
    for param in _walk.by_id(module).values():
        if param.role == "state" and (value := ask(param)) is not None:
            updates.add(param, value)
    return updates


def gradients_of(grads: Module, *, by: Literal["id", "path"] = "id") -> dict[str, Tensor[Any]]:
    """Return the gradients in the gradient of a module, by parameter id or by path.

    ``px.grad(loss)(model)`` is such a module, and so is ``loss.backward().of(model)``. Parameters
    without a gradient are left out.

    Raises:
        ArgumentError: for what is no module, such as ``loss.backward()`` itself.
        GradientError: for a module that holds weights, not gradients.
    """
    if not isinstance(grads, _fields.ModuleNode):
        raise ArgumentError(
            "gradients_of",
            "not the gradient of a module",
            got=type(grads).__name__,
            expected="what px.grad(loss)(model) gave",
            hint="nn.gradients_of(grads.of(model)) for grads = loss.backward()",
        )
    if by not in ("id", "path"):
        raise ArgumentError("gradients_of", "by", got=repr(by), expected="'id' or 'path'")
    trained = [(path, p) for path, p in _walk.params(grads) if p.trainable]
    weights = [path for path, p in trained if p.holds_value]
    if weights:
        raise GradientError(
            "gradients_of",
            "a module that holds weights was given for gradients",
            got=f"{type(grads).__name__} with its {weights[0]}",
            expected="what px.grad(loss)(model) gave",
            hint="grads = loss_of(model).backward()",
        )
    given = [(path, p) for path, p in trained if p.is_initialized]
    return {path if by == "path" else p.id: p.value for path, p in given}
