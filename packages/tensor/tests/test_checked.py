"""``Checked(a, b)`` computes on one device and says where another one parts from it."""

from __future__ import annotations

import pickle
from typing import Any, final

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import Checked, Decorator, DisagreementError, Entry, Numpy, Op


@final
class Faulty(Decorator):
    """A device whose hyperbolic tangent is a little wrong far out, and whose sort is not stable."""

    name = "faulty"

    def decorate(self, op: Op, inside: Entry) -> Entry:
        if op.name == "tanh":
            return lambda x: np.where(np.abs(x) > 2, inside(x) * np.float32(0.9999), inside(x))
        if op.name == "argsort":
            return lambda x, axis, descending: inside(x, axis, descending) * 0
        return inside


def test_devices_that_agree_compute_as_one() -> None:
    device = Checked(Numpy(), Numpy())
    x = pt.random.normal((300, 5), device=device)
    y = (x @ x.T).softmax(axis=1).sum(axis=0).sort()
    assert y.device is device
    plain = x.to_device(Numpy())
    assert y.tolist() == (plain @ plain.T).softmax(axis=1).sum(axis=0).sort().tolist()


def test_the_op_and_its_operands_are_named_where_devices_part() -> None:
    device = Checked(Numpy(), Faulty(Numpy()))
    small = pt.asarray([0.5, 1.5], device=device)
    assert small.tanh().shape == (2,)
    where = r"\[tanh\] Numpy\(\) and Faulty\(Numpy\(\)\) part at float32\[3\]"
    with pytest.raises(DisagreementError, match=where) as caught:
        pt.asarray([0.5, 1.5, 2.5], device=device).tanh()
    (operand,) = caught.value.operands
    assert isinstance(operand, pt.Tensor)
    assert operand.tolist() == [0.5, 1.5, 2.5]
    with pytest.raises(DisagreementError, match=r"\[argsort\]"):
        pt.asarray([3.0, 1.0], device=device).argsort()


def test_differences_do_not_add_up() -> None:
    device = Checked(Numpy(), Faulty(Numpy()))
    x = pt.asarray([0.3], device=device)
    for _ in range(50):
        x = x.exp().log() * 1.01
    assert x.shape == (1,)


def test_sums_of_many_terms_are_given_the_error_of_their_terms() -> None:
    @final
    class Backwards(Decorator):
        name = "backwards"

        def decorate(self, op: Op, inside: Entry) -> Entry:
            if op.name != "sum":
                return inside
            return lambda x, axis, keepdims, dtype: np.sum(
                x[::-1], axis=axis, keepdims=keepdims, dtype=np.float32
            )

    device = Checked(Numpy(), Backwards(Numpy()))
    x = pt.random.normal((4096, 3), device=device) * 1000.0
    assert x.sum(axis=0).shape == (3,)


def test_random_numbers_are_one_stream() -> None:
    device = Checked(Numpy(), Numpy())
    assert pt.random.uniform((5,), device=device).shape == (5,)


def test_an_error_of_disagreement_crosses_processes() -> None:
    error = DisagreementError("tanh", "part", got=1, expected=2)
    again: Any = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)


def test_zeros_of_results_that_are_rounded_on_the_way_may_have_either_sign() -> None:
    class Flipped(Decorator):
        """Gives zeros of the other sign."""

        name = "flipped"

        def decorate(self, op: Op, inside: Entry) -> Entry:
            flips = op.name in ("gelu", "max", "sqrt", "sum")
            return (lambda *args: -inside(*args)) if flips else inside

    device = Checked(Flipped(Numpy()), Numpy())
    zeros = pt.zeros((2, 2), device=device)
    assert zeros.sum().item() == zeros.max().item() == zeros.gelu()[0, 0].item() == 0
    with pytest.raises(DisagreementError, match=r"\[sqrt\]"):
        zeros.sqrt()
