"""What an optimizer is, and the adaptor that makes one for modules out of one for tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple, Protocol, TypeVar, final

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

        Raises:
            ShapeError: when a tensor after a step does not have the shape of the one before.

        For rules that are cheaper for many tensors in one go. All are on one device. The tensors,
        the gradients, and what the states have under one name are of one element type each; the
        states have the same names and equal numbers, and so must those that are returned.
        """
        pairs = [self.step(lr, *each) for each in zip(tensors, grads, states, strict=True)]
        for tensor, (value, _) in zip(tensors, pairs, strict=True):
            if value.shape != tensor.shape:
                raise _misfit("the new value", value.shape, tensor.shape)
        return [value for value, _ in pairs], [state for _, state in pairs]


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


class _Group(NamedTuple):
    """Parameters that step together: of one device, with states that differ in tensors alone."""

    params: list[Param]
    tensors: list[Tensor[Float]]  # the values on the inner device
    states: list[State]
    fits: list[tuple[Backend, DType, tuple[int, ...]]]  # device, type and shape of each gradient


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
        # The group that the last step left: where all parameters are of it, the next need not ask.
        self._last: _Group | None = None
        self._lock = Lock()

    def step(self, lr: float, module: M, grads: Gradients | dict[str, Tensor[Float]]) -> M:
        """Return the module after a step; parameters without a gradient stay as they are.

        Raises:
            ShapeError: when a gradient does not have the shape of its parameter.
        """
        params, found = _with_gradients(module, grads)
        if self._clipping is not None:
            found = self._clipping.clip(found)
        last = self._last
        if (
            last is not None
            and params == last.params
            and last.fits == [(g.device, g.dtype, g.shape) for g in found]
        ):
            groups = [(last, found)]
        else:
            groups = self._groups(params, found)
        new: dict[str, Param] = {}
        for group, each in groups:
            last = self._update(lr, group, each)
            for param in last.params:
                new[param.id] = param
        self._last = last if len(groups) == 1 else None
        return module.with_params(new)

    def _groups(
        self, params: list[Param], grads: list[Tensor[Float]]
    ) -> list[tuple[_Group, list[Tensor[Float]]]]:
        """What may step together, by device, element types, and what the states have in common."""
        groups: dict[Any, tuple[_Group, list[Tensor[Float]]]] = {}
        with self._lock:
            states = [self._states.get(param.id) for param in params]
        for param, grad, state in zip(params, grads, states, strict=True):
            if grad.shape != param.shape:
                raise _misfit("a gradient", grad.shape, param.shape)
            tensor = param.value.inner() if param.device.records else param.value
            device = tensor.device
            here, alike = (None, None) if state is None else _brought(state, device)
            key = param.device, param.dtype, grad.dtype, alike
            group, found = groups.setdefault(key, (_Group([], [], [], []), []))
            group.params.append(param)
            group.tensors.append(tensor)
            group.states.append(here)
            group.fits.append((device, grad.dtype, grad.shape))
            found.append(grad.to_device(device))
        return list(groups.values())

    def _update(self, lr: float, group: _Group, grads: list[Tensor[Float]]) -> _Group:
        """Step the parameters of one group, and return the group as it is then."""
        params, tensors, states, fits = group
        values, states = self._rule.step_list(lr, tensors, grads, states)
        device, inner, dtype = params[0].device, tensors[0].device, params[0].dtype
        alike = {(v.device, v.dtype) for v in values} == {(inner, dtype)}
        if alike and device.records and dtype.kind == "Float":
            params = [p.with_inner(v) for p, v in zip(params, values, strict=True)]
        else:
            values = [v.to_device(device) for v in values]
            params = [p.with_value(v) for p, v in zip(params, values, strict=True)]
            values = [p.value.inner() if device.records else p.value for p in params]
        with self._lock:
            self._states.update(zip([p.id for p in params], states, strict=True))
        return _Group(params, values, states, fits)

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


def primitives(tensors: Sequence[Tensor[Float]], dtype: DType) -> tuple[Any, ...]:
    """What an op over lists takes: the primitives of tensors of one element type, in ``dtype``."""
    if tensors and tensors[0].dtype is not dtype:
        tensors = [t.astype(dtype) for t in tensors]
    return tuple([t.primitive for t in tensors])


def _with_gradients(
    module: Module, grads: Gradients | dict[str, Tensor[Float]]
) -> tuple[list[Param], list[Tensor[Float]]]:
    """The trained parameters that have a gradient, each once, and the gradients."""
    by_id: dict[str, Tensor[Float]] | None = grads if isinstance(grads, dict) else None
    by_leaf: Any = grads
    params: list[Param] = []
    found: list[Tensor[Float]] = []
    for param in {p.id: p for p in module.param_list() if p.trainable}.values():
        if by_id is not None:
            grad = by_id.get(param.id)
        else:
            grad = by_leaf.get(param.value) if param.is_initialized else None
        if grad is not None:
            params.append(param)
            found.append(grad)
    return params, found


def _misfit(what: str, got: tuple[int, ...], expected: tuple[int, ...]) -> ShapeError:
    return ShapeError("step", f"{what} does not fit the parameter", got=got, expected=expected)


def _brought(state: dict[str, Any], device: Backend) -> tuple[dict[str, Any], Any]:
    """A state on a device, and what it has to share with others that step with it.

    A state that was loaded from a file may lie elsewhere than its parameter.
    """
    alike: list[tuple[str, Any]] = []
    here = state
    for name, item in state.items():
        if isinstance(item, Tensor):
            alike.append((name, item.dtype))
            if item.device is not device:
                here = {**here, name: item.to_device(device)}
        else:
            alike.append((name, item))
    return here, tuple(alike)
