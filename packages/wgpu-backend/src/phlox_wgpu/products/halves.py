"""Products of float32 on tensor cores, by three products of float16.

A kernel finds the scales of rows and of columns, the next one multiplies, one more adds the parts
up and takes the scales away. Where a line has no scale, a plain product writes over its tiles: the
GPU decides that, and nothing waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from phlox_tensor import float32

from .._array import GpuArray
from .._launch import Launch
from .._layout import Shape
from .._runtime import GpuDevice


@dataclass(frozen=True, slots=True)
class Halves:
    """The launches of a product, in order, and the lengths of the arrays between them."""

    scales: tuple[Launch, Launch]
    lines: tuple[int, int]
    product: Launch
    partial: int
    total: Launch
    plain: Launch

    def run(
        self,
        device: GpuDevice,
        pair: tuple[GpuArray, GpuArray],
        out: GpuArray,
        bias: GpuArray | None,
        place: Shape,
    ) -> None:
        """Record them; `place` is the offset and the stride of the bias."""
        found = [device.empty((count,), float32) for count in self.lines]
        for launch, x, scales in zip(self.scales, pair, found, strict=True):
            launch.run(device, [x], [scales])
        partial = device.empty((self.partial,), float32)
        self.product.run(device, [*pair, *found], [partial])
        more = [] if bias is None else [bias]
        self.total.run(device, [partial, *found, *more], [out], place)
        self.plain.run(device, [*pair, *more, *found], [out], place)
