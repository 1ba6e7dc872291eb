"""Values of the host as tensors of the source: numbers, lists, parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

import phlox_tensor as px

from ..._graph import Array
from ...run._growth import META
from ..graph._simplify import Forms
from . import _expr as e
from ._expr import FieldRef
from ._traced import Trace, Traced, TracedDevice, cases_of, source_of

# What a layer holds that is no weight.
STATE: Final = ("running_mean", "running_var")
LITERAL: Final = 16  # elements of a list in the source
_NARROW: Final = frozenset(("int16", "int8", "uint16", "uint64", "uint8"))


@final
@dataclass
class Field:
    """A field of the model: a layer, or one parameter.

    Attributes:
        kind: the class, of ``nn`` but for ``Param``.
        words: the names from the file that it may be called by, the best first.
    """

    kind: str
    settings: list[tuple[str, Any]]
    arrays: dict[str, tuple[Array, str]]
    words: tuple[str, ...]


@final
class Values:
    """Makes names of values; what is too large for the source is a field.

    Attributes:
        fields: what the model holds.
        keys: which field stands for what.
        owned: constants that are parameters of a layer, as they are in the file: field and path.
        constants: what the file brings.
        place: the device of the first input.
    """

    def __init__(self, trace: Trace, trained: set[str], forms: Forms) -> None:
        """Take which constants are trained, and their forms."""
        self.trace, self._trained, self._origins = trace, trained, forms.origins
        self._others = forms.turned | {v: k for k, v in forms.turned.items()}
        self.fields: list[Field] = []
        self.keys: dict[Any, int] = {}
        self.owned: dict[str, tuple[int, str]] = {}
        self.constants: dict[str, Array] = {}
        self._names: dict[int, str] = {}
        self.place: TracedDevice | None = None

    def tensor(self, value: Any) -> Any:
        """The name of a tensor for a value of the host."""
        if not isinstance(value, np.ndarray):
            return value
        if value.dtype == object:
            return self._of_sizes(value)
        specs = tuple(
            px.zeros(value.shape, dtype=px.as_dtype(value.dtype), device=META) for _ in "ab"
        )
        if value.size == 1 and value.dtype.kind in "biuf" and not self.is_trained_number(value):
            number = value.reshape(()).item()
            return Traced(self.trace, e.literal(number), specs, number)
        if value.size <= LITERAL and value.dtype.kind in "biu":
            return Traced(self.trace, self._filled(value), specs)
        name = self._names.get(id(value), "")
        other = self._others.get(name, "")
        if not self._has(name) and self._has(other):
            turned = e.member(e.member(self._held(self.constants[other]), "value"), "mT")
            return Traced(self.trace, turned, specs)
        return Traced(self.trace, e.member(self._held(value), "value"), specs)

    def is_trained_number(self, value: Array | None) -> bool:
        """Whether a constant of one element is a parameter."""
        one = value is not None and value.size == 1
        return one and self._names.get(id(value)) in self._trained

    def whole(self, value: Any) -> Any:
        """The same, where a number would not do."""
        name = self.tensor(value)
        if isinstance(name, Traced) and name.scalar is not None:
            assert name.specs is not None
            whole = np.full(name.specs[0].shape, name.scalar, name.dtype.numpy)
            return Traced(self.trace, self._filled(whole), name.specs)
        return name

    def _filled(self, value: Any) -> Any:
        device = {"device": self.device()}
        if value.dtype.name in _NARROW:  # where a device lacks these its own stand for them
            return e.call("px.asarray", [e.literal(value)], device)
        dtype = e.literal(px.as_dtype(value.dtype))
        if value.dtype == np.int64:
            dtype = e.member(self.device(), "default_int")
        return e.call("px.asarray", [e.literal(value.tolist())], {"dtype": dtype, **device})

    def _of_sizes(self, value: Any) -> Traced:
        items = value.tolist()
        specs = tuple(px.asarray(np.array(c), device=META) for c in cases_of(items))
        device = self.device()
        words = {"device": device}
        if specs[0].dtype.kind == "Int":
            words["dtype"] = e.member(device, "default_int")
        return Traced(self.trace, e.call("px.asarray", [source_of(items)], words), specs)

    def device(self) -> Any:
        """The device that new tensors belong on."""
        if self.place is None:
            return e.call("px.default_device", [])
        return self.place.expr

    def brought(self, constants: dict[str, Array]) -> None:
        """Note what a graph brings."""
        self.constants |= constants
        self._names |= {id(v): k for k, v in constants.items()}

    def named(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """What constants are called in the file."""
        return tuple(self._origins.get(name, name) for name in names)

    def own(self, layer: int, names: tuple[str, ...], arrays: dict[str, Array]) -> None:
        """Note which constants are weights of a layer."""
        paths = {id(array): path for path, array in arrays.items()}
        self.owned |= {name: (layer, paths[id(self.constants[name])]) for name in names}

    def is_taken(self, name: str) -> bool:
        """Whether another field has a constant, or its transposed."""
        return self._has(name) or self._has(self._others.get(name, ""))

    def _has(self, name: str) -> bool:
        return name in self.owned or ("", name) in self.keys

    def _held(self, value: Array) -> Any:
        """The parameter of a constant: of the layer that has it, or its own."""
        owner = self.owned.get(self._names.get(id(value), ""))
        if owner is None:
            return FieldRef(self._param(value))
        expr: Any = FieldRef(owner[0])
        for word in owner[1].split("."):
            expr = e.member(expr, word)
        return expr

    def _param(self, value: Array) -> int:
        name = self._names.get(id(value), "table")
        key = ("", name) if name != "table" else id(value)
        if key not in self.keys:
            role = "weight" if name in self._trained and value.dtype.kind == "f" else "state"
            settings = [("", value.shape), ("dtype", px.as_dtype(value.dtype))]
            words = (*self.named((name,)), "table")
            self.fields.append(Field("Param", settings, {"": (value, role)}, words))
            self.keys[key] = len(self.fields) - 1
        return self.keys[key]
