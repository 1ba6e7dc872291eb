"""A device that multiplies in a narrow float type and keeps everything else wide."""

from __future__ import annotations

from functools import partial
from typing import Any, final

from .._device.backend import Backend, Primitive
from .._device.table import Entry
from .._errors.classes import DTypeError
from .._op.declaration import Op
from .._values.dtype import DType, as_dtype, finfo, float32, float64
from .._values.primitives import each_primitive, on_primitives
from .base import Decorator


@final
class Mixed(Decorator):
    """Compute products and convolutions in a narrow type, and all other ops as they are.

    Float32 operands of the ops that multiply and add (those that declare their work: ``linear``,
    ``matmul``, ``conv2d``, ``attention``, steps of recurrent layers and their derivatives), also
    where another op is made of them (``einsum``, ``lstm``), are rounded to the narrow type, biases
    and residuals of such an op too. Sums are kept in float32 and rounded once to the narrow type;
    that number is given as float32. So ``ones(1, 301) @ ones(301, 1)`` is 300 in bfloat16, and
    what exceeds 65504 is infinite in float16. Parameters, norms, softmax, losses and optimizers
    stay in float32, so a model trains as it is. Float64 operands are left alone. What is no such
    op (``outer``, ``vecdot``) is computed as it is. Micikevicius et al., 2018.

    ``Autodiff(Mixed(device))`` rounds in the backward pass too. float16 reaches from 6e-8 to
    65504: scale the loss (``optim.LossScaling``); bfloat16 has the range of float32.

    Args:
        backend: the device to compute on, or its name.
        dtype: the narrow type, bfloat16 or float16.

    Raises:
        DTypeError: a type that is not narrow, or that the device lacks.

    Example:
        >>> from phlox_tensor import Mixed, Numpy, asarray
        >>> x = asarray([[1.0, 2.0**-9]], device=Mixed(Numpy(), "bfloat16"))
        >>> (x + x)[0, 1].item() == 2.0**-8, (1 + x @ x.mT - 1).dtype.name
        (True, 'float32')
    """

    name = "mixed"

    def __init__(self, backend: Backend | str, dtype: DType | str = "bfloat16") -> None:
        """Take the device to compute on and the type to multiply in."""
        narrow = self.dtype = as_dtype(dtype, "mixed")
        super().__init__(backend, narrow.name)
        if narrow.kind != "Float" or narrow.itemsize >= float32.itemsize:
            raise DTypeError(
                "mixed",
                "dtype is no narrow float",
                got=narrow.name,
                expected="bfloat16 or float16",
                hint=f'Mixed({self.inner!r}, "bfloat16")',
            )
        if narrow not in self.dtypes:
            raise DTypeError(
                "mixed",
                f"{self.inner!r} lacks the type",
                got=narrow.name,
                expected=", ".join(sorted(t.name for t in self.dtypes if t.kind == "Float")),
            )
        self.slack *= finfo(narrow).eps / finfo(float32).eps

    def decorate(self, op: Op, inside: Entry) -> Entry:
        """Return an entry that rounds float32 operands, for the ops that multiply and add."""
        if op.work is None:  # what it is made of is rounded, with a derivative and without
            return (self.expanded(op) if op.op_class.contracts else None) or inside
        count = len(op.signature.operands)
        narrow = partial(self._cast, float32, self.dtype)
        widen = partial(self._cast, self.dtype, float32)

        def run(*args: Any) -> Any:
            found = {self._inner.dtype_of(x) for x in each_primitive(args[:count])}
            if float32 not in found or float64 in found:
                return inside(*args)
            out = inside(*(on_primitives(narrow, x) for x in args[:count]), *args[count:])
            return tuple(map(widen, out)) if op.signature.several else widen(out)

        return run

    def _cast(self, source: DType, target: DType, primitive: Primitive) -> Primitive:
        """The primitive in ``target`` when it is in ``source``, else as it is."""
        if self._inner.dtype_of(primitive) != source:
            return primitive
        return self._inner.ops.cast(primitive, target)
