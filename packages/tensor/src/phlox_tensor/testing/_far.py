"""Operands far from 0, large, or led by an outlier: for ops that subtract a mean or a maximum."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from .._device.backend import Backend
from .._op.declaration import Op
from .._op.records import Case, IndexSample, case
from .._values.dtype import DType, finfo
from ._samples import Sample, drawn

Array = np.ndarray[Any, Any]
_OFFSETS: Final = (1e1, 1e2, 1e3, 1e4, 1e5, 1e6)
_LARGE: Final = 1e20  # whose square is beyond float32
_OUTLIERS: Final = (1e3, 1e4)
_ROWS: Final = (case((3, 1000), axis=1), case((300, 7), axis=0))
_GIVEN: Final = (case((3, 1000), (3, 1000), (1000,)), case((4, 65), (4, 65), None))
# Of ops that subtract a mean or a largest element, or add squares: cases whose x is moved.
FAR: Final[dict[str, tuple[Case, ...]]] = {
    **dict.fromkeys(("logsumexp", "mean", "std", "var"), (*_ROWS, case((4, 65), axis=None))),
    **dict.fromkeys(("log_softmax", "softmax"), (*_ROWS, case((4, 65), axis=1))),
    **dict.fromkeys(("quiet_softmax", "softmin", "var_mean"), _ROWS),
    **dict.fromkeys(("corrcoef", "cov"), (case((3, 200)), case((4, 65)))),
    **dict.fromkeys(("layer_norm_backward", "rms_norm_backward"), _GIVEN),
    "batch_norm_train": (case((400, 3), (3,), (3,)), case((2, 3, 20, 20), (3,), (3,))),
    "cross_entropy": (
        case((3, 1000), IndexSample((3,), 1000)),
        case((4, 7), IndexSample((4,), 7)),
    ),
    "cross_entropy_backward": (case((3,), (3, 1000), IndexSample((3,), 1000)),),
    "layer_norm": (case((3, 1000), (1000,), (1000,)), case((4, 65), None, None)),
    "rms_norm": (case((3, 1000), (1000,)), case((4, 65), None)),
}


def far_samples(op: Op, dtype: DType, backend: Backend) -> Iterator[tuple[str, float, Sample]]:
    """Samples with what is done to their operand x, and the size of its elements where large."""
    rng = np.random.default_rng(zlib.crc32(f"{op.name}/{dtype}/far".encode()))
    place = next(i for i, operand in enumerate(op.signature.operands) if operand.name == "x")
    for each in FAR[op.name]:
        sample = drawn(op, each, dtype, backend, rng)
        wide = sample.operands[place].astype(np.float64)
        for what, size, values in _moved(wide):
            if np.abs(values).max() < float(finfo(dtype).max):
                operands = list(sample.operands)
                operands[place] = values.astype(dtype.numpy)
                yield what, size, Sample(tuple(operands), sample.attributes)


def _moved(x: Array) -> Iterator[tuple[str, float, Array]]:
    for offset in _OFFSETS:
        yield f"x far from 0 by {offset:g}", 1.0, x + offset
    yield f"x times {_LARGE:g}", _LARGE, x * _LARGE
    for value in _OUTLIERS:
        led = x.copy()
        led.reshape(-1)[0] = value
        yield f"x led by {value:g}", 1.0, led
    yield "x of equal elements", 1.0, np.full(x.shape, 12345.678)
