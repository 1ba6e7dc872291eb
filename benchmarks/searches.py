"""Counts, searches, orders, repeats, distances of points, overlaps of boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Case, Run

SIZE = 1 << 18
ROWS = (512, 512)
POINTS = (500, 64)
BOXES = 1000


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    rng = np.random.default_rng(0)
    corners = rng.uniform(0, 100, (BOXES, 2)).astype(np.float32)
    given: dict[str, Any] = {
        "line": rng.standard_normal(SIZE, np.float32),
        "whole": rng.integers(0, 1000, SIZE),
        "rows": rng.standard_normal(ROWS, np.float32),
        "points": rng.standard_normal(POINTS, np.float32),
        "weights": rng.uniform(0, 1, 1000).astype(np.float32),
        "boxes": np.concatenate([corners, corners + rng.uniform(5, 25, (BOXES, 2))], 1, dtype="f4"),
        "scores": rng.uniform(0, 1, BOXES).astype(np.float32),
    }
    twins: dict[str, Run] = _torch(given) if with_torch else {}
    return [Case(name, run, twins.get(name), times=1.0) for name, run in _phlox(given).items()]


def _phlox(given: dict[str, Any]) -> dict[str, Run]:
    line, whole, rows, points, weights, boxes, scores = (
        px.asarray(a, device="cpu") for a in given.values()
    )
    ordered, some = line.sort(), whole[:10_000]
    return {
        "argsort of 262144": lambda: px.argsort(line),
        "bincount of 262144": lambda: px.bincount(whole),
        "cdist 500x500x64": lambda: px.cdist(points, points),
        "cdist 500x500x64, p=1": lambda: px.cdist(points, points, p=1.0),
        "cummax of 512 rows": lambda: px.cummax(rows, axis=1),
        "cumprod of 512 rows": lambda: px.cumulative_prod(rows, axis=1),
        "histogram of 262144": lambda: px.histogram(line, 50),
        "isin of 262144 in 10000": lambda: px.isin(whole, some),
        "median of 262144": lambda: px.median(line),
        "median of 512 rows": lambda: px.median(rows, axis=1),
        "mode of 512 rows": lambda: px.mode(rows),
        "multinomial 10000 of 1000": lambda: px.random.multinomial(weights, 10_000),
        "nms of 1000": lambda: px.nms(boxes, scores),
        "nonzero of 262144": lambda: px.nonzero(line > 0),
        "norm of 512 rows": lambda: px.linalg.vector_norm(rows, axis=1),
        "quantile of 262144": lambda: px.quantile(line, 0.3),
        "repeat by 2": lambda: px.repeat(rows, 2, axis=1),
        "searchsorted 262144": lambda: px.searchsorted(ordered, line),
        "unique of 262144": lambda: px.unique_values(whole),
        "unique of 262144, with inverse": lambda: px.unique_inverse(whole),
    }


def _torch(given: dict[str, Any]) -> dict[str, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    line, whole, rows, points, weights, boxes, scores = (
        torch.from_numpy(a) for a in given.values()
    )
    ordered, some = line.sort().values, whole[:10_000]
    return {
        "argsort of 262144": lambda: torch.argsort(line),
        "bincount of 262144": lambda: torch.bincount(whole),
        "cdist 500x500x64": lambda: torch.cdist(points, points),
        "cdist 500x500x64, p=1": lambda: torch.cdist(points, points, p=1.0),
        "cummax of 512 rows": lambda: torch.cummax(rows, 1),
        "cumprod of 512 rows": lambda: torch.cumprod(rows, 1),
        "histogram of 262144": lambda: torch.histogram(line, 50),
        "isin of 262144 in 10000": lambda: torch.isin(whole, some),
        "median of 262144": lambda: torch.median(line),
        "median of 512 rows": lambda: torch.median(rows, 1),
        "mode of 512 rows": lambda: torch.mode(rows),
        "multinomial 10000 of 1000": lambda: torch.multinomial(weights, 10_000, replacement=True),
        "nms of 1000": lambda: _greedy(torch, boxes, scores, 0.5),
        "nonzero of 262144": lambda: torch.nonzero(line > 0),
        "norm of 512 rows": lambda: torch.linalg.vector_norm(rows, dim=1),
        "quantile of 262144": lambda: torch.quantile(line, 0.3),
        "repeat by 2": lambda: rows.repeat_interleave(2, 1),
        "searchsorted 262144": lambda: torch.searchsorted(ordered, line),
        "unique of 262144": lambda: torch.unique(whole),
        "unique of 262144, with inverse": lambda: torch.unique(whole, return_inverse=True),
    }


def _greedy(torch: Any, boxes: Any, scores: Any, threshold: float) -> Any:
    """Torchvision's nms in PyTorch's own words, since it is a package of its own."""
    x1, y1, x2, y2 = boxes.unbind(1)
    areas = (x2 - x1) * (y2 - y1)
    order, kept = scores.argsort(descending=True), []
    while len(order):
        first, order = order[0], order[1:]
        kept.append(first)
        width = (x2[order].minimum(x2[first]) - x1[order].maximum(x1[first])).clamp(min=0)
        height = (y2[order].minimum(y2[first]) - y1[order].maximum(y1[first])).clamp(min=0)
        common = width * height
        order = order[common / (areas[order] + areas[first] - common) <= threshold]
    return torch.stack(kept)
