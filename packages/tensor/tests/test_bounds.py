"""The bounds of ops in narrow types: what is plainly wrong is outside of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, final

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import REGISTRY, Decorator, Entry, Numpy, Op
from phlox_tensor._device.compare import narrow_error
from phlox_tensor._op import records
from phlox_tensor.testing import Check, checks, disagreement

NARROW = ("bfloat16", "float16")


@final
class Scaled(Decorator):
    """A device on which the finite results of one op, where they are floats, are times a factor."""

    name = "scaled"

    def __init__(self, op: str, factor: float) -> None:
        super().__init__(Numpy(), op, factor)
        self.scaled, self.factor = op, factor

    def decorate(self, op: Op, inside: Entry) -> Entry:
        """Return the entry, or what it gives scaled."""

        def run(*args: Any) -> Any:
            out = inside(*args)
            return tuple(map(self._times, out)) if op.signature.several else self._times(out)

        return run if op.name == self.scaled else inside

    def _times(self, primitive: Any) -> Any:
        if self.inner.dtype_of(primitive).kind != "Float":
            return primitive
        factor = np.asarray(self.factor, primitive.dtype)
        return np.where(np.isfinite(primitive), primitive * factor, primitive)


def scaled(factor: float) -> list[Check]:
    """The checks of all ops that give floats of a narrow type, each on its own device."""
    return [
        check
        for op in REGISTRY.values()
        if any(result.kind in ("Any", "Float", "Num") for result in op.signature.results)
        for check in checks(Scaled(op.name, factor), [op.name])
        if check.dtype.name in NARROW
    ]


@pytest.mark.parametrize("check", scaled(0.0), ids=str)
def test_zeros_are_no_results(check: Check) -> None:
    with np.errstate(all="ignore"), pytest.raises(AssertionError, match="differ"):
        check()


@pytest.mark.parametrize("check", scaled(0.9), ids=str)
def test_a_tenth_less_is_another_result(check: Check) -> None:
    with np.errstate(all="ignore"), pytest.raises(AssertionError, match="differ"):
        check()


@pytest.mark.parametrize("name", NARROW)
def test_narrow_results_are_rounded_and_no_more(name: str) -> None:
    dtype = pt.DTYPES[name]
    eps = float(pt.finfo(dtype).eps)
    want = np.asarray([1.0])
    for error, problem in ((2 * eps, False), (4 * eps, True)):
        got = np.asarray([1.0 + error]).astype(dtype.numpy)
        found = disagreement(got, want, ulp=1000, atol=0, rounded=0.0)
        assert (found is not None) is problem, error
        assert disagreement(got, want, ulp=1000, atol=0, rounded=2.0) is None
        assert disagreement(got, want, ulp=4, atol=0) is None
    off = np.asarray([eps]).astype(dtype.numpy)
    assert disagreement(off, want * 0, ulp=1, atol=1, rounded=0.0) is not None
    assert disagreement(off, want * 0, ulp=1, atol=1, rounded=1.0) is None


def test_ops_of_users_are_off_by_the_epsilon_of_their_type() -> None:
    exp, rnn = REGISTRY["exp"], REGISTRY["rnn"]
    assert (narrow_error(exp), narrow_error(rnn)) == (0.0, rnn.tested.rounded)
    own = replace(exp, name="exp_of_mine")
    assert narrow_error(own) is None
    assert narrow_error(replace(own, tested=records.Tested(rounded=1.0))) == 1.0
