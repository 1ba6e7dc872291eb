"""Formulas of ops without a kernel of their own, which are bound to what decides about a call."""

from __future__ import annotations

import numpy as np

import phlox_tensor as pt
from phlox_kernels import Cpu
from phlox_tensor._programs.formula import MOST_KEPT

_X = np.asarray([-0.5, 0.0, 0.25, 2.0], np.float32)


def test_a_formula_follows_attributes_shapes_and_types() -> None:
    for device in (Cpu(), Cpu(float="float64")):
        x = pt.asarray(_X, dtype=device.default_float, device=device)
        for own in (x, x.reshape((2, 2)), x):
            for limit, value in ((0.1, 0.0), (0.1, -0.0), (1.0, 3.0), (0.1, 0.0)):
                found = own.threshold(limit, value)
                assert found.shape == own.shape
                assert found.dtype == own.dtype
                expected = np.where(own.numpy() > limit, own.numpy(), own.dtype.numpy.type(value))
                assert found.numpy().tobytes() == expected.tobytes()


def test_numbers_may_stand_for_operands() -> None:
    x = pt.asarray(_X, device=Cpu())
    np.testing.assert_array_equal(pt.copysign(x, -1.0).numpy(), np.copysign(_X, np.float32(-1)))
    np.testing.assert_array_equal(pt.copysign(2, x).numpy(), np.copysign(np.float32(2), _X))


def test_calls_with_ever_new_numbers_are_not_kept_without_end() -> None:
    device = Cpu()
    entry = device.ops["threshold"]
    assert entry.__closure__ is not None
    kept = dict(zip(entry.__code__.co_freevars, entry.__closure__, strict=True))["bound"]
    x = pt.asarray(_X, device=device)
    for value in range(MOST_KEPT + 5):
        assert device.ops.threshold(x.primitive, float(value), 1.0) is not None
    assert 0 < len(kept.cell_contents) <= MOST_KEPT
