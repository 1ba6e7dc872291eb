"""Ops that look at one element of each operand."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import inf
from typing import Any, Final, Literal

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from ..read._types import FOUR_BITS, to_type
from ._row import Host, Raw, Row, row
from .bits import four_bits
from .unchanged import alone

T = Tensor[Any]


def _whole(x: Any) -> bool:
    return bool(x.dtype.kind == "Int")


def div(A: T, B: T) -> T:
    """Whole numbers are divided toward 0."""
    if not _whole(A):
        return A / B
    quotient = A // B
    if not A.dtype.signed:
        return quotient
    inexact = (A % B) != 0
    return quotient + (inexact & ((A < 0) ^ (B < 0))).astype(A.dtype)


def _host_div(A: Host, B: Host) -> Any:
    """Whole numbers by 0 are 0, as on devices."""
    if A.dtype.kind == "f":
        return np.divide(A, B)
    safe = np.where(B == 0, 1, B)
    quotient = np.where(B == 0, 0, A // safe)
    return quotient + ((A % safe != 0) & ((A < 0) ^ (safe < 0))).astype(A.dtype)


def mod(A: T, B: T, *, fmod: int = 0) -> T:
    """The remainder has the sign of the divisor, or with ``fmod`` of the dividend."""
    if not fmod:
        return A % B
    return A - div(A, B) * B if _whole(A) else px.fmod(A, B)


def _host_mod(A: Host, B: Host, *, fmod: int = 0) -> Any:
    return np.fmod(A, B) if fmod else np.mod(A, np.where(B == 0, 1, B))


def pow_(X: T, Y: T) -> T:
    """The result has the type of the base."""
    if X.dtype.kind == Y.dtype.kind == "Int":
        return X ** Y.astype(X.dtype)
    if _whole(X):
        wide = px.float64 if px.float64 in X.device.dtypes else px.float32
        return (X.astype(wide) ** Y.astype(wide)).astype(X.dtype)
    return X ** Y.astype(X.dtype)


def clip(input: T, min: Raw = None, max: Raw = None) -> T:
    """Where the bounds cross, the upper one wins."""
    out = input
    if min is not None:
        out = px.maximum(out, _bound(min))
    return out if max is None else px.minimum(out, _bound(max))


def _bound(value: Any) -> Any:
    return value.reshape(()).item() if isinstance(value, np.ndarray) else value.reshape(())


def shift(X: T, Y: T, *, direction: Literal["LEFT", "RIGHT"]) -> T:
    """Bits beyond the ends fall off."""
    by = px.bitwise_left_shift if direction == "LEFT" else px.bitwise_right_shift
    return by(X, Y)


def many(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A row for any number of operands."""

    def run(*data_0: T) -> T:
        return reduce(function, data_0)

    return run


