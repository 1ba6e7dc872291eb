"""What check mode takes for equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_fusion import compile
from phlox_fusion._bisect import alike


class Loose(pt.Decorator):
    """A device whose kernels may round a product and a sum once."""

    name = "loose"

    def __init__(self, backend: pt.Backend) -> None:
        """Wrap a backend."""
        super().__init__(backend)
        self.strict = False

    def decorate(self, op: pt.Op, inside: Any) -> Any:
        """Change nothing."""
        return inside


def test_floats_of_a_device_that_is_not_strict_may_differ_in_the_last_bits() -> None:
    loose, strict = Loose(pt.Numpy()), pt.Numpy()
    own = np.array([1.0, 2.0, np.inf, np.nan], np.float32)
    near, far = own + np.float32(1e-7), own * np.float32(1.01)
    assert alike(near, own, pt.float32, loose)
    assert not alike(near, own, pt.float32, strict)
    assert not alike(far, own, pt.float32, loose)
    assert not alike(own[::-1].copy(), own, pt.float32, loose)
    whole = np.arange(3)
    assert not alike(whole, whole + 1, pt.int64, loose)


def test_an_op_that_fails_raises_as_it_does_without_a_check() -> None:
    fast = compile(lambda x, i: pt.take(x, i, axis=0), check=True)
    x, good, bad = pt.ones(3), pt.asarray([0, 2]), pt.asarray([0, 9])
    for _ in range(3):
        fast(x, good)
    with pytest.raises(pt.IndexOutOfRangeError) as caught:
        fast(x, bad)
    assert not any("phlox_fusion>" in str(entry.path) for entry in caught.traceback)
