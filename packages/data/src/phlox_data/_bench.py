"""The command ``phlox data bench``: how fast a loader is with threads, processes and without."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple

from phlox_tensor import ArgumentError, PhloxError

from ._loader import DataLoader, needs_workers, with_workers
from ._processes import Processes

# A kind has to be so much faster to be taken over a simpler one: less is what machines differ by.
_WORTH = 1.1


class Speed(NamedTuple):
    """What was measured of one kind of workers."""

    workers: str
    first: float  # seconds until the first batch
    rate: float  # items a second after it


def measure(loader: DataLoader, seconds: float) -> Iterator[Speed | str]:
    """Yield the speed of a loader with each kind of workers, or why there is none.

    Each runs for so many seconds after its first batch, or an epoch if that is over sooner.
    """
    count = max(2, os.cpu_count() or 2)
    kinds: list[int | Processes] = [0, count]
    if sys.platform != "win32":
        kinds.append(Processes(count))
    for workers in kinds if needs_workers(loader) else kinds[:1]:
        name = f"data.{workers}" if isinstance(workers, Processes) else f"{workers}"
        try:
            with with_workers(loader, workers) as own:
                yield _speed(own, name, seconds)
        except ArgumentError as error:
            yield f"workers={name}: {error}"


def _speed(loader: DataLoader, name: str, seconds: float) -> Speed:
    began = perf_counter()
    items, first, now = 0, 0.0, began
    rows = loader.into_record()["batch"]
    for _ in loader:
        now = perf_counter()
        if not first:
            first, began = now - began, now
            continue
        items += rows
        if now - began > seconds:
            break
    return Speed(name, first, items / (now - began) if items else rows / first)


def advice(speeds: Sequence[Speed]) -> str:
    """Return what to write: the simplest kind that is nearly as fast as the best."""
    best = max(speed.rate for speed in speeds)
    taken = next(speed for speed in speeds if speed.rate * _WORTH >= best)
    times = taken.rate / speeds[0].rate
    faster = "" if taken is speeds[0] else f", {times:.1f} times as fast as without"
    return f"take workers={taken.workers}{faster}"


def _found(place: str) -> DataLoader:
    module, _, name = place.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = import_module(module)
        for part in (name or "loader").split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        hint = "phlox data bench train:loader, of train.py beside you"
        raise ArgumentError("bench", "no such loader", got=error, hint=hint) from error
    finally:
        sys.path.pop(0)
    loader = found if isinstance(found, DataLoader) else found() if callable(found) else found
    if not isinstance(loader, DataLoader):
        got, expected = type(loader).__name__, "a DataLoader, or a function that makes one"
        raise ArgumentError("bench", f"{place} is no loader", got=got, expected=expected)
    return loader


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="phlox data", description=(__doc__ or "").replace("`", "")
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    bench = commands.add_parser("bench", help="measure a loader, and say which workers to take")
    bench.add_argument("loader", help="module:name, of a DataLoader or a function that makes one")
    bench.add_argument("--seconds", type=float, default=5.0, help="for each kind of workers")
    options = parser.parse_args(argv)
    speeds = []
    try:
        loader = _found(options.loader)
        print(f"{'workers':<20} {'first batch':>12} {'items/s':>12}")
        for speed in measure(loader, options.seconds):
            if isinstance(speed, str):
                print(speed)
                continue
            speeds.append(speed)
            print(f"{speed.workers:<20} {speed.first:>10.3f} s {speed.rate:>12,.0f}", flush=True)
    except PhloxError as error:
        print(error, file=sys.stderr)
        return 2
    if not needs_workers(loader):
        print("a batch is one gather of arrays, which workers do not make faster")
    print(advice(speeds))
    return 0