def _host_many(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *data_0: reduce(function, data_0)


def mean(*data_0: T) -> T:
    return reduce(px.add, data_0) / len(data_0)


def _as(x: T, dtype: Any) -> T:
    if dtype.name == "int64" and dtype not in x.device.dtypes:
        dtype = x.device.default_int
    return x.astype(dtype)


def cast(input: T, *, to: int, saturate: int = 1, round_mode: str = "up") -> T:
    """``saturate`` and ``round_mode`` speak of floats of 8 bits, which phlox lacks."""
    return four_bits(input, to) if to in FOUR_BITS else _as(input, to_type(to))


def _host_cast(input: Host, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    if to in FOUR_BITS:
        return four_bits(px.asarray(input, device=px.Numpy()), to).numpy()
    return input.astype(to_type(to).numpy)


def cast_like(input: T, target_type: T, *, saturate: int = 1, round_mode: str = "up") -> T:
    return input.astype(target_type.dtype)


def is_inf(X: T, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor[Any]:
    if detect_negative and detect_positive:
        return X.isinf()
    if not (detect_negative or detect_positive):
        return X.isinf() & X.isnan()
    return px.equal(X, inf if detect_positive else -inf)


def gelu(X: T, *, approximate: Literal["none", "tanh"] = "none") -> T:
    return px.gelu_tanh(X) if approximate == "tanh" else px.gelu(X)


def leaky_relu(X: T, *, alpha: float = 0.01) -> T:
    return px.leaky_relu(X, alpha)


def thresholded_relu(X: T, *, alpha: float = 1.0) -> T:
    return (alpha < X).where(X, 0.0)


def selu(X: T, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> T:
    return gamma * (px.maximum(X, 0.0) + px.minimum(alpha * px.expm1(px.minimum(X, 0.0)), 0.0))


def celu(X: T, *, alpha: float = 1.0) -> T:
    return px.maximum(X, 0.0) + alpha * px.expm1(px.minimum(X, 0.0) / alpha)


def elu(X: T, *, alpha: float = 1.0) -> T:
    return px.elu(X, alpha)


def prelu(X: T, slope: T) -> T:
    if _whole(X):
        return px.where(X < 0, X * slope, X)
    return px.maximum(X, 0.0) + px.minimum(X, 0.0) * slope


def shrink(input: T, *, bias: float = 0.0, lambd: float = 0.5) -> T:
    if _whole(input):
        low, high = input < -lambd, input > lambd
        moved = low.where(input + int(bias), high.where(input - int(bias), 0))
        return moved
    return (input < -lambd).where(input + bias, (input > lambd).where(input - bias, 0.0))


def where(condition: T, X: T, Y: T) -> T:
    return px.where(condition, X, Y)


def hard_sigmoid(X: T, *, alpha: float = 0.2, beta: float = 0.5) -> T:
    return px.hard_sigmoid(X, alpha, beta)


def one(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """A row for one operand, whatever the schema calls it."""

    def run(X: T) -> T:
        return function(X)

    return run


def two(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A row for two operands."""

    def run(A: T, B: T) -> T:
        return function(A, B)

    return run


def softmax(input: T, *, axis: int = -1) -> T:
    return px.softmax(input, axis)


def log_softmax(input: T, *, axis: int = -1) -> T:
    return px.log_softmax(input, axis)


def hardmax(input: T, *, axis: int = -1) -> T:
    """One at the first largest element, else zero."""
    places = input.argmax(axis=axis, keepdims=True)
    n = input.shape[axis]
    line = px.arange(n, device=input.device).astype(places.dtype)
    shape = [1] * input.ndim
    shape[axis] = n
    return (line.reshape(shape) == places).astype(input.dtype)


def swish(X: T, *, alpha: float = 1.0) -> T:
    return px.silu(X) if alpha == 1 else X * (X * alpha).sigmoid()


def bit_cast(input: Host, *, to: int) -> Host:
    """The same bits as another type; they are read on the host."""
    if to in FOUR_BITS:  # bits of as many, which lie in bytes
        return four_bits(px.asarray(input, device=px.Numpy()), to).numpy()
    dtype = np.dtype(to_type(to).numpy)
    return np.frombuffer(input.tobytes(), dtype).reshape(input.shape)


def swiglu(A: T, B: T, *, alpha: float = 1.0) -> T:
    return swish(A, alpha=alpha) * B


# Ops of one operand under the same name in both.
_SAME: Final = {
    13: "Erf Exp Log Reciprocal Sigmoid Sign Tanh",
    14: "Relu",
    20: "IsNaN",
    22: "Acos Acosh Asin Asinh Atan Atanh Cos Cosh Mish Round Sin Sinh Softplus Softsign Tan",
}
ROWS: Final[dict[str, Row]] = {
    **{
        op: row(version, one(getattr(px, op.lower())))
        for version, names in _SAME.items()
        for op in names.split()
    },
    "Abs": row(13, one(px.abs), host=np.abs),
    "Add": row(14, two(px.add), host=np.add, trained="A B"),
    "And": row(7, two(px.logical_and), host=np.logical_and),
    "BitCast": row(26, bit_cast),
    "BitShift": row(28, shift),
    "BitwiseAnd": row(18, two(px.bitwise_and)),
    "BitwiseNot": row(18, one(px.bitwise_invert)),
    "BitwiseOr": row(18, two(px.bitwise_or)),
    "BitwiseXor": row(18, two(px.bitwise_xor)),
    "Cast": row(28, cast, host=_host_cast, movement=True),
    "CastLike": row(25, cast_like, movement=True),
    "Ceil": row(13, one(px.ceil), host=np.ceil),
    "Celu": row(28, celu),
    "Clip": row(13, clip),
    "Div": row(14, div, host=_host_div),
    "Elu": row(22, elu),
    "Equal": row(19, two(px.equal), host=np.equal),
    "Floor": row(13, one(px.floor), host=np.floor),
    "Gelu": row(20, gelu),
    "Greater": row(13, two(px.greater), host=np.greater),
    "GreaterOrEqual": row(16, two(px.greater_equal), host=np.greater_equal),
    "HardSigmoid": row(22, hard_sigmoid),
    "HardSwish": row(22, one(px.hard_swish)),
    "Hardmax": row(13, hardmax),
    "IsInf": row(20, is_inf),
    "LeakyRelu": row(16, leaky_relu),
    "Less": row(13, two(px.less), host=np.less),
    "LessOrEqual": row(16, two(px.less_equal), host=np.less_equal),
    "LogSoftmax": row(13, log_softmax),
    "Max": row(13, many(px.maximum), host=_host_many(np.maximum), same=alone),
    "Mean": row(13, mean, same=alone),
    "Min": row(13, many(px.minimum), host=_host_many(np.minimum), same=alone),
    "Mod": row(28, mod, host=_host_mod),
    "Mul": row(14, two(px.multiply), host=np.multiply, trained="A B"),
    "Neg": row(13, one(px.negative), host=np.negative),
    "Not": row(1, one(px.logical_not), host=np.logical_not),
    "Or": row(7, two(px.logical_or), host=np.logical_or),
    "PRelu": row(16, prelu, trained="slope"),
    "Pow": row(15, pow_),
    "Selu": row(22, selu),
    "Shrink": row(9, shrink),
    "Softmax": row(13, softmax),
    "Sqrt": row(13, one(px.sqrt), host=np.sqrt),
    "Sub": row(14, two(px.subtract), host=np.subtract, trained="A B"),
    "Sum": row(13, many(px.add), same=alone),
    "SwiGLU": row(28, swiglu),
    "Swish": row(24, swish),
    "ThresholdedRelu": row(22, thresholded_relu),
    "Where": row(16, where, host=np.where),
    "Xor": row(7, two(px.logical_xor), host=np.logical_xor),
}
