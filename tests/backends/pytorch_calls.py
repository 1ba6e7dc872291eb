"""How PyTorch calls an op whose function there takes its arguments otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
F: Final = torch.nn.functional
# What PyTorch calls attributes.
NAMES: Final = {
    "axis": "dim",
    "keepdims": "keepdim",
    "kernel": "kernel_size",
    "size": "output_size",
}


def _batch_norm(x: Any, weight: Any, bias: Any, mean: Any, var: Any, epsilon: float = 1e-5) -> Any:
    return F.batch_norm(x, mean, var.abs(), weight, bias, eps=epsilon)


def _chunk(x: Any, chunks: int, axis: int = 0) -> Any:
    if not x.numel():
        raise ValueError("gives several parts of nothing there")
    return torch.chunk(x, chunks, axis)


def _count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return (x != 0).sum(dim=axis, keepdim=keepdims)


def _cov(x: Any, correction: float = 1.0) -> Any:
    if correction % 1:
        raise ValueError("takes a whole number there")
    return torch.cov(x, correction=int(correction))


def _embedding_bag(weight: Any, indices: Any, scale: Any, mode: str = "mean") -> Any:
    places = indices % weight.shape[0]
    return F.embedding_bag(places, weight, mode=mode, per_sample_weights=scale)


def _interpolate(x: Any, mode: str = "nearest", align_corners: bool = False, **rest: Any) -> Any:
    corners = None if mode.startswith("nearest") else align_corners
    modes = {"cubic": "bicubic", "linear": ("linear", "bilinear", "trilinear")[x.ndim - 3]}
    mode = modes.get(mode, mode).replace("_", "-")
    return F.interpolate(x, mode=mode, align_corners=corners, **rest)


def _lp_pool(x: Any, kernel: Any, p: float = 2.0, **rest: Any) -> Any:
    if p % 2:
        raise ValueError("sums odd powers with their signs there")
    function = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[x.ndim - 3]
    return function(x, p, kernel, **rest)


def _one_hot(x: Any, classes: int) -> Any:
    return F.one_hot(x % classes, classes)


def _pad(x: Any, padding: Any, value: Any = 0) -> Any:
    return F.pad(x, [n for pair in reversed(padding) for n in pair], value=value)


def _pixel_unshuffle(x: Any, factor: int) -> Any:
    if not x.numel():
        raise ValueError("gives another shape of nothing there")
    return F.pixel_unshuffle(x, factor)


def _scatter(x: Any, indices: Any, values: Any, axis: int = 0, update: str = "set") -> Any:
    places = indices % x.shape[axis] if indices.numel() else indices
    if update == "set":
        return torch.scatter(x, axis, places, values)
    reduction = {"add": "sum", "max": "amax", "min": "amin", "mul": "prod"}[update]
    return torch.scatter_reduce(x, axis, places, values, reduction)


def _take(x: Any, indices: Any, axis: int = 0) -> Any:
    places = indices % x.shape[axis]
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return x.index_select(axis, places.flatten()).reshape(shape)


CALLS: Final[dict[str, Callable[..., Any]]] = {
    "affine_grid": lambda theta, size, align_corners=False: F.affine_grid(
        theta, size, align_corners
    ),
    "batch_norm": _batch_norm,
    "broadcast_to": torch.broadcast_to,
    "cartesian_prod": lambda tensors: torch.cartesian_prod(*tensors),
    "chunk": _chunk,
    "count_nonzero": _count_nonzero,
    "cov": _cov,
    "diff": lambda x, before, after, axis=-1, n=1: torch.diff(x, n, axis, before, after),
    "einsum": lambda tensors, equation: torch.einsum(equation, *tensors),
    "embedding_bag": _embedding_bag,
    "flip": lambda x, axis=None: torch.flip(
        x, tuple(range(x.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    ),
    "index_add": lambda x, indices, values, axis=0: torch.index_add(
        x, axis, indices % x.shape[axis], values
    ),
    "interpolate": _interpolate,
    "layer_norm": lambda x, weight, bias, epsilon=1e-5: F.layer_norm(
        x, x.shape[-1:], weight, bias, epsilon
    ),
    "linear": lambda x, weight, bias: F.linear(x, weight.mT, bias),
    "lp_pool1d": _lp_pool,
    "lp_pool2d": _lp_pool,
    "lp_pool3d": _lp_pool,
    "one_hot": _one_hot,
    "pad": _pad,
    "pinv": lambda x, rtol: torch.linalg.pinv(x, rtol=rtol),
    "pixel_shuffle": F.pixel_shuffle,
    "pixel_unshuffle": _pixel_unshuffle,
    "rms_norm": lambda x, weight, epsilon=1e-5: F.rms_norm(x, x.shape[-1:], weight, epsilon),
    "roll": torch.roll,
    "scatter": _scatter,
    "split": lambda x, sections, axis=0: torch.split(
        x, x.shape[axis] // sections if isinstance(sections, int) else sections, axis
    ),
    "swapaxes": torch.swapaxes,
    "take": _take,
    "tile": torch.tile,
}
# What our attributes are called in these.
OWN: Final = {
    "broadcast_to": {"shape": "size"},
    "pixel_shuffle": {"factor": "upscale_factor"},
    "roll": {"axis": "dims", "shift": "shifts"},
    "swapaxes": {"axis1": "axis0", "axis2": "axis1"},
    "tile": {"repetitions": "dims"},
}
# Ops that PyTorch has and that no call there can be compared with, and why.
APART: Final = {
    "arange": "takes no tensors",
    "dequantize": "of tensors that carry their scales",
    "full": "takes no tensors",
    "gru": "weights of gates in another order; tests/layers compares the layers",
    "lstm": "weights of gates in another order; tests/layers compares the layers",
    "slice_scatter": "one axis at a time",
}
# How many results agree where PyTorch gives others behind them, and which.
FIRST: Final = {
    "adaptive_max_pool1d": (1, "places too"),
    "lstsq": (1, "its singular values are of one driver alone"),
    "max": (1, "along an axis places too"),
    "min": (1, "along an axis places too"),
    "sort": (1, "places too"),
}
# Ops whose shape for one row, or of one tensor, is another one there: fewer axes.
FEWER: Final = {"cartesian_prod", "corrcoef", "cov"}
