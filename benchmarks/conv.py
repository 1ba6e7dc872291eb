"""Convolutions of float32 images, forward and both gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Case, Run

# name, input (N, C, H, W), weight (O, I, kh, kw), stride, padding, groups, wanted share of peak
# and times PyTorch
SHAPES = (
    ("1->16 3x3, b64 28x28", (64, 1, 28, 28), (16, 1, 3, 3), 1, 1, 1, 0.0, 0.0),
    ("16->32 3x3, b64 14x14", (64, 16, 14, 14), (32, 16, 3, 3), 1, 1, 1, 0.0, 0.0),
    ("64->64 3x3, b1 56x56", (1, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1, 0.7, 1.0),
    ("64->64 3x3, b32 56x56", (32, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1, 0.7, 1.0),
    ("3->64 7x7 /2, b1 224x224", (1, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1, 0.7, 1.0),
    ("64->128 3x3 /2, b1 56x56", (1, 64, 56, 56), (128, 64, 3, 3), 2, 1, 1, 0.7, 1.0),
    ("128->128 3x3, b1 28x28", (1, 128, 28, 28), (128, 128, 3, 3), 1, 1, 1, 0.7, 1.0),
    ("256->256 3x3, b1 14x14", (1, 256, 14, 14), (256, 256, 3, 3), 1, 1, 1, 0.7, 1.0),
    ("512->512 3x3, b1 7x7", (1, 512, 7, 7), (512, 512, 3, 3), 1, 1, 1, 0.7, 1.0),
    ("64->64 1x1, b32 56x56", (32, 64, 56, 56), (64, 64, 1, 1), 1, 0, 1, 0.7, 1.3),
    ("depthwise 64 3x3, b32 56x56", (32, 64, 56, 56), (64, 1, 3, 3), 1, 1, 64, 0.0, 1.0),
)


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    rng = np.random.default_rng(0)
    out = []
    for name, image, weight, stride, padding, groups, share, times in SHAPES:
        a = rng.standard_normal(image, np.float32)
        w = rng.standard_normal(weight, np.float32)
        settings = {"stride": stride, "padding": padding, "groups": groups}
        forward, gradients = _phlox(a, w, settings)
        twins: tuple[Run | None, Run | None] = (None, None)
        if with_torch:
            twins = _torch(a, w, settings)
        side = (image[2] + 2 * padding - weight[2]) // stride + 1
        flops = 2.0 * np.prod(weight) * image[0] * side * side
        both = f"{name}, both gradients"
        out.append(Case(name, forward, twins[0], flops, share=share, times=times))
        out.append(Case(both, gradients, twins[1], 2 * flops, share=share, times=times))
    return out


def _phlox(a: np.ndarray, w: np.ndarray, settings: dict[str, Any]) -> tuple[Run, Run]:
    x, y = px.asarray(a, device="cpu"), px.asarray(w, device="cpu")
    g = px.ones_like(px.conv2d(x, y, **settings))

    def gradients() -> object:
        dx = px.ops.conv2d_input_grad(g, y, a.shape, **settings)
        return dx, px.ops.conv2d_weight_grad(g, x, w.shape, **settings)

    return lambda: px.conv2d(x, y, **settings), gradients


def _torch(a: np.ndarray, w: np.ndarray, settings: dict[str, Any]) -> tuple[Run, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    x, y = torch.from_numpy(a), torch.from_numpy(w)
    conv = torch.nn.functional.conv2d
    g = torch.ones_like(conv(x, y, **settings))
    stride, padding, groups = settings["stride"], settings["padding"], settings["groups"]

    def gradients() -> object:
        return torch.ops.aten.convolution_backward(
            g, x, y, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups,
            [True, True, False],
        )  # fmt: skip

    return lambda: conv(x, y, **settings), gradients
