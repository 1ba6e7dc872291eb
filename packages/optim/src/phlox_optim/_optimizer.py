"""What an optimizer is, and the adaptor that makes one for modules out of one for tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import Lock
from typing import Any, Protocol, TypeVar, final

from phlox_nn import Module, Param
from phlox_record import Keyed, Record
from phlox_tensor import ArgumentError, Float, RecordError, ShapeError, Tensor

from ._clipping import GradientClipping

State = dict[str, Any] | None
M = TypeVar("M", bound=Module)


class Gradients(Protocol):
    """What ``loss.backward()`` gives: a gradient by leaf."""

    def get(self, leaf: Any, /) -> Tensor[Float] | None:
        """Return the gradient of a leaf, or None."""
        ...


def require(name: str, holds: bool, got: object, expected: str) -> None:
    """Raise ArgumentError unless a setting ``holds``."""
    if not holds:
        raise ArgumentError("optimizer", f"{name} makes no sense", got=got, expected=expected)


class SimpleOptimizer(ABC):
    """The rule for one tensor; an author of an optimizer writes ``step`` and nothing else."""

    @abstractmethod
    def step(
        self, lr: float, tensor: Tensor[Float], grad: Tensor[Float], state: State
    ) -> tuple[Tensor[Float], State]:
        """Return the tensor after a step, and the state for the next.

        Args:
            lr: the learning rate.
            tensor: the parameter, without history.
            grad: its gradient, on the same device.
            state: what the last step returned, None at first: a dict of tensors and numbers.
        """


class Optimizer(ABC):
    """A rule for whole modules."""

    @abstractmethod
    def step(self, lr: float, module: M, grads: Gradients | dict[str, Tensor[Float]]) -> M:
        """Return the module after a step; parameters without a gradient stay as they are."""

    @abstractmethod
    def into_record(self) -> dict[str, Record]:
        """Return the state as a tree."""

    @abstractmethod
    def load_record(self, record: Record) -> Optimizer:
        """Return the optimizer with the state of a record."""


@final
class OptimizerAdaptor(Optimizer):
    """Applies a ``SimpleOptimizer`` to every parameter of a module that has a gradient.

    Gradients are found by parameter, given as ``loss.backward()`` gives them or as a dict by
    parameter id. The step runs on the backend inside a recording one; the new values become
    leaves again. States are kept by parameter id.
    """

    def __init__(self, rule: SimpleOptimizer, clipping: GradientClipping | None = None) -> None:
        """Wrap a rule for tensors."""
        self._rule = rule
        self._clipping = clipping
        self._states: dict[str, State] = {}
        self._lock = Lock()

    def step(self, lr: float, module: M, grads: Gradients | dict[str, Tensor[Float]]) -> M:
        """Return the module after a step; parameters without a gradient stay as they are.

        Raises:
            ShapeError: when a gradient does not have the shape of its parameter.
        """
        found = {p.id: g for p in _trainable(module) if (g := _gradient(p, grads)) is not None}
        if self._clipping is not None:
            found = dict(zip(found, self._clipping.clip(list(found.values())), strict=True))

        def update(path: str, param: Param) -> Param:
            del path
            grad = found.get(param.id)
            return param if grad is None else self._update(lr, param, grad)

        return module.map(update)

    def _update(self, lr: float, param: Param, grad: Tensor[Float]) -> Param:
        value = param.value
        tensor = value.inner() if param.device.records else value
        with self._lock:
            state = self._states.get(param.id)
        state = _to_device(state, tensor)
        _same_shape(grad, tensor, "a gradient")
        new, state = self._rule.step(lr, tensor, grad.to_device(tensor.device), state)
        _same_shape(new, tensor, "the new value")
        with self._lock:
            self._states[param.id] = state
        return param.with_value(new.to_device(param.device))

    def into_record(self) -> dict[str, Record]:
        """Return the states by parameter id; the tensors are shared, not copied."""
        with self._lock:
            states = {key: dict(s) for key, s in self._states.items() if s is not None}
        return {"rule": type(self._rule).__name__, "states": Keyed(states)}

    def load_record(self, record: Record) -> OptimizerAdaptor:
        """Return the optimizer with the states of a record.

        Raises:
            RecordError: when the record is not one of an optimizer, or of one by another rule.
        """
        known = record if isinstance(record, dict) else {}
        states, rule = known.get("states"), known.get("rule")
        if not isinstance(states, dict) or not all(isinstance(s, dict) for s in states.values()):
            raise RecordError(
                "load_record",
                "not a record of an optimizer",
                got=type(record).__name__ if states is None else "states of another form",
                expected="what optimizer.into_record() gave",
            )
        if rule != type(self._rule).__name__:
            raise RecordError(
                "load_record",
                "the record is of another optimizer",
                got=rule,
                expected=type(self._rule).__name__,
            )
        made = OptimizerAdaptor(self._rule, self._clipping)
        made._states = {key: dict(s) for key, s in states.items() if isinstance(s, dict)}
        return made


def _trainable(module: Module) -> list[Param]:
    return list({p.id: p for p in module.params().values() if p.trainable}.values())


def _gradient(param: Param, grads: Gradients | dict[str, Tensor[Float]]) -> Tensor[Float] | None:
    if isinstance(grads, dict):
        by_id: dict[str, Tensor[Float]] = grads
        return by_id.get(param.id)
    leaf: Any = param.value if param.is_initialized else None
    return None if leaf is None else grads.get(leaf)


def _same_shape(got: Tensor[Float], like: Tensor[Float], what: str) -> None:
    if got.shape != like.shape:
        raise ShapeError(
            "step", f"{what} does not fit the parameter", got=got.shape, expected=like.shape
        )


def _to_device(state: State, like: Tensor[Float]) -> State:
    """States loaded from a file may lie elsewhere than the parameter."""
    if state is None:
        return None
    return {
        key: item.to_device(like.device) if isinstance(item, Tensor) else item
        for key, item in state.items()
    }
