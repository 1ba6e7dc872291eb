"""Recurrences, windows over lines and volumes, sampled images."""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Case, Run
from phlox import nn

SEQUENCE, STATE = (16, 64, 64), 64
LINES, VOLUMES = (8, 32, 4096), (2, 8, 32, 32, 32)
IMAGES = (4, 16, 128, 128)


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    rng = np.random.default_rng(0)
    shapes = {"sequence": SEQUENCE, "lines": LINES, "volumes": VOLUMES, "images": IMAGES}
    given: dict[str, Any] = {
        name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()
    }
    given["line"] = rng.standard_normal((32, 32, 5), np.float32)
    given["volume"] = rng.standard_normal((16, 8, 3, 3, 3), np.float32)
    given["back"] = rng.standard_normal((8, 4, 3, 3, 3), np.float32)
    given["grid"] = rng.uniform(-1, 1, (4, 128, 128, 2)).astype(np.float32)
    twins: dict[str, Run] = _torch(given) if with_torch else {}
    return [Case(name, run, twins.get(name), times=1.0) for name, run in _phlox(given).items()]


def _phlox(given: dict[str, Any]) -> dict[str, Run]:
    x = {name: px.asarray(array, device="cpu") for name, array in given.items()}
    device = px.Autodiff(px.Cpu())
    sequence = px.asarray(given["sequence"], device=device)
    layers = {
        "lstm": nn.Lstm(SEQUENCE[2], STATE, device=device),
        "gru": nn.Gru(SEQUENCE[2], STATE, device=device),
    }
    runs: dict[str, Run] = {}
    for name, layer in layers.items():
        runs |= _recurrent(name, layer, sequence, x["sequence"])
    return runs | {
        "conv1d 32->32 5, 8x4096": lambda: px.conv1d(x["lines"], x["line"], padding=2),
        "max pool 1d k4": lambda: px.max_pool1d(x["lines"], 4),
        "average pool 1d k4": lambda: px.avg_pool1d(x["lines"], 4),
        "transposed conv1d": lambda: px.conv_transpose1d(x["lines"], x["line"], stride=2),
        "conv3d 8->16 3, 2x32x32x32": lambda: px.conv3d(x["volumes"], x["volume"], padding=1),
        "transposed conv3d": lambda: px.conv_transpose3d(x["volumes"], x["back"], stride=2),
        "max pool 3d k2": lambda: px.max_pool3d(x["volumes"], 2),
        "average pool 3d k2": lambda: px.avg_pool3d(x["volumes"], 2),
        "bicubic to half, antialias": lambda: px.interpolate(
            x["images"], (64, 64), "cubic", antialias=True
        ),
        "bicubic to double": lambda: px.interpolate(x["images"], (256, 256), "cubic"),
        "grid sample 4x16x128x128": lambda: px.grid_sample(x["images"], x["grid"]),
    }


def _recurrent(name: str, layer: Any, tracked: px.Tensor, x: px.Tensor) -> dict[str, Run]:
    inner = layer.valid()
    return {
        f"{name}, b16, 64 steps": lambda: inner(x),
        f"{name}, with gradients": lambda: layer(tracked)[0].sum().backward(),
    }


def _torch(given: dict[str, Any]) -> dict[str, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    functional: Any = torch.nn.functional
    x = {name: torch.from_numpy(array) for name, array in given.items()}
    runs: dict[str, Run] = {}
    for name in ("lstm", "gru"):
        layer = getattr(torch.nn, name.upper())(SEQUENCE[2], STATE, batch_first=True)

        def forward(layer: Any = layer) -> None:
            with torch.no_grad():
                layer(x["sequence"])

        def both(layer: Any = layer) -> None:
            layer.zero_grad()
            layer(x["sequence"])[0].sum().backward()

        runs |= {f"{name}, b16, 64 steps": forward, f"{name}, with gradients": both}
    sample = functional.grid_sample
    return runs | {
        "conv1d 32->32 5, 8x4096": lambda: functional.conv1d(x["lines"], x["line"], padding=2),
        "max pool 1d k4": lambda: functional.max_pool1d(x["lines"], 4),
        "average pool 1d k4": lambda: functional.avg_pool1d(x["lines"], 4),
        "transposed conv1d": lambda: functional.conv_transpose1d(x["lines"], x["line"], stride=2),
        "conv3d 8->16 3, 2x32x32x32": lambda: functional.conv3d(
            x["volumes"], x["volume"], padding=1
        ),
        "transposed conv3d": lambda: functional.conv_transpose3d(x["volumes"], x["back"], stride=2),
        "max pool 3d k2": lambda: functional.max_pool3d(x["volumes"], 2),
        "average pool 3d k2": lambda: functional.avg_pool3d(x["volumes"], 2),
        "bicubic to half, antialias": lambda: functional.interpolate(
            x["images"], (64, 64), mode="bicubic", antialias=True
        ),
        "bicubic to double": lambda: functional.interpolate(
            x["images"], (256, 256), mode="bicubic"
        ),
        "grid sample 4x16x128x128": lambda: sample(x["images"], x["grid"], align_corners=False),
    }
