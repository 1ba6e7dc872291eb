"""What an optimizer is, and the adaptor that makes one for modules out of one for tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any, Protocol, TypeVar, final

from phlox_nn import Module, Param
from phlox_record import Keyed, Record
from phlox_tensor import ArgumentError, Backend, DType, Float, RecordError, ShapeError, Tensor

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

    def step_list(
        self,
        lr: float,
        tensors: Sequence[Tensor[Float]],
        grads: Sequence[Tensor[Float]],
        states: Sequence[State],
    ) -> tuple[list[Tensor[Float]], list[State]]:
        """Return many tensors after a step, and their states: by default one after the other.

        For rules that are cheaper for many tensors in one go. The tensors and gradients are on
        one device and of one element type; the states have the same names and equal numbers.
        """
        pairs = [self.step(lr, *each) for each in zip(tensors, grads, states, strict=True)]
        return [tensor for tensor, _ in pairs], [state for _, state in pairs]


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


# One parameter in a step: itself, its value on the inner device, its gradient, its state.
_Turn = tuple[Param, Tensor[Float], Tensor[Float], State]


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
        pairs = [(p, g) for p in _trainable(module) if (g := _gradient(p, grads)) is not None]
        if self._clipping is not None:
            clipped = self._clipping.clip([grad for _, grad in pairs])
            pairs = [(param, grad) for (param, _), grad in zip(pairs, clipped, strict=True)]
        new: dict[str, Param] = {}
        for group in self._groups(pairs).values():
            new |= self._update(lr, group)
        return module.with_params(new)

    def _groups(self, pairs: list[tuple[Param, Tensor[Float]]]) -> dict[Any, list[_Turn]]:
        """What may step together, by device, element types, and what the states have in common."""
        groups: dict[Any, list[_Turn]] = {}
        with self._lock:
            states = [self._states.get(param.id) for param, _ in pairs]
        for (param, grad), state in zip(pairs, states, strict=True):
            _same_shape(grad, param, "a gradient")
            value = param.value
            tensor = value.inner() if param.device.records else value
            device = tensor.device
            here = _to_device(state, device)
            turn = param, tensor, grad.to_device(device), here
            key = device, param.dtype, grad.dtype, _numbers(here)
            groups.setdefault(key, []).append(turn)
        return groups

    def _update(self, lr: float, group: list[_Turn]) -> dict[str, Param]:
        """Step the parameters of one group and return them by id."""
        _, tensors, grads, states = zip(*group, strict=True)
        values, after = self._rule.step_list(lr, tensors, grads, states)
        new: dict[str, Param] = {}
        for (param, tensor, _, _), value in zip(group, values, strict=True):
            _same_shape(value, param, "the new value")
            alike = value.device is tensor.device and value.dtype is param.dtype
            if alike and param.device.records:
                new[param.id] = param.with_inner(value)
            else:
                new[param.id] = param.with_value(value.to_device(param.device))
        with self._lock:
            self._states.update(zip(new, after, strict=True))
        return new

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
    return list({p.id: p for p in module.param_list() if p.trainable}.values())


def primitives(tensors: Iterable[Tensor[Float]], dtype: DType) -> tuple[Any, ...]:
    """What an op over lists takes: the primitives, in one element type."""
    return tuple([t.primitive if t.dtype is dtype else t.astype(dtype).primitive for t in tensors])


def _gradient(param: Param, grads: Gradients | dict[str, Tensor[Float]]) -> Tensor[Float] | None:
    if isinstance(grads, dict):
        by_id: dict[str, Tensor[Float]] = grads
        return by_id.get(param.id)
    leaf: Any = param.value if param.is_initialized else None
    return None if leaf is None else grads.get(leaf)


def _same_shape(got: Tensor[Float], like: Param, what: str) -> None:
    if got.shape != like.shape:
        raise ShapeError(
            "step", f"{what} does not fit the parameter", got=got.shape, expected=like.shape
        )


def _to_device(state: State, device: Backend) -> State:
    """States loaded from a file may lie elsewhere than the parameter."""
    if state is None:
        return None
    for item in state.values():
        if isinstance(item, Tensor) and item.device is not device:
            return {
                key: each.to_device(device) if isinstance(each, Tensor) else each
                for key, each in state.items()
            }
    return state


def _numbers(state: State) -> Any:
    """What a state says apart from its tensors."""
    if state is None:
        return None
    return tuple([(key, None if isinstance(item, Tensor) else item) for key, item in state.items()])
