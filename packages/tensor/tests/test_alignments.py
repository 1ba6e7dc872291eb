"""Losses over alignments beside the sum over every alignment, one by one."""

from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt

Array = np.ndarray[Any, Any]


def _logs(rng: np.random.Generator, *shape: int) -> Array:
    x = rng.standard_normal(shape)
    logs: Array = x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
    return logs


def _collapsed(path: tuple[int, ...], blank: int) -> list[int]:
    """Graves et al., 2006: repeats are one, then blanks are none."""
    return [label for label, _ in groupby(path) if label != blank]


@pytest.mark.parametrize("blank", [0, 1, 2])
def test_ctc_sums_over_all_paths(blank: int) -> None:
    rng = np.random.default_rng(blank)
    labels = [c for c in range(3) if c != blank]
    x = _logs(rng, 4, 8, 3)
    targets = rng.choice(labels, (8, 3))
    targets[0] = labels[0]  # repeats need blanks between them, so three do not fit in four
    counts, times = np.array([3, 0, 1, 2, 3, 2, 1, 0]), np.array([4, 4, 1, 3, 4, 4, 0, 0])
    times_, counts_ = pt.asarray(times), pt.asarray(counts)
    found = pt.ctc_loss(pt.asarray(x), pt.asarray(targets), times_, counts_, blank).numpy()
    for n in range(8):  # the last two have no steps: one way to no labels, none to others
        total = 0.0
        for path in product(range(3), repeat=int(times[n])):
            if _collapsed(path, blank) == targets[n, : counts[n]].tolist():
                total += float(np.exp(sum(x[t, n, c] for t, c in enumerate(path))))
        wanted = -np.log(total) if total else np.inf
        np.testing.assert_allclose(found[n], wanted, rtol=1e-9)


def test_rnnt_sums_over_all_paths() -> None:
    rng = np.random.default_rng(5)
    x = _logs(rng, 3, 3, 3, 4)
    targets = rng.integers(1, 4, (3, 2))
    times, counts = np.array([3, 2, 1]), np.array([2, 1, 0])
    times_, counts_ = pt.asarray(times), pt.asarray(counts)
    found = pt.rnnt_loss(pt.asarray(x), pt.asarray(targets), times_, counts_).numpy()
    for n in range(3):
        total = 0.0
        # A path goes on in time by a blank or in the labels by a label; the last step is a blank.
        for path in product((False, True), repeat=int(times[n] + counts[n])):
            t = u = 0
            log = 0.0
            for emits in path:
                if t >= times[n] or (emits and u >= counts[n]):
                    break
                log += x[n, t, u, targets[n, u] if emits else 0]
                t, u = (t, u + 1) if emits else (t + 1, u)
            else:
                if t == times[n] and u == counts[n] and not path[-1]:
                    total += float(np.exp(log))
        np.testing.assert_allclose(found[n], -np.log(total), rtol=1e-9)
