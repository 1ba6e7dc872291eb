"""What an optimizer is: it takes a module and gradients and returns the next module."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from phlox_nn import Module
from phlox_record import Record
from phlox_tensor import Float, Tensor

M = TypeVar("M", bound=Module)


class Gradients(Protocol):
    """What ``loss.backward()`` gives: a gradient by leaf."""

    def get(self, leaf: Any, /) -> Tensor[Float] | None:
        """Return the gradient of a leaf, or None."""
        ...


AnyGradients: TypeAlias = "Gradients | Module | dict[str, Tensor[Float]]"


class Optimizer(ABC):
    """A rule for whole modules.

    An optimizer changes: ``step`` and ``load_record`` act on the object itself. Modules do not:
    ``step`` returns the next one.
    """

    @property
    @abstractmethod
    def skipped(self) -> int:
        """The number of steps that ``skip_nonfinite`` left out."""

    @abstractmethod
    def step(
        self,
        lr: float,
        module: M,
        grads: AnyGradients,
        *,
        strict: bool = True,
        skip_nonfinite: bool = False,
        divide_by: float = 1.0,
    ) -> M:
        """Return the module after a step; parameters without a gradient stay as they are.

        Args:
            lr: the learning rate.
            module: the module whose loss gave the gradients.
            grads: what ``loss.backward()`` returned, or a dict by parameter id.
            strict: whether a step that has no effect, or loses something, is an error.
            skip_nonfinite: leave the module and the optimizer as they are when a gradient has a
                NaN or an infinity, and count it in ``skipped``. Finding out reads from the device
                at each step.
            divide_by: what gradients are divided by before all else, such as the scale of the loss.
        """

    @abstractmethod
    def into_record(self) -> dict[str, Record]:
        """Return the state as a tree."""

    @abstractmethod
    def load_record(self, record: Record) -> Self:
        """Take over the state of a record, and return the optimizer itself."""
