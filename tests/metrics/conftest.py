"""Metrics compute on the reference, in double precision, and are compared with other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from phlox_tensor import Numpy, asarray, use_device
from phlox_train.metrics.metric import read


@pytest.fixture(params=[20, pytest.param(200, marks=pytest.mark.long)])
def cases(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(autouse=True)
def _on_the_reference() -> Iterator[None]:
    with use_device(Numpy(float="float64")):
        yield


def in_pieces(metric: Any, given: tuple[Any, ...], chance: np.random.Generator) -> Any:
    """The value of examples that come in up to five batches, some of them empty, in any order."""
    count = len(given[0])
    cuts = [0, *sorted(chance.integers(0, count + 1, chance.integers(0, 5)).tolist()), count]
    state = None
    for i in chance.permutation(len(cuts) - 1):
        pieces = [x[cuts[i] : cuts[i + 1]] for x in given]
        tensors = [asarray(x) if isinstance(x, np.ndarray) else x for x in pieces]
        state = metric.merge(state, read(metric.part(*tensors)))
    assert state is not None
    assert all(isinstance(array, np.ndarray) for array in state.values())
    return metric.value(state)


def compare(
    metric: Any,
    draw: Callable[[np.random.Generator, int], tuple[Any, ...]],
    oracle: Callable[..., Any],
    cases: int,
) -> None:
    """Compare a metric with an oracle over random cases, split and merged at random."""
    for seed in range(cases):
        chance = np.random.default_rng(seed)
        given = draw(chance, int(chance.integers(2, 40)))
        got = np.asarray(in_pieces(metric, given, chance))
        expected = np.asarray(oracle(*given), np.float64)
        assert got.shape == expected.shape, f"seed {seed}"
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6, err_msg=f"seed {seed}")


@pytest.fixture
def check(cases: int) -> Callable[..., None]:
    return partial(compare, cases=cases)
