"""Calls whose operands lie on a decorator, on the device inside of it, and as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from .._call.dispatch import call_by_signature
from .._call.fast import binary, ternary, unary
from .._decorators.profile import Profile
from .._device.backend import Backend
from .._op.declaration import Op
from ._samples import Sample


def outside(backend: Backend) -> Backend:
    """The device itself where it is a decorator, else one around it."""
    return backend if backend.inner is not None else Profile(backend)


def apart_samples(op: Op, drawn: Sequence[Sample]) -> Iterator[tuple[str, Sample]]:
    """A sample for each way in which operands can lie, with a letter for each operand.

    i is the device inside, o the decorator, n a number, which stands in the sample.
    """
    whole = (s for s in drawn if all(_is_plain(o) for o in s.operands))
    sample = next(whole, None)
    if sample is None or len(sample.operands) < 2:
        return
    for lies in _ways(op, sample):
        operands = [
            x.reshape(-1)[0].item() if letter == "n" else x
            for letter, x in zip(lies, sample.operands, strict=True)
        ]
        yield lies, Sample(tuple(operands), sample.attributes)


def called_short(op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Call an op as its function does: by the short path where its entry may check operands."""
    shorts: dict[int, Any] = {1: unary, 2: binary, 3: ternary}
    short = shorts.get(len(operands))
    if short is None or not op.op_class.checking or op.signature.attributes:
        return call_by_signature(op, tuple(operands), attributes)
    return short(op, *operands)


def _is_plain(operand: Any) -> bool:
    return operand is None or (isinstance(operand, np.ndarray) and operand.size > 0)


def _ways(op: Op, sample: Sample) -> Iterator[str]:
    """All for ops that take numbers; for others one operand at a time on the decorator."""
    count = len(sample.operands)
    if not op.op_class.takes_numbers:
        for at, operand in enumerate(sample.operands):
            if operand is not None:
                yield "i" * at + "o" + "i" * (count - 1 - at)
        return
    kinds = [operand.kind for operand in op.signature.operands]
    for letters in product("ion", repeat=count):
        arrays = [kind for kind, letter in zip(kinds, letters, strict=True) if letter != "n"]
        if "o" in letters and {*kinds} == {*arrays}:  # beside a number of its kind is a tensor
            yield "".join(letters)
