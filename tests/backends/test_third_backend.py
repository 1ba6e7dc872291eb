"""What a backend has to bring: few entries, each a NumPy call or two; all else is an expansion."""

from __future__ import annotations

from pathlib import Path

import pytest

from phlox import REGISTRY
from phlox_tensor.testing import Check, checks
from tests.backends import numpy_calls
from tests.backends.numpy_calls import ENTRIES, NumpyCalls

MOST_ENTRIES = 50
MOST_LINES = 200


def test_a_backend_needs_few_entries_in_few_lines() -> None:
    assert len(ENTRIES) <= MOST_ENTRIES
    assert len(Path(numpy_calls.__file__).read_text().splitlines()) < MOST_LINES


def test_the_entries_are_the_ops_without_an_expansion() -> None:
    own = {n for n, op in REGISTRY.items() if op.expand is None and not op.op_class.hosted}
    assert set(ENTRIES) == own
    assert list(ENTRIES) == sorted(ENTRIES)


@pytest.mark.parametrize("check", checks(NumpyCalls()), ids=str)
def test_the_whole_suite_passes(check: Check) -> None:
    check()


# Its sum along columns adds one element after the other, so that means grow as wrong as that.
FAR = [each for each in checks(NumpyCalls(), far=True) if each.op.name not in ("mean", "var_mean")]


@pytest.mark.parametrize("check", FAR, ids=str)
def test_formulas_hold_for_rows_far_from_0_large_or_led_by_an_outlier(check: Check) -> None:
    check()
