"""What happens in a run, as data for callbacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True)
class Started:
    """A run began, or went on from a checkpoint.

    Attributes:
        step: how many steps were made before.
        epoch: the epoch that is under way.
    """

    step: int
    epoch: int


@dataclass(frozen=True)
class Stepped:
    """A step ended."""

    step: int
    epoch: int


@dataclass(frozen=True)
class Validated:
    """Values of another split than that of training were logged."""

    step: int
    epoch: int
    split: str
    values: Mapping[str, object]


@dataclass(frozen=True)
class EpochEnded:
    """An epoch ended, what comes after its batches included."""

    step: int
    epoch: int


@dataclass(frozen=True)
class Saved:
    """A checkpoint is whole."""

    step: int
    path: Path
    reason: str


@dataclass(frozen=True)
class Measured:
    """Processor and memory were measured.

    Attributes:
        values: ``cpu`` in percent of all processors; ``memory`` and ``tensors`` in megabytes.
    """

    step: int
    epoch: int
    values: Mapping[str, float]


@dataclass(frozen=True)
class Stopped:
    """A run ended."""

    step: int
    reason: str


@dataclass(frozen=True)
class Failed:
    """An error ended a run."""

    step: int
    error: str


Event: TypeAlias = Started | Stepped | Validated | EpochEnded | Saved | Measured | Stopped | Failed
