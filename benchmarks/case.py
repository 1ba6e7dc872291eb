"""What a benchmark is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Run = Callable[[], object]


@dataclass(frozen=True)
class Words:
    """What a framework calls the functions that a benchmark of several is written in.

    Attributes:
        top: the largest of the last axis, which is kept.
    """

    exp: Callable[[Any], Any]
    relu: Callable[[Any], Any]
    sqrt: Callable[[Any], Any]
    square: Callable[[Any], Any]
    top: Callable[[Any], Any]


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes:
        name: what is measured.
        phlox: one run in phlox; must end with the work done.
        other: the same in PyTorch, or in what the group is compared with; None without it.
        flops: floating-point operations of one run, 0 where the measure is time.
        bytes: bytes read and written by one run, 0 where the measure is not bandwidth.
        peak: which measured peak the operations are a share of.
        share: the wanted share of peak, 0 for none.
        times: the wanted ratio to the other's time, 0 for none; where a number for full-width
            AVX-512 follows, it counts on such a machine.
        times_full_width: see ``times``.
        seconds: how long it may take, 0 for no limit.
        prepare: called before each run, outside the time; then runs are not repeated to be longer.
        others: the same in further peers, by name.
    """

    name: str
    phlox: Run
    other: Run | None = None
    flops: float = 0.0
    bytes: float = 0.0
    peak: str = "float32"
    share: float = 0.0
    times: float = 0.0
    times_full_width: float = 0.0
    seconds: float = 0.0
    prepare: Run | None = None
    others: Mapping[str, Run] = field(default_factory=dict)


@dataclass(frozen=True)
class Network:
    """A network of two layers and what it is trained with.

    Attributes:
        sizes: how wide its input, its hidden layer and its output are.
        images: (batch, first of the sizes), float32.
        labels: (batch,), int64.
    """

    sizes: tuple[int, int, int]
    images: np.ndarray
    labels: np.ndarray


def warmed(run: Run) -> Run:
    """Return a run after three of it, behind which everything is recorded and compiled."""
    for _ in range(3):
        run()
    return run
