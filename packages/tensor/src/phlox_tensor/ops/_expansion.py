"""What expansions of elementwise ops have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from .._values.dtype import float32
from .._values.tensor import Tensor

Formula = Callable[..., Any]
# How a part of an expansion becomes one kernel; what makes kernels imports ops, and puts it here.
PART_AS: Final[list[Callable[[str, Formula], Formula]]] = []


def one_kernel(part: Formula) -> Formula:
    """Run a function of elements inside of an expansion as one kernel, where a device has them.

    Decorators see its ops: derivatives share what these compute.
    """
    made: list[Formula] = []

    @wraps(part)
    def run(like: Tensor[Any], *others: Any) -> Any:
        args = (like, *others)
        if like.device.inner is not None:
            return part(*args)
        if not made:
            made.append(PART_AS[0](part.__name__.strip("_"), part))
        return made[0](*args)

    return run


def of_tensors(formula: Formula) -> Formula:
    """Give numbers to a formula as 0-d tensors of the type of the tensors beside them."""

    @wraps(formula)
    def run(*operands: Any) -> Any:
        like = next(x for x in operands if isinstance(x, Tensor))
        return formula(*[x if isinstance(x, Tensor) else _filled(x, like) for x in operands])

    return run


def in_float32(formula: Formula) -> Formula:
    """Compute a formula of narrow floats in float32; numbers come as 0-d tensors too."""

    @of_tensors
    @wraps(formula)
    def run(*operands: Any) -> Any:
        dtype = operands[0].dtype
        wide = [x.to_full_precision() for x in operands]
        return formula(*wide).astype(dtype)

    return run


def widely(formula: Formula) -> Formula:
    """Compute a formula of tensors and attributes in float32, where tensors are narrower."""

    @wraps(formula)
    def run(*given: Any) -> Any:
        dtype, *others = {x.dtype: None for x in given if isinstance(x, Tensor)}
        if not others and dtype.kind == "Float" and dtype.itemsize >= float32.itemsize:
            return formula(*given)
        out = formula(*[x.to_full_precision() if isinstance(x, Tensor) else x for x in given])
        if isinstance(out, tuple):
            return tuple(each.astype(dtype) for each in out)
        return out.astype(dtype)

    return run


def _filled(value: float, like: Tensor[Any]) -> Tensor[Any]:
    return Tensor(like.device.ops.full((), value, like.dtype), like.device)
