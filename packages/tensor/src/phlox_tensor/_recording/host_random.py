"""What stands in the generators of random numbers of the host, which no recording sees."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterable
from typing import Any

import numpy as np


def host_random_state(generators: Iterable[Any] = ()) -> tuple[Any, ...]:
    """Return the state of ``random``, of ``np.random`` and of further generators of theirs."""
    common = random.getstate(), pickle.dumps(np.random.get_state(legacy=False))
    return *common, *map(_state_of, generators)


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return pickle.dumps(generator.get_state(legacy=False))
    bits = getattr(generator, "bit_generator", generator)
    return pickle.dumps(bits.state)
