"""Copies, sorts, indexing and pools of float32 elements."""

from __future__ import annotations

import numpy as np

import phlox as px
from benchmarks.case import Case, Run

ROWS = (4096, 1024)
IMAGES = (8, 32, 64, 64)
LARGE_IMAGES = (2, 32, 512, 512)
TABLE, PICKED = (50_000, 64), 100_000


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal(ROWS, np.float32)
    images = rng.standard_normal(LARGE_IMAGES, np.float32)
    table, values = rng.standard_normal(TABLE, np.float32), rng.standard_normal((PICKED, 64), "f4")
    places = rng.integers(0, TABLE[0], PICKED)
    arrays = (rows, images, table, values, places)
    mine = _phlox(*arrays)
    twins: dict[str, Run] = _torch(*arrays) if with_torch else {}
    return [Case(name, run, twins.get(name), times=times) for name, (run, times) in mine.items()]


def _phlox(
    rows: np.ndarray, images: np.ndarray, table: np.ndarray, values: np.ndarray, places: np.ndarray
) -> dict[str, tuple[Run, float]]:
    x, picture, t, v, i = (
        px.asarray(a, device="cpu") for a in (rows, images, table, values, places)
    )
    small = picture.flatten()[: 8 * 32 * 64 * 64].reshape(IMAGES)
    return {
        "transpose copy 4096x1024": (lambda: x.T.contiguous(), 3.0),
        "NCHW to NHWC copy 8x32x64x64": (
            lambda: small.permute_dims((0, 2, 3, 1)).contiguous(), 0.0,
        ),
        "concat two 4096x1024": (lambda: px.concat([x, x]), 0.0),
        "sort rows 4096x1024": (lambda: px.sort(x), 2.0),
        "top 10 of rows 4096x1024": (lambda: px.topk(x, 10), 2.0),
        "gather 100k rows of 64": (lambda: t.take(i, axis=0), 1.0),
        "scatter-add 100k rows of 64": (lambda: t.index_add(i, v, axis=0), 1.0),
        "max pool k5 s2 d2, 2x32x512x512": (
            lambda: px.max_pool2d(picture, 5, stride=2, dilation=2), 20.0,
        ),
        "max pool k2, 2x32x512x512": (lambda: px.max_pool2d(picture, 2), 0.0),
        "average pool k3 s2, 2x32x512x512": (lambda: px.avg_pool2d(picture, 3, stride=2), 0.0),
        "bilinear to 128x128, 8x32x64x64": (
            lambda: px.interpolate2d(small, (128, 128), mode="bilinear"), 0.0,
        ),
    }  # fmt: skip


def _torch(
    rows: np.ndarray, images: np.ndarray, table: np.ndarray, values: np.ndarray, places: np.ndarray
) -> dict[str, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    x, picture, t, v, i = (torch.from_numpy(a) for a in (rows, images, table, values, places))
    small = picture.flatten()[: 8 * 32 * 64 * 64].reshape(IMAGES)
    f = torch.nn.functional
    return {
        "transpose copy 4096x1024": lambda: x.T.contiguous(),
        "NCHW to NHWC copy 8x32x64x64": lambda: small.permute(0, 2, 3, 1).contiguous(),
        "concat two 4096x1024": lambda: torch.cat([x, x]),
        "sort rows 4096x1024": lambda: x.sort(1),
        "top 10 of rows 4096x1024": lambda: x.topk(10, 1),
        "gather 100k rows of 64": lambda: t.index_select(0, i),
        "scatter-add 100k rows of 64": lambda: t.index_add(0, i, v),
        "max pool k5 s2 d2, 2x32x512x512": lambda: f.max_pool2d(picture, 5, 2, dilation=2),
        "max pool k2, 2x32x512x512": lambda: f.max_pool2d(picture, 2),
        "average pool k3 s2, 2x32x512x512": lambda: f.avg_pool2d(picture, 3, 2),
        "bilinear to 128x128, 8x32x64x64": lambda: f.interpolate(
            small, (128, 128), mode="bilinear", align_corners=True
        ),
    }
