"""The rule for one tensor: what the author of an optimizer writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from phlox_tensor import DType, Float, ShapeError, Tensor

State = Any
"""A tree of dicts with text keys, lists and tuples that holds tensors and plain values, or None."""


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
            state: what the last step returned, on that device too; None at first. Dicts with text
                keys, lists and tuples, however nested, of tensors, numbers, text and None.
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
        the gradients, and what the states have at one place are of one element type each; the
        states have the same structure and equal numbers, and so must those that are returned.
        """
        pairs = [self.step(lr, *each) for each in zip(tensors, grads, states, strict=True)]
        for tensor, (value, _) in zip(tensors, pairs, strict=True):
            if value.shape != tensor.shape:
                raise misfit("the new value", value.shape, tensor.shape)
        return [value for value, _ in pairs], [state for _, state in pairs]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, vars(self).values()))})"


def primitives(tensors: Sequence[Tensor[Float]], dtype: DType) -> tuple[Any, ...]:
    """What an op over lists takes: the primitives of tensors of one element type, in ``dtype``."""
    if tensors and tensors[0].dtype is not dtype:
        tensors = [t.astype(dtype) for t in tensors]
    return tuple([t.primitive for t in tensors])


def misfit(what: str, got: tuple[int, ...], expected: tuple[int, ...]) -> ShapeError:
    """The error of a shape that is not the parameter's."""
    return ShapeError("step", f"{what} does not fit the parameter", got=got, expected=expected)
