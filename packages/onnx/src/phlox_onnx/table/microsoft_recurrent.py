"""A recurrent layer of whole numbers, as ``quantize_dynamic`` of ONNX Runtime writes it."""

from __future__ import annotations

from typing import Any, Final, Unpack

import phlox_tensor as px
from phlox_tensor import Tensor

from ._row import Host, Row, row
from .recurrent import LSTM, Recurrent, acts_of, walked_lstm

T = Tensor[Any]


def _floats(weight: T, scale: T, zero: T) -> T:
    """Weights (directions, inputs, gates) as those of LSTM, by one scale or one for each gate."""
    by, off = (v.reshape((weight.shape[0], 1, -1)).astype(px.float32) for v in (scale, zero))
    return ((weight.astype(px.float32) - off) * by).mT


def _rounded_over(x: T, axis: int | None) -> T:
    """Rounded to bytes over the range of all elements, or of each row; the gradient passes."""
    still = x.detach()
    low = still.min(axis=axis, keepdims=True).minimum(0.0)
    scale = (still.max(axis=axis, keepdims=True).maximum(0.0) - low) / 255.0
    safe = (scale == 0).where(1.0, scale)
    zero = (-low / safe).round().clip(0.0, 255.0)
    back = (((still / safe).round() + zero).clip(0.0, 255.0) - zero) * scale
    return x + (back - still)


def _row(x: T) -> T:
    return _rounded_over(x, -1)


def dynamic_quantize_lstm(
    X: T,
    W: T,
    R: T,
    B: T | None,
    sequence_lens: Host | None,
    initial_h: T | None,
    initial_c: T | None,
    P: T | None,
    W_scale: T,
    W_zero_point: T,
    R_scale: T,
    R_zero_point: T,
    *,
    input_forget: int = 0,
    **how: Unpack[Recurrent],
) -> tuple[Any, ...]:
    """All inputs are rounded over one range, each row of a state over its own."""
    w, r = _floats(W, W_scale, W_zero_point), _floats(R, R_scale, R_zero_point)
    acts = acts_of("DynamicQuantizeLSTM", X, w, r, 4, LSTM, how)
    weights, states = (_rounded_over(X, None), w, r, B), (initial_h, initial_c)
    return walked_lstm(weights, sequence_lens, states, P, acts, input_forget, 0, _row)


ROWS: Final[dict[str, Row]] = {
    "DynamicQuantizeLSTM": row(1, dynamic_quantize_lstm, trained="B P"),
}
