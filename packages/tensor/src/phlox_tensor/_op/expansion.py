"""How the formula of an op runs as an entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._errors.called import OF_ARGUMENTS, rename
from .._values.number import Scalar
from .._values.tensor import Tensor

if TYPE_CHECKING:
    from .._device.backend import Backend
    from .._device.table import Entry
    from .declaration import Op


def expansion(op: Op, backend: Backend) -> Entry:
    """Make an entry out of the formula of an op, on the ops of ``backend``."""
    formula = op.expand
    assert formula is not None
    operands = op.signature.operands
    count = len(operands)
    several = op.signature.several

    def tensor(item: Any) -> Any:
        weak = item is None or isinstance(item, Scalar)
        return item if weak else Tensor(item, backend)

    def run(*args: Any) -> Any:
        tensors = [
            [tensor(each) for each in arg] if operand.variadic else tensor(arg)
            for operand, arg in zip(operands, args, strict=False)
        ]
        given = tensors or [backend]  # without operands the formula asks where
        try:
            out = formula(*given, *args[count:])
        except OF_ARGUMENTS as error:
            rename(error, op.name)
            raise
        return tuple(t.primitive for t in out) if several else out.primitive

    return run
