"""Products on tensor cores: whether there are some, and which tile they take."""

from __future__ import annotations

import math

import numpy as np

from phlox_tensor import float16

from .._runtime import GpuDevice
from ..wgsl.cooperative import SQUARE, Cooperative, CooperativeTile, cooperative_source
from .plans import ENOUGH_GROUPS

_SMALL = (64, 64, 32, 32, 32)
# Tiles that are faster with enough workgroups, best first.
_LARGE = ((128, 256, 32, 64, 64), (128, 128, 32, 64, 64))
_HALVES = (128, 128, 32, 64, 32)  # sums of a tile beside sums of all: twice the registers
_PARTIAL_FROM = 512  # inner elements from which a second kernel may add up parts of few tiles
_LEAST = 32  # rows, columns and inner elements below which a tile is mostly padding


def tile_of(
    device: GpuDevice, m: int, n: int, k: int, batches: int
) -> tuple[CooperativeTile, bool] | None:
    """The tile for a product of float16, and whether it gives whole squares of float32.

    None where tensor cores do not take the product.
    """
    if min(m, n, k) < _LEAST or n % 4 or not lanes_of(device):
        return None
    memory = device.limits["max-compute-workgroup-storage-size"]
    for shape in (*_LARGE, _SMALL):
        tile = CooperativeTile(*shape, device.tensor_lanes or 0)
        rows, columns = tile.cut(m, n)
        groups = rows * columns * batches
        if shape is not _SMALL and groups < ENOUGH_GROUPS:
            continue
        whole = not (m % tile.rows or n % tile.columns)
        partial = whole and k >= _PARTIAL_FROM and groups < ENOUGH_GROUPS
        if tile.workgroup_bytes(partial=partial) <= memory:
            return tile, partial
    return None


def halves_tile(device: GpuDevice, m: int, n: int, k: int, batches: int) -> CooperativeTile | None:
    """The tile for a product of float32 by halves; None where a plain product is done first."""
    if not device.by_halves or n % 4 or k < _PARTIAL_FROM or not lanes_of(device):
        return None
    tile = CooperativeTile(*_HALVES, device.tensor_lanes or 0)
    memory = device.limits["max-compute-workgroup-storage-size"]
    enough = math.prod(tile.cut(m, n)) * batches >= ENOUGH_GROUPS and min(m, n) >= tile.rows
    return tile if enough and tile.workgroup_bytes(partial=True, halves=True) <= memory else None


def has_tensor_cores(device: GpuDevice) -> bool:
    """Whether products of float16 may run on them."""
    return lanes_of(device) > 0


def lanes_of(device: GpuDevice) -> int:
    """Threads of a subgroup that multiplies; 0 where none does, or a first product was wrong."""
    if device.tensor_lanes is None:
        engine = device.engine
        offered = (SQUARE, SQUARE, SQUARE, "f16", "f32") in engine.products
        fits = offered and {"shader-f16", "cooperative-matrix"} <= device.features
        device.tensor_lanes = engine.lanes if fits and _multiplies(device) else 0
    return device.tensor_lanes


def _multiplies(device: GpuDevice) -> bool:
    """Whether a product of small whole numbers is the one of the host."""
    if not device.engine.lanes:
        return False
    tile = CooperativeTile(*_SMALL, device.engine.lanes)
    spec = Cooperative(tile, a_deep=True, b_deep=False, ragged=False, whole=True, bias=False)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, (64, 64)).astype(np.float16) for _ in range(2))
    out = device.empty((64, 64), float16)
    numbers = (1, 1, 1, 1, 2, 2, 64, 64, 64, 1, 0, 0, 0, 16, 0, 0, 0, 0, 0, 16)
    device.launch(
        (cooperative_source, spec), [device.upload(x, float16) for x in (a, b)], [out], numbers, 1
    )
    return np.array_equal(device.read(out), a @ b)
