"""How far to go along a direction."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, Final, NamedTuple

# Nocedal and Wright, 2006, chapter 3: what a decrease is worth, and how flat the end must be.
_DECREASE: Final = 1e-4
_FLAT: Final = 0.9


class Trial(NamedTuple):
    """A point on the line: how far it is, and the loss, its gradient and its slope there."""

    length: float
    loss: float
    grad: Any
    slope: float


def strong_wolfe(
    along: Callable[[float], Trial], start: Trial, length: float, most: int, narrow: float
) -> tuple[Trial, int]:
    """Return a point that fulfils the strong Wolfe conditions, or the best seen, and the trials.

    Args:
        along: the point at a length.
        start: the point at 0, where the slope is negative.
        length: the first that is tried.
        most: how many more may be tried.
        narrow: the width of an interval that is not searched further.
    """
    before, trial, rounds = start, along(length), 0
    low = high = trial
    while rounds < most:
        if not _is_lower(trial, start) or (rounds > 1 and trial.loss >= before.loss):
            low, high = before, trial
            break
        if _is_flat(trial, start):
            return trial, rounds + 1
        if trial.slope >= 0:
            low, high = before, trial
            break
        reach = (trial.length + 0.01 * (trial.length - before.length), trial.length * 10)
        before, trial = trial, along(_lowest(before, trial, reach))
        rounds += 1
    else:
        low, high = start, trial
    low, high = (low, high) if low.loss <= high.loss else (high, low)
    return _zoomed(along, start, low, high, rounds, most, narrow)


def _zoomed(
    along: Callable[[float], Trial],
    start: Trial,
    low: Trial,
    high: Trial,
    rounds: int,
    most: int,
    narrow: float,
) -> tuple[Trial, int]:
    """The search inside an interval that holds such a point; ``low`` is its better end."""
    was_near = False
    while rounds < most and abs(high.length - low.length) >= narrow:
        left, right = sorted((low.length, high.length))
        length = _lowest(low, high, (left, right))
        margin = 0.1 * (right - left)
        near = min(right - length, length - left) < margin
        if near and (was_near or length >= right or length <= left):
            # Too close to an end for the second time: a tenth inside instead.
            upper = abs(length - right) < abs(length - left)
            length, near = (right - margin if upper else left + margin), False
        was_near = near
        trial = along(length)
        rounds += 1
        if not _is_lower(trial, start) or trial.loss >= low.loss:
            low, high = (low, trial) if low.loss <= trial.loss else (trial, low)
            continue
        if _is_flat(trial, start):
            return trial, rounds + 1
        if trial.slope * (high.length - low.length) >= 0:
            high = low
        low = trial
    return low, rounds + 1


def _is_lower(trial: Trial, start: Trial) -> bool:
    """Whether the loss fell enough for the way; a NaN did not."""
    return trial.loss <= start.loss + _DECREASE * trial.length * start.slope


def _is_flat(trial: Trial, start: Trial) -> bool:
    return abs(trial.slope) <= -_FLAT * start.slope


def _lowest(a: Trial, b: Trial, reach: tuple[float, float]) -> float:
    """Where the cubic through both with their slopes is lowest, within reach; else the middle."""
    a, b = (a, b) if a.length <= b.length else (b, a)
    least, most = reach
    width = b.length - a.length
    if width:
        mean = a.slope + b.slope - 3 * (b.loss - a.loss) / width
        square = mean * mean - a.slope * b.slope
        if square >= 0:
            root = sqrt(square)
            below = b.slope - a.slope + 2 * root
            if below:
                found = b.length - width * ((b.slope + root - mean) / below)
                return min(max(found, least), most)
    return (least + most) / 2
