"""The device without data: every op only says what it would give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn, final

import numpy as np

from .._call.dispatch import bound_arguments, prepared_call
from .._device.backend import Backend, MemoryUse
from .._device.finding import as_device, default_device, use_device
from .._device.table import Entry
from .._errors.classes import ArgumentError, DeviceError
from .._op.declaration import REGISTRY, Op, Shape, Spec, inferred_by
from .._values.dtype import DTYPES, DType, DTypeLike, as_dtype, default_dtype
from .._values.tensor import Tensor
from ..inference import infer_prepared

_ALL = tuple(sorted(DTYPES))


@final
class Meta(Backend):
    """Tensors with shape and element type but no data; nothing is computed or allocated.

    Any program runs on it, for the shapes it would give: a model of any size, its gradients on
    ``Autodiff(Meta())``. What needs a value does not: reading, and ops whose result has a size
    that only the values tell.

    Args:
        float: element type of new Float tensors.
        int: element type of new Int tensors.
        dtypes: the element types that it has; all by default.

    Example:
        >>> x = zeros((10**8, 100), device=Meta())
        >>> (x @ zeros((100, 10**8), device=Meta())).shape
        (100000000, 100000000)
    """

    name = "meta"
    has_data = False

    def __init__(
        self,
        float: DTypeLike = "float32",
        int: DTypeLike = "int64",
        dtypes: Iterable[DTypeLike] = _ALL,
    ) -> None:
        """Choose the element types."""
        self.default_float = default_dtype("float", float, "Meta")
        self.default_int = default_dtype("int", int, "Meta")
        self.dtypes = frozenset(as_dtype(d, "Meta") for d in dtypes)
        names = tuple(sorted(d.name for d in self.dtypes))
        self.settings = (self.default_float.name, self.default_int.name, names)

    def __repr__(self) -> str:
        defaults = {"float": "float32", "int": "int64", "dtypes": _ALL}
        given = zip(defaults, self.settings, strict=True)
        return f"Meta({', '.join(f'{k}={v!r}' for k, v in given if v != defaults[k])})"

    def shape_of(self, primitive: Spec, /) -> Shape:
        """Return the shape."""
        return primitive.shape

    def dtype_of(self, primitive: Spec, /) -> DType:
        """Return the element type."""
        return primitive.dtype

    def upload(self, array: np.ndarray[Any, Any], dtype: DType, /) -> Spec:
        """Take the shape of an array and leave its data."""
        return Spec(array.shape, dtype)

    def read(self, primitive: Spec, /) -> NoReturn:
        """Raise: there are no values.

        Raises:
            DeviceError: always.
        """
        raise DeviceError(
            "read",
            "the device has no values",
            got=f"a tensor of shape {primitive.shape} on {self!r}",
            expected="a device with data",
            hint="make inputs and model on Cpu() to get values; x.shape and x.dtype are known here",
        )

    def memory(self) -> MemoryUse:
        """Return that no bytes are held."""
        return MemoryUse(0, 0)

    def entry(self, name: str) -> Entry:
        """Return a function that says what the op would give."""
        op = REGISTRY[name]
        count = len(op.signature.operands)

        def run(*args: Any) -> Any:
            out = infer_prepared(op, args[:count], args[count:], self.default_int)
            for spec in out:
                if -1 in spec.shape:
                    self._raise_unknown(op)
            return out if op.signature.several else out[0]

        return run

    def _raise_unknown(self, op: Op) -> NoReturn:
        raise DeviceError(
            op.name,
            "the size of the result depends on values, which the device does not have",
            got=repr(self),
            expected="a device with data",
            hint="mask.where(x, 0) keeps the shape of x; or run this part on Cpu()",
        )


def infer(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], device: Any) -> Any:
    """Return what ``op`` would give; ``Op.infer`` says how."""
    operands, attributes = bound_arguments(op, args, kwargs)
    like = _device_of(operands) if device is None else as_device(device, op.name)
    meta = Meta(like.default_float, like.default_int, like.dtypes)
    with use_device(meta):  # where ops without operands make their result
        _, _, specs, values = prepared_call(
            op, tuple(_on_meta(x, meta) for x in operands), attributes
        )
    out = infer_prepared(op, specs, values, meta.default_int)
    return out if op.signature.several else out[0]


def _device_of(operands: Iterable[Any]) -> Backend:
    """The device of the first tensor, else the default."""
    for item in operands:
        if isinstance(item, Tensor):
            return item.device
        if isinstance(item, list | tuple) and not isinstance(item, Spec):
            for each in item:
                if isinstance(each, Tensor):
                    return each.device
    return default_device()


def _on_meta(item: Any, meta: Meta) -> Any:
    if isinstance(item, Spec):
        return Tensor(Spec(_sizes(item.shape), as_dtype(item.dtype, "infer")), meta)
    if isinstance(item, Tensor):
        return Tensor(Spec(item.shape, item.dtype), meta)
    return [_on_meta(x, meta) for x in item] if isinstance(item, list | tuple) else item


def _sizes(shape: Any) -> Shape:
    """The shape of a Spec that a user made."""
    listed = isinstance(shape, list | tuple)
    if not listed or not all(type(size) is int and size >= -1 for size in shape):
        raise ArgumentError(
            "infer",
            "a Spec has no shape",
            got=repr(shape),
            expected="sizes from 0, or -1 for one that only values tell",
            hint="Spec((2, 3), px.float32)",
        )
    return tuple(shape)


inferred_by(infer)
