"""Ops of the domain com.microsoft that stand for one or several of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, Unpack

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from ._row import Host, Ints, Raw, Row, Scalar, row
from .contraction import gemm
from .elementwise import celu, elu, hard_sigmoid, leaky_relu, one, selu, thresholded_relu
from .movement import PadMode, pad, range_, trilu
from .selection import host_unique
from .window import Windows, conv, grid_sample

T = Tensor[Any]


def bias_gelu(A: T, B: T) -> T:
    return px.gelu(A + B)


def fast_gelu(X: T, bias: T | None = None) -> T:
    return px.gelu_tanh(X if bias is None else X + bias)


def quick_gelu(X: T, *, alpha: float = 1.702) -> T:
    return X * (X * alpha).sigmoid()


def fused_matmul(
    A: T,
    B: T,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> T:
    """``transBatch`` moves the first axis in front of the last two, or behind."""

    def laid(x: T, batch: int, transposed: int) -> T:
        if batch:
            x = px.moveaxis(x, 0, -2)
        return x.mT if transposed else x

    out = laid(A, transBatchA, transA) @ laid(B, transBatchB, transB)
    return out if alpha == 1 else out * alpha


# What may follow a convolution or a product, with the names of its numbers in their order.
_AFTER: Final[dict[str, tuple[Callable[..., T], tuple[str, ...]]]] = {
    "Celu": (celu, ("alpha",)),
    "Clip": (lambda x, min, max: x.clip(min, max), ("min", "max")),
    "Elu": (elu, ("alpha",)),
    "HardSigmoid": (hard_sigmoid, ("alpha", "beta")),
    "LeakyRelu": (leaky_relu, ("alpha",)),
    "Relu": (px.relu, ()),
    "Selu": (selu, ("alpha", "gamma")),
    "Sigmoid": (px.sigmoid, ()),
    "Softplus": (px.softplus, ()),
    "Softsign": (px.softsign, ()),
    "Tanh": (px.tanh, ()),
    "ThresholdedRelu": (thresholded_relu, ("alpha",)),
}


def _after(x: T, op: str, activation: str, numbers: dict[str, float] | tuple[float, ...]) -> T:
    if not activation:
        return x
    if activation not in _AFTER:
        known = ", ".join(_AFTER)
        raise OnnxError(op, "no such activation", got=repr(activation), expected=known)
    function, names = _AFTER[activation]
    given = numbers if isinstance(numbers, dict) else dict(zip(names, numbers, strict=False))
    return function(x, **{name: given[name] for name in names if name in given})


def fused_conv(
    X: T,
    W: T,
    B: T | None = None,
    Z: T | None = None,
    *,
    activation: str = "",
    activation_params: tuple[float, ...] = (),
    **how: Unpack[Windows],
) -> T:
    """A convolution, a sum with another tensor, an activation."""
    out = conv(X, W, B, **how)
    return _after(out if Z is None else out + Z, "FusedConv", activation, activation_params)


def fused_gemm(
    A: T,
    B: T,
    C: T | None = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> T:
    out = gemm(A, B, C, alpha=alpha, beta=beta, transA=transA, transB=transB)
    numbers = {"alpha": activation_alpha, "beta": activation_beta, "gamma": activation_gamma}
    given = {name: value for name, value in numbers.items() if value is not None}
    return _after(out, "FusedGemm", activation, given)


def cdist(A: T, B: T, *, metric: Literal["euclidean", "sqeuclidean"] = "sqeuclidean") -> T:
    """Distances of the rows; squares are taken of differences, since those of roots lose digits."""
    if metric == "euclidean":
        return px.cdist(A, B)
    return (A.expand_dims(axis=1) - B.expand_dims(axis=0)).square().sum(axis=2)


def expand_dims(X: T, axis: Scalar) -> T:
    return X.expand_dims(axis=int(axis))


def inverse(X: T) -> T:
    return px.linalg.inv(X)


def padded(data: T, pads: Ints, value: Raw = None, *, mode: PadMode = "constant") -> T:
    return pad(data, pads, value, mode=mode)


def line(start: Host, limit: Host, delta: Host | None = None, *, device: Any) -> T:
    return range_(start, limit, np.ones((), start.dtype) if delta is None else delta, device=device)


def sampled(
    X: T, Grid: T, *, align_corners: int = 0, mode: str = "bilinear", padding_mode: str = "zeros"
) -> T:
    names = {"bilinear": "linear", "bicubic": "cubic"}
    how = {"align_corners": align_corners, "padding_mode": padding_mode}
    return grid_sample(X, Grid, mode=names.get(mode, mode), **how)  # type: ignore[arg-type]


def first_unique(x: Host, *, device: Any) -> tuple[T, T, T]:
    """Elements in the order in which they come; how many there are depends on them."""
    values, _, places, counts = host_unique(x, None, 0)
    y, at, n = (px.asarray(v, device=device) for v in (values, places, counts))
    return y, at, n


ROWS: Final[dict[str, Row]] = {
    "BiasGelu": row(1, bias_gelu, trained="B"),
    "CDist": row(1, cdist),
    "ExpandDims": row(1, expand_dims),
    "FastGelu": row(1, fast_gelu, trained="bias"),
    "FusedConv": row(1, fused_conv, trained="W B", file_sized=True),
    "FusedGemm": row(1, fused_gemm, trained="A B C"),
    "FusedMatMul": row(1, fused_matmul, trained="A B"),
    "Gelu": row(1, one(px.gelu)),
    "GridSample": row(1, sampled),
    "Inverse": row(1, inverse),
    "Pad": row(1, padded, file_sized=True),
    "QuickGelu": row(1, quick_gelu),
    "Range": row(1, line, file_sized=True),
    "Trilu": row(1, trilu),
    "Unique": row(1, first_unique),
}
