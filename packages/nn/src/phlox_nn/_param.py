"""A parameter: a tensor with an identity, made when it is first needed."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, final

from phlox_tensor import ArgumentError, Backend, DType, Float, Tensor

ID_BYTES: Final = 8


def new_id() -> str:
    """Return a fresh parameter id: 64 random bits in hexadecimal."""
    return secrets.token_hex(ID_BYTES)


@final
class Param:
    """A tensor with an id, by which optimizers and records find it again.

    The value may be lazy: shape, type and device are known, the numbers are made at the first
    use. ``trainable`` parameters are leaves with gradients on devices that record; the others
    (running statistics) are state, which ``assign`` may replace.

    Attributes:
        id: the identity; a record keeps it, ``map`` and devices do not change it.
        trainable: whether gradients are wanted.
    """

    __slots__ = ("_lock", "_make", "_value", "device", "dtype", "id", "shape", "trainable")

    def __init__(
        self, value: Tensor[Any], *, id: str | None = None, trainable: bool = True
    ) -> None:
        """Hold a tensor."""
        self.id: Final = id or new_id()
        self.trainable: Final = trainable
        self.shape: tuple[int, ...] = value.shape
        self.dtype: DType = value.dtype
        self.device: Backend = value.device
        self._make: Callable[[], Tensor[Any]] | None = None
        self._value: Tensor[Any] | None = as_leaf(value, trainable)
        self._lock = Lock()

    @classmethod
    def lazy(
        cls,
        make: Callable[[], Tensor[Any]],
        shape: tuple[int, ...],
        dtype: DType,
        device: Backend,
        *,
        id: str | None = None,
        trainable: bool = True,
    ) -> Param:
        """Return a parameter whose tensor ``make`` gives at the first use."""
        param = cls.__new__(cls)
        param.id = id or new_id()  # type: ignore[misc]
        param.trainable = trainable  # type: ignore[misc]
        param.shape, param.dtype, param.device = shape, dtype, device
        param._make, param._value, param._lock = make, None, Lock()
        return param

    @property
    def value(self) -> Tensor[Float]:
        """The tensor; a lazy one is made now.

        Raises:
            ArgumentError: when a lazy one turns out to be of another shape, type or device.
        """
        value = self._value
        if value is None:
            with self._lock:
                if self._value is None:
                    assert self._make is not None
                    self._value = as_leaf(self._promised(self._make()), self.trainable)
                    self._make = None
                value = self._value
        return value

    def _promised(self, value: Tensor[Any]) -> Tensor[Any]:
        got = (value.shape, value.dtype, value.device)
        if got != (self.shape, self.dtype, self.device):
            raise ArgumentError(
                "param",
                "the first values are not what was promised",
                got=f"{value.dtype}{list(value.shape)} on {value.device!r}",
                expected=f"{self.dtype}{list(self.shape)} on {self.device!r}",
            )
        return value

    @property
    def is_initialized(self) -> bool:
        """Whether the tensor exists already."""
        return self._value is not None

    def assign(self, value: Tensor[Any]) -> None:
        """Replace the value of a parameter that is state, such as a running mean.

        Raises:
            ArgumentError: when the parameter is trainable, or the shape differs.
        """
        if self.trainable or value.shape != self.shape:
            raise ArgumentError(
                "assign",
                "the parameter cannot take the value",
                got=f"{value.shape}, trainable={self.trainable}",
                expected=f"{self.shape}, trainable=False",
                hint="model.map(lambda path, param: ...)",
            )
        with self._lock:
            self._value, self._make = value, None

    def with_value(self, value: Tensor[Any]) -> Param:
        """Return a parameter of the same identity that holds ``value``."""
        return Param(value, id=self.id, trainable=self.trainable)

    def with_inner(self, value: Tensor[Any]) -> Param:
        """Return a parameter of the same identity that holds a value from the inner device.

        ``value`` has the shape and the element type of the parameter, which is a trainable Float on
        a device that records.
        """
        device, inner = self.device, value.device
        made = Param.__new__(Param)
        made.id, made.trainable = self.id, True  # type: ignore[misc]
        made.shape, made.dtype, made.device = self.shape, self.dtype, device
        made._make, made._lock = None, Lock()
        made._value = Tensor(device.leaf(inner.detach(value.primitive)), device)
        return made

    def with_trainable(self, trainable: bool) -> Param:
        """Return the parameter with gradients wanted or not; the values are shared."""
        if trainable == self.trainable:
            return self
        if self.is_initialized:
            return Param(self.value.detach(), id=self.id, trainable=trainable)
        lazy = lambda: self.value.detach()  # noqa: E731, PLW0108 - .value itself must wait
        return self._later(lazy, self.device, trainable)

    def to_device(self, device: Backend) -> Param:
        """Return the parameter on another device; a lazy one stays lazy."""
        if device is self.device:
            return self
        return self.moved(lambda value: value.to_device(device), device)

    def moved(self, move: Callable[[Tensor[Any]], Tensor[Any]], device: Backend) -> Param:
        """Return the parameter with ``move`` applied, now or, to a lazy one, when it is made."""
        if self.is_initialized:
            return self.with_value(move(self.value.detach()))
        return self._later(lambda: move(self.value.detach()), device, self.trainable)

    def _later(self, make: Callable[[], Tensor[Any]], device: Backend, trainable: bool) -> Param:
        return Param.lazy(make, self.shape, self.dtype, device, id=self.id, trainable=trainable)

    def __copy__(self) -> Param:
        """Return the parameter itself; state, which may change, as one of its own."""
        return self if self.trainable else self.moved(lambda value: value, self.device)

    def __deepcopy__(self, memo: dict[int, Any]) -> Param:
        return self.__copy__()

    def __reduce__(self) -> Any:
        raise TypeError("parameters are not pickled\nhint: model.save_file(path, recorder)")

    def __repr__(self) -> str:
        state = "" if self.trainable else ", trainable=False"
        return f"Param({self.dtype.name}{list(self.shape)}{state})"


def as_leaf(value: Tensor[Any], trainable: bool) -> Tensor[Any]:
    """Return the tensor as a leaf: gradients wanted where that is possible and asked for."""
    if not value.device.records or value.dtype.kind != "Float":
        return value
    value = value.detach()
    return value.require_grad() if trainable else value
