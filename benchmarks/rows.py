"""Softmax, norms and reductions of 4096 rows of 1024 float32 elements."""

from __future__ import annotations

import numpy as np

import phlox as px
from benchmarks.case import Case, Run

ROWS = (4096, 1024)
IMAGES = (32, 64, 28, 28)


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    rng = np.random.default_rng(0)
    rows, cotangent = rng.standard_normal((2, *ROWS), np.float32)
    images = rng.standard_normal(IMAGES, np.float32)
    labels = rng.integers(0, ROWS[1], ROWS[0])
    mine = _phlox(rows, cotangent, images, labels)
    twins: dict[str, Run] = _torch(rows, cotangent, images, labels) if with_torch else {}
    return [
        Case(name, run, twins.get(name), bytes=4.0 * passes * size, times=times)
        for name, (run, passes, size, times) in mine.items()
    ]


def _phlox(
    rows: np.ndarray, cotangent: np.ndarray, images: np.ndarray, labels: np.ndarray
) -> dict[str, tuple[Run, int, int, float]]:
    x, g = px.asarray(rows, device="cpu"), px.asarray(cotangent, device="cpu")
    y, logs = px.softmax(x), px.log_softmax(x)
    picture, target = px.asarray(images, device="cpu"), px.asarray(labels, device="cpu")
    one = px.ones(IMAGES[1], device="cpu")
    weight, bias = px.ones(ROWS[1], device="cpu"), px.zeros(ROWS[1], device="cpu")
    n = rows.size
    _, mean, var = px.batch_norm_train(picture, one, one)
    return {
        "softmax": (lambda: px.softmax(x), 2, n, 1.3),
        "softmax, backward": (lambda: px.ops.softmax_backward(g, y), 3, n, 1.3),
        "log softmax": (lambda: px.log_softmax(x), 2, n, 0.0),
        "log softmax, backward": (lambda: px.ops.log_softmax_backward(g, logs), 3, n, 0.0),
        "layer norm": (lambda: px.layer_norm(x, weight, bias), 2, n, 1.3),
        "layer norm, backward": (lambda: px.ops.layer_norm_backward(g, x, weight), 3, n, 1.3),
        "rms norm": (lambda: px.rms_norm(x, weight), 2, n, 0.0),
        "cross-entropy": (lambda: px.cross_entropy(x, target), 1, n, 0.0),
        "sum, axis 0": (lambda: x.sum(axis=0), 1, n, 1.0),
        "sum, axis 1": (lambda: x.sum(axis=1), 1, n, 1.0),
        "sum, all": (lambda: x.sum(), 1, n, 1.0),
        "max, axis 0": (lambda: x.max(axis=0), 1, n, 1.0),
        "max, axis 1": (lambda: x.max(axis=1), 1, n, 1.0),
        "max, all": (lambda: x.max(), 1, n, 1.0),
        "variance, axis 1": (lambda: x.var(axis=1), 1, n, 0.0),
        "argmax, axis 1": (lambda: x.argmax(axis=1), 1, n, 0.0),
        "cumsum, axis 1": (lambda: x.cumsum(axis=1), 2, n, 0.0),
        "batch norm 32x64x28x28, training": (
            lambda: px.batch_norm_train(picture, one, one), 2, images.size, 0.0,
        ),
        "batch norm 32x64x28x28, backward": (
            lambda: px.ops.batch_norm_backward(picture, picture, one, mean, var),
            3, images.size, 0.0,
        ),
    }  # fmt: skip


def _torch(
    rows: np.ndarray, cotangent: np.ndarray, images: np.ndarray, labels: np.ndarray
) -> dict[str, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    f, aten = torch.nn.functional, torch.ops.aten
    x, g, picture = (torch.from_numpy(a) for a in (rows, cotangent, images))
    y, logs, target = x.softmax(1), x.log_softmax(1), torch.from_numpy(labels)
    weight, bias, one = torch.ones(ROWS[1]), torch.zeros(ROWS[1]), torch.ones(IMAGES[1])
    shape, all_three = [ROWS[1]], [True, True, True]
    _, mean, scale = aten.native_layer_norm(x, shape, weight, bias, 1e-5)
    _, center, spread = aten.native_batch_norm(picture, one, one, None, None, True, 0.1, 1e-5)
    return {
        "softmax": lambda: x.softmax(1),
        "softmax, backward": lambda: aten._softmax_backward_data(g, y, 1, torch.float32),
        "log softmax": lambda: x.log_softmax(1),
        "log softmax, backward": lambda: aten._log_softmax_backward_data(g, logs, 1, x.dtype),
        "layer norm": lambda: f.layer_norm(x, shape, weight, bias),
        "layer norm, backward": lambda: aten.native_layer_norm_backward(
            g, x, shape, mean, scale, weight, bias, all_three
        ),
        "rms norm": lambda: f.rms_norm(x, shape, weight),
        "cross-entropy": lambda: f.cross_entropy(x, target, reduction="none"),
        "batch norm 32x64x28x28, training": lambda: aten.native_batch_norm(
            picture, one, one, None, None, True, 0.1, 1e-5
        ),
        "batch norm 32x64x28x28, backward": lambda: aten.native_batch_norm_backward(
            picture, picture, one, None, None, center, spread, True, 1e-5, all_three
        ),
        "sum, axis 0": lambda: x.sum(0),
        "sum, axis 1": lambda: x.sum(1),
        "sum, all": lambda: x.sum(),
        "max, axis 0": lambda: x.amax(0),
        "max, axis 1": lambda: x.amax(1),
        "max, all": lambda: x.amax(),
        "variance, axis 1": lambda: x.var(1, unbiased=False),
        "argmax, axis 1": lambda: x.argmax(1),
        "cumsum, axis 1": lambda: x.cumsum(1),
    }
