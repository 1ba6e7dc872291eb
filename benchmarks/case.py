"""What a benchmark is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Run = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes:
        name: what is measured.
        phlox: one run in phlox; must end with the work done.
        torch: the same in PyTorch, None without it.
        flops: floating-point operations of one run, 0 where the measure is time.
        bytes: bytes read and written by one run, 0 where the measure is not bandwidth.
    """

    name: str
    phlox: Run
    torch: Run | None = None
    flops: float = 0.0
    bytes: float = 0.0
