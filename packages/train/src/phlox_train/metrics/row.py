"""Bases of metrics: settings as fields, what a batch leaves, and how that is merged."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import field
from inspect import get_annotations
from typing import Any, ClassVar, Literal, Never, TypeAlias

import numpy as np
from numpy.typing import NDArray

from phlox_nn import Config
from phlox_tensor import ArgumentError, ShapeError, Tensor, asarray

from .metric import Better, State, read

Merge: TypeAlias = Literal["sum", "keep", "moments"]
Parts: TypeAlias = Mapping[str, Any]
Each: TypeAlias = "Tensor[Any] | tuple[Tensor[Any], Tensor[Any]]"  # values, and their weights
Value: TypeAlias = "float | NDArray[Any]"


class Row(Config):
    """Base of metrics. Its settings are its fields; all metrics have these two, by name.

    ``part`` makes a batch small on its device; ``tally`` turns that into a state on the host, in
    wide numbers; ``join`` puts states together in any order; ``value`` says what a state means.

    Attributes:
        name: what it is called in logs: its class in small letters, ``"f_beta"``.
        takes: the outputs of a step that it is given, in this order.
    """

    name: str = field(default="", kw_only=True)
    takes: tuple[str, ...] = field(default=(), kw_only=True)

    direction: ClassVar[Better] = "none"
    merges: ClassVar[Merge] = "sum"  # how states are put together
    texts: ClassVar[bool] = False  # whether it takes lists of strings

    def __init_subclass__(
        cls, *, takes: tuple[str, ...] = (), better: Better | None = None, **options: Any
    ) -> None:
        """Give a row its name, what it takes, and which values are better."""
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__)
        own: dict[str, Any] = {"name": "str"}
        cls.name = field(default=words.lower(), kw_only=True)
        if takes:
            own["takes"] = "tuple[str, ...]"
            cls.takes = field(default=takes, kw_only=True)
        if better is not None:
            cls.direction = better
        cls.__annotations__ = {**get_annotations(cls), **own}
        super().__init_subclass__(**options)

    @property
    def better(self) -> Better:
        """Which values are better; of an array by class none is."""
        by_class = getattr(self, "average", "macro") is None
        return "none" if by_class and getattr(self, "task", None) != "binary" else self.direction

    def state(self, *given: Any) -> State:
        """Return the state of one batch, as a step would give it; arrays will do."""
        if len(given) != len(self.takes):
            self.fail("other arguments", f"{len(given)} of them", ", ".join(self.takes))
        as_they_are = (Tensor, list, tuple, str) if self.texts else (Tensor,)
        taken = [x if isinstance(x, as_they_are) else asarray(x) for x in given]
        return self.merge(None, read(self.part(*taken)))

    def __call__(self, *given: Any) -> Any:
        """Return the value for only these, as a step would give them; arrays will do."""
        return self.value(self.state(*given))

    @abstractmethod
    def part(self, *given: Any, **named: Any) -> Parts:
        """Return what is kept of a batch: on the device, without reading."""

    @abstractmethod
    def tally(self, part: State) -> Mapping[str, Any]:
        """Return the state of one batch, from what was read of it."""

    def merge(self, state: State | None, part: State) -> State:
        """Return the state after a part; None before the first one."""
        new = {name: np.asarray(array) for name, array in self.tally(part).items()}
        return new if state is None else self.join(state, new)

    def join(self, old: State, new: State) -> State:
        """Return two states as one."""
        return {name: np.asarray(array) for name, array in self._joined(old, new).items()}

    def _joined(self, old: State, new: State) -> Mapping[str, Any]:
        """Return the sums of both, or for ``merges = "keep"`` their rows."""
        if self.merges == "keep":
            return {name: np.concatenate([old[name], new[name]]) for name in new}
        return {name: old[name] + new[name] for name in new}

    @abstractmethod
    def value(self, state: State) -> Value:
        """Return what a state means; NaN where it means nothing, as without examples."""

    def fail(self, what: str, got: object, expected: object, hint: str | None = None) -> Never:
        """Raise the error of a wrong input."""
        raise ArgumentError(type(self).__name__, what, got=got, expected=expected, hint=hint)

    def same_shapes(self, **given: Tensor[Any]) -> None:
        """Refuse tensors of several shapes.

        Raises:
            ShapeError: that shows them.
        """
        shapes = {name: tuple(x.shape) for name, x in given.items()}
        if len({*shapes.values()}) > 1:
            (first, shape), (second, other) = [*shapes.items()][:2]
            flat = int(np.prod(shape)) == int(np.prod(other))
            raise ShapeError(
                type(self).__name__,
                "shapes differ",
                got=", ".join(f"{name} {shape}" for name, shape in shapes.items()),
                expected="one shape",
                hint=f"{first}.reshape({second}.shape)" if flat else None,
            )

    def numbers(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Return values in float64; NaN among them would be taken for a number.

        Raises:
            ArgumentError: where there is one.
        """
        wide = np.asarray(values, np.float64)
        if np.isnan(wide).any():
            self.fail(f"{name} are not numbers", "nan", "numbers", "px.detect_nan() finds its op")
        return wide


class Mean(Row):
    """Base of means: a row says what each example, or each element, counts."""

    @abstractmethod
    def _each(self, *given: Any, **named: Any) -> Each:
        """Return values, or values and their weights of one shape."""

    def part(self, *given: Any) -> Parts:
        """Return values and weights."""
        found = self._each(*given)
        if isinstance(found, tuple):
            return {"values": found[0], "weights": found[1]}
        return {"values": found}

    def tally(self, part: State) -> Mapping[str, Any]:
        """Return the weighted sum and the weight."""
        values = np.asarray(part["values"], np.float64)
        weights = np.asarray(part.get("weights", np.ones(values.shape)), np.float64)
        counted = weights != 0  # others may be nan
        return {"sum": np.sum(values * weights, where=counted), "weight": np.sum(weights)}

    def value(self, state: State) -> float:
        """Return the mean."""
        return float(self._final(divided(state["sum"], state["weight"], np.nan)))

    def _final(self, mean: NDArray[Any]) -> Any:
        """Return what a mean means."""
        return mean


def floats(x: Tensor[Any]) -> Tensor[Any]:
    """Return numbers of any kind as floats that are wide enough for sums."""
    return x.to_full_precision() if x.dtype.kind == "Float" else x.astype(x.device.default_float)


def divided(over: Any, under: Any, otherwise: float = 0.0) -> NDArray[Any]:
    """Return a quotient in float64; another number where it would divide by 0."""
    over, under = np.broadcast_arrays(np.asarray(over, np.float64), np.asarray(under, np.float64))
    return np.divide(over, under, out=np.full(over.shape, otherwise), where=under != 0)
