"""How far two results are apart: one measure for what is written, saved and imported."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

LEAST: Final = 1e-3  # what smaller results are measured by


def difference(found: Any, wanted: Any) -> float:
    """The largest difference as a share of the largest value wanted; infinite where shapes differ.

    Lists are compared item by item, what is absent with what is absent.
    """
    if isinstance(wanted, list):
        pairs = zip(found, wanted, strict=False)
        same = isinstance(found, list) and len(found) == len(wanted)
        return max((difference(a, b) for a, b in pairs), default=0.0) if same else float("inf")
    if wanted is None or found is None:
        return 0.0 if wanted is found else float("inf")
    if found.shape != wanted.shape or found.dtype.kind != wanted.dtype.kind:
        return float("inf")
    if not wanted.size:
        return 0.0
    one, two = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    finite = np.where(np.isfinite(two), np.abs(two), 0.0)
    with np.errstate(invalid="ignore"):
        off = np.where(same, 0.0, np.abs(one - two))
    worst = float(np.max(off))
    return float("inf") if np.isnan(worst) else worst / max(float(finite.max()), LEAST)
