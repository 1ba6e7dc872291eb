"""What a metric is to loops: parts on the device, merged on the host, a value on request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import Tensor

# Small arrays by name, as a record holds them.
State: TypeAlias = dict[str, NDArray[Any]]
Better: TypeAlias = Literal["higher", "lower", "none"]


class Metric(Protocol):
    """A row: what it takes of a step's outputs, what it keeps of a batch, and what that means.

    The state is that of all batches together, whatever their order and sizes.
    """

    @property
    def name(self) -> str:
        """What it is called in logs."""
        ...

    @property
    def takes(self) -> tuple[str, ...]:
        """Which outputs of the step ``part`` is given."""
        ...

    @property
    def better(self) -> Better:
        """Which values are better."""
        ...

    @property
    def part(self) -> Callable[..., Mapping[str, Any]]:
        """A method that returns what is kept of a batch: on the device, without reading.

        Tensors by name, and what the host knows already.
        """
        ...

    def merge(self, state: State | None, part: State) -> State:
        """Return the state after a part; None before the first one."""
        ...

    def value(self, state: State) -> float | NDArray[Any]:
        """Return what a state means."""
        ...


def read(part: Mapping[str, Any]) -> State:
    """Return what is kept of a batch as arrays; a device is waited for."""
    return {k: x.numpy() if isinstance(x, Tensor) else np.asarray(x) for k, x in part.items()}
