"""A device that runs every op on two backends and says where they differ."""

from __future__ import annotations

from math import prod, sqrt
from typing import Any, final

import numpy as np

from .._device.backend import Backend
from .._device.compare import disagreement, narrow_error
from .._device.finding import as_device
from .._device.table import Entry
from .._errors.classes import CompileError, DisagreementError
from .._op.declaration import Op
from .._recording.record import refuse
from .._values.cell import RECORDINGS, recording_here
from .._values.primitives import each_primitive, on_primitives
from .._values.tensor import Tensor
from .base import Decorator

Array = np.ndarray[Any, Any]


@final
class Checked(Decorator):
    """Compute on one device and compare every result with another one, within what ops declare.

    Both get the operands of the first, so that differences do not add up: the error names the op
    at which the devices part. Everything is read back, so this is slow; it is for finding a fault.
    ``Autodiff(Checked(a, b))`` checks the backward pass too.

    Args:
        backend: the device to compute on, or its name.
        reference: the device to compare with, which needs the same element types.

    Raises:
        DisagreementError: from an op, when the results differ by more than it declares.

    Example:
        >>> from phlox_tensor import Checked, Numpy, asarray
        >>> asarray([1.0, 2.0], device=Checked(Numpy(), Numpy())).exp().sum().item() > 10
        True
    """

    name = "checked"

    def __init__(self, backend: Backend | str, reference: Backend | str) -> None:
        """Take the device to compute on and the one to compare with."""
        self.reference = as_device(reference)
        super().__init__(backend, self.reference)

    def decorate(self, op: Op, inside: Entry) -> Entry | None:
        """Return an entry that runs on both devices and compares."""
        if op.derive is not None:
            return None  # its ops are compared, each as near as it promises
        other = self.reference.ops[op.name]
        count = len(op.signature.operands)

        def run(*args: Any) -> Any:
            if RECORDINGS.count and recording_here.get() is not None:
                refuse(self._not_replayed(op))
            out = inside(*args)
            moved = [*(on_primitives(self._move, x) for x in args[:count]), *args[count:]]
            want = other(*moved)
            pairs = zip(out, want, strict=True) if op.signature.several else ((out, want),)
            for i, (a, b) in enumerate(pairs):
                problem = self._differ(op, self._inner.read(a), self.reference.read(b), args)
                if problem is not None:
                    self._raise(op, f"result {i}: {problem}", args)
            return out

        return run

    def _not_replayed(self, op: Op) -> CompileError:
        return CompileError(
            op.name,
            "a compiled function compares nothing",
            got=repr(self),
            expected=f"{self._inner!r}",
            hint=f"x.to_device({self._inner!r}) for a compiled function, px.compile(f, check=True) "
            "to compare its replays with plain calls",
        )

    def _move(self, item: Any) -> Any:
        """A primitive, copied to the reference."""
        return self.reference.upload(self._inner.read(item), self._inner.dtype_of(item))

    def _differ(self, op: Op, got: Array, want: Array, args: tuple[Any, ...]) -> str | None:
        """How results differ, each allowed its own error."""
        slack = self._inner.slack + self.reference.slack
        scale = self._scale(got, self._operands(op, args))
        rounded = narrow_error(op)
        return disagreement(
            got,
            want,
            ulp=op.tested.ulp * slack,
            atol=op.tested.atol * slack * scale,
            rounded=None if rounded is None else (rounded + 1) * scale,  # the other one rounds too
            signed_zeros=op.tested.keeps_signs and self._inner.strict and self.reference.strict,
            denormals=self._inner.strict and self.reference.strict,
        )

    def _scale(self, got: Array, operands: list[Any]) -> float:
        """What the absolute error that an op declares for numbers near 1 grows with.

        Errors of a sum grow with its terms, and with the square root of their number.
        """
        arrays = [self._inner.read(p) for p in operands]
        floats = [a.astype(np.float64) for a in arrays if a.dtype.kind not in "iub" and a.size]
        with np.errstate(invalid="ignore"):
            largest = [float(np.nanmax(np.abs(a), initial=1.0)) for a in floats]
        terms = max([1.0, *(a.size / max(got.size, 1) for a in floats)])
        scale = prod(largest) * sqrt(terms)
        return scale if np.isfinite(scale) else 1.0

    def _operands(self, op: Op, args: tuple[Any, ...]) -> list[Any]:
        """The primitives among the arguments."""
        return each_primitive(args[: len(op.signature.operands)])

    def _raise(self, op: Op, problem: str, args: tuple[Any, ...]) -> None:
        operands = [Tensor(p, self._inner) for p in self._operands(op, args)]
        shown = ", ".join(f"{x.dtype}{list(x.shape)}" for x in operands) or "no operands"
        attributes = args[len(op.signature.operands) :]
        error = DisagreementError(
            op.name,
            f"{self._inner!r} and {self.reference!r} part at {shown}, attributes {attributes}",
            got=problem.partition(": got ")[2] or problem,
            expected=f"within {op.tested.ulp:g} ulp and {op.tested.atol:g} eps of each other",
            hint="error.operands has the operands: save them, and call the op on each device",
        )
        error.operands = tuple(operands)
        raise error
