"""Interleaved timing: A B A B …, medians, so that a drifting machine favours neither.

On a busy machine: one thread, the time of the processor, and the least of many samples.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from statistics import median

ROUNDS = 15
LEAST_ROUNDS = 3
LEAST_PREPARED = 5  # of samples that are one run each
LEAST_SECONDS = 0.03
LONGEST_SECONDS = 6.0
# The threads of OpenMP, under PyTorch, spin for milliseconds after their work: on the cores that
# the other side needs next.
SETTLE_SECONDS = 0.02
# By whether the machine is busy: that of the rows, and of the peak that they are a share of.
CLOCKS = {False: time.perf_counter, True: time.process_time}


def _once(
    run: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    start = clock()
    for _ in range(repeats - 1):
        run()
    result = run()
    seconds = (clock() - start) / repeats
    del result  # giving back its memory is no part of the last run
    return seconds


def _repeats(run: Callable[[], object]) -> int:
    """How often to run so that one sample is long enough for the clock."""
    run()
    count = 1
    while True:
        seconds = _once(run, count) * count
        if seconds >= LEAST_SECONDS or count >= 1 << 20:
            return count
        count = max(2 * count, int(count * LEAST_SECONDS / max(seconds, 1e-7)))


def interleaved(
    runs: Sequence[Callable[[], object]], prepare: Callable[[], object] | None = None
) -> list[float]:
    """Return the median seconds of each run; the samples take turns.

    With ``prepare`` each sample is one run behind a call of it, and no run comes before.
    """
    counts = [1 if prepare else _repeats(run) for run in runs]
    samples: list[list[float]] = [[] for _ in runs]
    gc.collect()
    least = LEAST_PREPARED if prepare else LEAST_ROUNDS
    start = time.perf_counter()
    for _ in range(ROUNDS):
        for place, (run, count) in enumerate(zip(runs, counts, strict=True)):
            time.sleep(SETTLE_SECONDS)
            (prepare or run)()
            samples[place].append(_once(run, count))
        if time.perf_counter() - start > LONGEST_SECONDS and len(samples[0]) >= least:
            break
    return [median(values) for values in samples]


def least(runs: Sequence[Callable[[], object]], rounds: int = 25) -> list[float]:
    """Return the least processor time of each run, in seconds; the samples take turns.

    For runs of one thread: what another program takes is not counted, only what it evicts.
    """
    counts = [_repeats(run) for run in runs]
    found = [float("inf")] * len(runs)
    gc.collect()
    start = time.perf_counter()
    for done in range(rounds):
        for place, (run, count) in enumerate(zip(runs, counts, strict=True)):
            run()
            found[place] = min(found[place], _once(run, count, CLOCKS[True]))
        if time.perf_counter() - start > LONGEST_SECONDS and done + 1 >= LEAST_ROUNDS:
            break
    return found
