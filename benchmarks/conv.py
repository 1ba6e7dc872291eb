"""Convolutions of float32 images, forward and both gradients."""

from __future__ import annotations

import numpy as np

import phlox as px
from benchmarks.case import Case, Run

# name, input (N, C, H, W), weight (O, I, kh, kw), padding, groups
SHAPES = (
    ("1->16 3x3, b64 28x28", (64, 1, 28, 28), (16, 1, 3, 3), 1, 1),
    ("16->32 3x3, b64 14x14", (64, 16, 14, 14), (32, 16, 3, 3), 1, 1),
    ("64->64 3x3, b1 56x56", (1, 64, 56, 56), (64, 64, 3, 3), 1, 1),
    ("64->64 3x3, b32 56x56", (32, 64, 56, 56), (64, 64, 3, 3), 1, 1),
    ("64->64 1x1, b32 56x56", (32, 64, 56, 56), (64, 64, 1, 1), 0, 1),
    ("depthwise 64 3x3, b32 56x56", (32, 64, 56, 56), (64, 1, 3, 3), 1, 64),
)


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    rng = np.random.default_rng(0)
    out = []
    for name, image, weight, padding, groups in SHAPES:
        a = rng.standard_normal(image, np.float32)
        w = rng.standard_normal(weight, np.float32)
        flops = 2.0 * np.prod(weight) * image[0] * image[2] * image[3]
        forward, gradients = _phlox(a, w, padding, groups)
        twins: tuple[Run | None, Run | None] = (None, None)
        if with_torch:
            twins = _torch(a, w, padding, groups)
        out.append(Case(name, forward, twins[0], flops))
        out.append(Case(f"{name}, both gradients", gradients, twins[1], 2 * flops))
    return out


def _phlox(a: np.ndarray, w: np.ndarray, padding: int, groups: int) -> tuple[Run, Run]:
    x, y = px.asarray(a, device="cpu"), px.asarray(w, device="cpu")
    settings = {"padding": padding, "groups": groups}
    g = px.ones_like(px.conv2d(x, y, **settings))

    def gradients() -> object:
        dx = px.conv2d_input_grad(g, y, a.shape, **settings)
        return dx, px.conv2d_weight_grad(g, x, w.shape, **settings)

    return lambda: px.conv2d(x, y, **settings), gradients


def _torch(a: np.ndarray, w: np.ndarray, padding: int, groups: int) -> tuple[Run, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    x, y = torch.from_numpy(a), torch.from_numpy(w)
    conv = torch.nn.functional.conv2d
    g = torch.ones_like(conv(x, y, padding=padding, groups=groups))

    def gradients() -> object:
        return torch.ops.aten.convolution_backward(
            g, x, y, None, [1, 1], [padding] * 2, [1, 1], False, [0, 0], groups, [True, True, False]
        )

    return lambda: conv(x, y, padding=padding, groups=groups), gradients
