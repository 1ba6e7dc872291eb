# The one subclass of the mixin is Tensor; checkers ask for a supertype of the mixin.
# pyright: reportGeneralTypeIssues=false
"""Members of Tensor that need ops, apart from the class, which ops import."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Generic, Never

from .._call.fast import binary
from .._data.transfer import to_device
from .._device.backend import Backend
from .._errors.keywords import missing_argument
from .._op.signature import REQUIRED
from .._values.dtype import DType, DTypeLike, as_dtype
from .._values.kinds import Float, Int, K
from .._values.printing import tensor_html, tensor_repr
from .._values.tensor import Tensor, refuse_stream, refused
from ..ops.binary import equal
from ..ops.reduction import any_
from ..ops.unary import cast
from .getitem import Index, getitem
from .indexing import At
from .info import check_version
from .standard import nonzero, quantile


class TensorMembers(Generic[K]):
    """Indexing, conversion and printing; ``install`` puts them on Tensor."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __array_namespace__(self: Tensor[K], *, api_version: str | None = None) -> Any:
        check_version(api_version)
        return sys.modules[__name__.partition(".")[0]]

    def __contains__(self: Tensor[K], value: Any) -> bool:
        return bool(any_(binary(equal, self, value)))

    def __getitem__(self: Tensor[K], index: Index) -> Tensor[K]:
        return getitem(self, index)

    def __repr__(self: Tensor[K]) -> str:
        return tensor_repr(self)

    def _repr_html_(self: Tensor[K]) -> str:
        return tensor_html(self)

    @property
    def at(self: Tensor[K]) -> At:
        """Functional updates: ``x.at[0].set(1)``, ``.add``, ``.multiply``, ``.min``, ``.max``."""
        return At(self)

    def nonzero(self: Tensor[K]) -> tuple[Tensor[Int], ...]:
        """Return where elements are not 0: for each axis a tensor of indices, row by row."""
        return nonzero(self)

    def quantile(
        self: Tensor[Float],
        q: float | Sequence[float] = 0.5,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        interpolation: str = "linear",
        **wrong: Never,
    ) -> Tensor[Float]:
        """Return what a part q of the elements is below; for several q on a new first axis."""
        return quantile(self, q, axis, keepdims, interpolation, **wrong)

    def to_device(self: Tensor[K], device: Backend | str, /, *, stream: None = None) -> Tensor[K]:
        """Return the tensor on another device.

        Raises:
            ArgumentError: for a stream; devices order their work themselves.
            DTypeError: when the device lacks the element type, or int64 does not fit a 32-bit one.
            GradientError: to another base device, for a tensor with a history.
        """
        if stream is not None:
            refuse_stream("to_device", stream)
        return self if device is self.device else to_device(self, device)

    def astype(
        self: Tensor[K],
        dtype: DTypeLike = REQUIRED,
        /,
        *more: Never,
        copy: bool = True,
        **wrong: Never,
    ) -> Tensor[Any]:
        """Return the elements in another type, of any kind.

        Floats are truncated to integers, nan gives 0, out of range saturates; integers wrap.
        """
        del copy  # tensors never change, so sharing is always right
        if wrong or more:
            raise refused("astype", wrong, more, ("copy",))
        if dtype is REQUIRED:
            raise missing_argument("astype", "dtype", ("x", "dtype"))
        wanted = dtype if type(dtype) is DType else as_dtype(dtype, "astype")
        return self if wanted is self.dtype else cast(self, wanted)
