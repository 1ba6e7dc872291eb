# ruff: noqa: E501 - one row of the table stands on one line
"""One row for each way to use a layer: settings, inputs, the formula in NumPy, its twin in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, pi, sqrt
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from phlox import nn
from tests.layers import more, recurrences, sequences
from tests.layers.case import Array, Case, Weights, classes, normal, rowwise


def windows(x: Array, kernel: int, stride: int, pad: int = 0, fill: float = 0.0) -> Array:
    """The windows of images as two more axes."""
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=fill)
    return sliding_window_view(padded, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]


def convolved(w: Weights, x: Array, stride: int = 1, pad: int = 0, groups: int = 1) -> Array:
    """Cross-correlation by its definition."""
    parts = windows(x, w["weight"].shape[2], stride, pad)
    n, channels, rows, columns = parts.shape[:4]
    split = parts.reshape(n, groups, channels // groups, rows, columns, *parts.shape[4:])
    weight = w["weight"].reshape(groups, -1, *w["weight"].shape[1:])
    y = np.einsum("ngcijhw,gochw->ngoij", split, weight).reshape(n, -1, rows, columns)
    return y + w["bias"][:, None, None] if "bias" in w else y


def channelwise(x: Array, mean: Array, var: Array, w: Weights, epsilon: float) -> Array:
    """Batch norm by given statistics."""
    shape = (1, -1, *(1,) * (x.ndim - 2))
    scale = w["weight"] / np.sqrt(var + epsilon)
    return (x - mean.reshape(shape)) * scale.reshape(shape) + w["bias"].reshape(shape)


def log_softmax(x: Array) -> Array:
    """The logarithm of shares."""
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def shares(x: Array) -> Array:
    """Numbers above 0 that add up to 1, in another order."""
    return np.exp(log_softmax(x[::-1]))


def smoothed(x: Array, labels: Array, weights: tuple[float, ...], smoothing: float) -> Array:
    """Cross-entropy with class weights and smoothing, as a weighted mean."""
    log_p, factors = log_softmax(x), np.asarray(weights)
    picked = -log_p[np.arange(len(labels)), labels] * factors[labels]
    spread = -(log_p * factors).mean(-1)
    losses = picked * (1 - smoothing) + spread * smoothing
    return np.asarray(losses.sum() / factors[labels].sum())


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _gelu_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))))


def _selu(x: Array) -> Array:
    return np.asarray(1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)))


# Each name that `nn.Activation` takes: the formula, and what PyTorch calls it.
ACTIVATIONS: dict[str, tuple[Callable[[Array], Array], Callable[..., Any]]] = {
    "celu": (lambda x: np.where(x > 0, x, np.expm1(x)), lambda f, w, x: f.celu(x)),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(x)), lambda f, w, x: f.elu(x)),
    "gelu": (lambda x: x * (1 + np.vectorize(erf)(x * sqrt(0.5))) / 2, lambda f, w, x: f.gelu(x)),
    "gelu_tanh": (_gelu_tanh, lambda f, w, x: f.gelu(x, approximate="tanh")),
    "hard_shrink": (lambda x: np.where(np.abs(x) > 0.5, x, 0), lambda f, w, x: f.hardshrink(x)),
    "hard_sigmoid": (
        lambda x: np.clip(x / 6 + 0.5, 0, 1),
        lambda f, w, x: (x / 6 + 0.5).clamp(0, 1),
    ),
    "hard_swish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, lambda f, w, x: f.hardswish(x)),
    "hard_tanh": (lambda x: np.clip(x, -1, 1), lambda f, w, x: f.hardtanh(x)),
    "leaky_relu": (lambda x: np.where(x > 0, x, 0.01 * x), lambda f, w, x: f.leaky_relu(x)),
    "log_sigmoid": (lambda x: np.log(_sigmoid(x)), lambda f, w, x: f.logsigmoid(x)),
    "mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), lambda f, w, x: f.mish(x)),
    "relu": (lambda x: np.maximum(x, 0), lambda f, w, x: f.relu(x)),
    "relu6": (lambda x: np.clip(x, 0, 6), lambda f, w, x: f.relu6(x)),
    "selu": (_selu, lambda f, w, x: f.selu(x)),
    "shrink": (
        lambda x: np.where(np.abs(x) > 0.5, x - np.sign(x) / 2, 0),
        lambda f, w, x: f.softshrink(x),
    ),
    "sigmoid": (_sigmoid, lambda f, w, x: x.sigmoid()),
    "silu": (lambda x: x * _sigmoid(x), lambda f, w, x: f.silu(x)),
    "soft_shrink": (
        lambda x: np.where(np.abs(x) > 0.5, x - np.sign(x) / 2, 0),
        lambda f, w, x: f.softshrink(x),
    ),
    "softplus": (lambda x: np.log1p(np.exp(x)), lambda f, w, x: f.softplus(x)),
    "softsign": (lambda x: x / (1 + np.abs(x)), lambda f, w, x: f.softsign(x)),
    "tanh": (np.tanh, lambda f, w, x: x.tanh()),
    "tanh_shrink": (lambda x: x - np.tanh(x), lambda f, w, x: f.tanhshrink(x)),
    "threshold": (lambda x: np.where(x > 0, x, 0), lambda f, w, x: f.threshold(x, 0.0, 0.0)),
    "thresholded_relu": (lambda x: np.where(x > 1, x, 0), lambda f, w, x: f.threshold(x, 1.0, 0.0)),
}


def _activation(name: str) -> Case:
    plain, twin = ACTIVATIONS[name]
    config = nn.ActivationConfig.from_dict({"name": name})
    return Case(config, (normal(3, 4),), lambda w, x: plain(x), twin)


IMAGES, ROWS = normal(2, 4, 6, 6), normal(3, 5)
HALF = (0.5, 2.0, 1.0)
# fmt: off
CASES: dict[str, Case] = {
    **more.CASES,
    **recurrences.CASES,
    **sequences.CASES,
    **{f"activation-{name}": _activation(name) for name in ACTIVATIONS},
    "activation-settings": Case(nn.ActivationConfig("leaky_relu", {"slope": 0.3}), (normal(3, 4),), lambda w, x: np.where(x > 0, x, 0.3 * x), lambda f, w, x: f.leaky_relu(x, 0.3)),
    "avg-pool": Case(nn.AvgPool2dConfig(2), (IMAGES,), lambda w, x: windows(x, 2, 2).mean((4, 5)), lambda f, w, x: f.avg_pool2d(x, 2)),
    "avg-pool-padded": Case(nn.AvgPool2dConfig(3, stride=2, padding=1), (IMAGES,), lambda w, x: windows(x, 3, 2, 1).mean((4, 5)), lambda f, w, x: f.avg_pool2d(x, 3, 2, 1)),
    "batch-norm": Case(nn.BatchNormConfig(4, epsilon=1e-3), (IMAGES,), lambda w, x: channelwise(x, w["running_mean"], w["running_var"], w, 1e-3), lambda f, w, x: f.batch_norm(x, w["running_mean"], w["running_var"], w["weight"], w["bias"], eps=1e-3)),
    "batch-norm-bare": Case(nn.BatchNormConfig(4, affine=False), (IMAGES,), lambda w, x: channelwise(x, w["running_mean"], w["running_var"], {**w, "weight": np.ones(4), "bias": np.zeros(4)}, 1e-5), lambda f, w, x: f.batch_norm(x, w["running_mean"], w["running_var"])),
    "batch-norm-no-bias": Case(nn.BatchNormConfig(4, momentum=None, bias=False), (IMAGES,), lambda w, x: channelwise(x, x.mean((0, 2, 3)), x.var((0, 2, 3)), {**w, "bias": np.zeros(4)}, 1e-5), lambda f, w, x: f.batch_norm(x, None, None, w["weight"], training=True), training=True),
    "batch-norm-training": Case(nn.BatchNormConfig(4), (IMAGES,), lambda w, x: channelwise(x, x.mean((0, 2, 3)), x.var((0, 2, 3)), w, 1e-5), lambda f, w, x: f.batch_norm(x, None, None, w["weight"], w["bias"], training=True), training=True),
    "batch-norm-untracked": Case(nn.BatchNormConfig(4, track_running_stats=False), (IMAGES,), lambda w, x: channelwise(x, x.mean((0, 2, 3)), x.var((0, 2, 3)), w, 1e-5), lambda f, w, x: f.batch_norm(x, None, None, w["weight"], w["bias"], training=True)),
    "conv": Case(nn.Conv2dConfig(4, 3, 3), (IMAGES,), convolved, lambda f, w, x: f.conv2d(x, w["weight"], w["bias"])),
    "conv-groups": Case(nn.Conv2dConfig(4, 6, 3, groups=2, padding=1, stride=2, bias=False), (IMAGES,), lambda w, x: convolved(w, x, 2, 1, 2), lambda f, w, x: f.conv2d(x, w["weight"], stride=2, padding=1, groups=2)),
    "conv-same": Case(nn.Conv2dConfig(4, 2, 3, padding="same"), (IMAGES,), lambda w, x: convolved(w, x, 1, 1), lambda f, w, x: f.conv2d(x, w["weight"], w["bias"], padding="same")),
    "cross-entropy": Case(nn.CrossEntropyLossConfig(), (ROWS, classes(5, 3)), lambda w, x, n: -log_softmax(x)[np.arange(3), n].mean(), lambda f, w, x, n: f.cross_entropy(x, n)),
    "cross-entropy-shares": Case(nn.CrossEntropyLossConfig(), (ROWS, shares(ROWS)), lambda w, x, y: -(y * log_softmax(x)).sum(-1).mean(), lambda f, w, x, y: f.cross_entropy(x, y)),
    "cross-entropy-shares-smoothed": Case(nn.CrossEntropyLossConfig(weights=HALF, smoothing=0.2, reduction="sum"), (normal(4, 3), shares(normal(4, 3))), lambda w, x, y: -((y * 0.8 + 0.2 / 3) * log_softmax(x) * HALF).sum(), lambda f, w, x, y: f.cross_entropy(x, y, weight=x.new_tensor(HALF), label_smoothing=0.2, reduction="sum")),
    "cross-entropy-smoothed": Case(nn.CrossEntropyLossConfig(weights=HALF, smoothing=0.2), (normal(4, 3), classes(3, 4)), lambda w, x, n: smoothed(x, n, HALF, 0.2), lambda f, w, x, n: f.cross_entropy(x, n, weight=x.new_tensor(HALF), label_smoothing=0.2)),
    "dropout": Case(nn.DropoutConfig(0.3), (ROWS,), lambda w, x: x, lambda f, w, x: f.dropout(x, 0.3, training=False)),
    "embedding": Case(nn.EmbeddingConfig(5, 2), (classes(5, 2, 3),), lambda w, n: w["weight"][n], lambda f, w, n: f.embedding(n, w["weight"])),
    "group-norm-no-bias": Case(nn.GroupNormConfig(2, 4, bias=False), (IMAGES,), lambda w, x: rowwise({"weight": np.ones(1)}, x.reshape(2, 2, -1), 1e-5).reshape(x.shape) * w["weight"].reshape(4, 1, 1), lambda f, w, x: f.group_norm(x, 2, w["weight"])),
    "layer-norm": Case(nn.LayerNormConfig(5), (ROWS,), lambda w, x: rowwise(w, x, 1e-5), lambda f, w, x: f.layer_norm(x, (5,), w["weight"], w["bias"])),
    "layer-norm-axes": Case(nn.LayerNormConfig((2, 4)), (normal(3, 2, 4),), lambda w, x: rowwise({k: v.reshape(8) for k, v in w.items()}, x.reshape(3, 8), 1e-5).reshape(3, 2, 4), lambda f, w, x: f.layer_norm(x, (2, 4), w["weight"], w["bias"])),
    "layer-norm-bare": Case(nn.LayerNormConfig(5, affine=False), (ROWS,), lambda w, x: rowwise({"weight": np.ones(5)}, x, 1e-5), lambda f, w, x: f.layer_norm(x, (5,))),
    "layer-norm-no-bias": Case(nn.LayerNormConfig(5, epsilon=1e-2, bias=False), (ROWS,), lambda w, x: rowwise(w, x, 1e-2), lambda f, w, x: f.layer_norm(x, (5,), w["weight"], eps=1e-2)),
    "linear": Case(nn.LinearConfig(5, 2), (ROWS,), lambda w, x: x @ w["weight"] + w["bias"], lambda f, w, x: f.linear(x, w["weight"].T, w["bias"])),
    "linear-no-bias": Case(nn.LinearConfig(5, 2, bias=False), (normal(2, 3, 5),), lambda w, x: x @ w["weight"], lambda f, w, x: f.linear(x, w["weight"].T)),
    "max-pool": Case(nn.MaxPool2dConfig(2), (IMAGES,), lambda w, x: windows(x, 2, 2).max((4, 5)), lambda f, w, x: f.max_pool2d(x, 2)),
    "max-pool-padded": Case(nn.MaxPool2dConfig(3, stride=1, padding=1), (IMAGES,), lambda w, x: windows(x, 3, 1, 1, -np.inf).max((4, 5)), lambda f, w, x: f.max_pool2d(x, 3, 1, 1)),
    "mse": Case(nn.MseLossConfig(), (ROWS, ROWS[::-1].copy()), lambda w, x, y: ((x - y) ** 2).mean(), lambda f, w, x, y: f.mse_loss(x, y)),
    "mse-none": Case(nn.MseLossConfig("none"), (ROWS, ROWS[::-1].copy()), lambda w, x, y: (x - y) ** 2, lambda f, w, x, y: f.mse_loss(x, y, reduction="none")),
    "rms-norm": Case(nn.RmsNormConfig(5, epsilon=1e-3), (ROWS,), lambda w, x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * w["weight"], lambda f, w, x: f.rms_norm(x, (5,), w["weight"], 1e-3)),
    "rms-norm-axes": Case(nn.RmsNormConfig((2, 4)), (normal(3, 2, 4),), lambda w, x: x / np.sqrt((x * x).mean((1, 2), keepdims=True) + 1e-5) * w["weight"], lambda f, w, x: f.rms_norm(x, (2, 4), w["weight"], 1e-5)),
    "rms-norm-bare": Case(nn.RmsNormConfig(5, affine=False), (ROWS,), lambda w, x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5), lambda f, w, x: f.rms_norm(x, (5,), None, 1e-5)),
}
# fmt: on
