"""Calls that would do nothing, or lose something, say so."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import ArgumentError, Meta, Mixed, Numpy, Profile, tree


def test_a_masked_array_keeps_its_mask_or_is_refused() -> None:
    masked = np.ma.MaskedArray([1.0, 2.0], mask=[False, True])
    with pytest.raises(ArgumentError, match="mask of the array would be lost: got 1 masked"):
        pt.asarray(masked)
    assert pt.asarray(masked.filled(0.0)).tolist() == [1.0, 0.0]


def test_a_profile_of_no_call_is_refused(tmp_path: Path) -> None:
    profile = Profile(Numpy())
    with profile:
        pt.ones(3, device=Numpy()).sum()
    calls: list[Callable[[], Any]] = [profile.report, lambda: profile.save_trace(tmp_path / "t")]
    for call in calls:
        with pytest.raises(ArgumentError, match="no call of this device was counted"):
            call()
    with profile:
        pt.ones(3, device=profile).sum()
    assert profile.report().by_op


@pytest.mark.parametrize("cls", [int, float, str, pt.Tensor, Meta])
def test_what_holds_nothing_is_registered_as_no_container(cls: type) -> None:
    with pytest.raises(ArgumentError, match="a leaf holds nothing"):
        tree.register(cls, lambda x: ({}, x), lambda _, x: x)
    assert tree.map(lambda x: x + 1, [1, 2]) == [2, 3]


@pytest.mark.parametrize(
    "product",
    [
        lambda a, b: a @ b,
        lambda a, b: pt.einsum("ij,jk->ik", a, b),
        lambda a, b: pt.tensordot(a, b, 1),
    ],
)
def test_products_by_any_name_are_narrow_on_a_mixed_device(product: Callable[..., Any]) -> None:
    device = Mixed(Numpy(), "bfloat16")
    fine = 1.0 + 2.0**-12  # 1 in bfloat16
    a, b = ([[fine, 0.0], [0.0, fine]], [[1.0, 0.0], [0.0, 1.0]])
    wide = product(pt.asarray(a, device=Numpy()), pt.asarray(b, device=Numpy()))
    narrow = product(pt.asarray(a, device=device), pt.asarray(b, device=device))
    assert wide.dtype == narrow.dtype == pt.float32
    assert float(wide.max()) == fine
    assert float(narrow.max()) == 1.0


def odd(name: str) -> Any:
    """A function that type checkers do not look at."""
    return getattr(pt, name)


def test_a_backend_that_inherits_is_called_by_its_own_name() -> None:
    cls: Any = type("Inherited", (Numpy,), {"name": "inherited"})
    assert repr(cls()) == "Inherited()"
    x = pt.ones(2, device=cls())
    with pytest.raises(pt.DeviceError, match=r"got Inherited\(\) and Numpy\(\)"):
        x.add(pt.ones(2, device=Numpy()))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: pt.arange(0, 1, 1e-40),
        lambda x: pt.arange(0, 10, step=2.0**-80),
        lambda x: x[[[0], [1, 2]]],
        lambda x: x[[None]],
        lambda x: x.at[[[0], [1, 2]]].set(1.0),
        lambda x: odd("allclose")(x, None),
        lambda x: odd("allclose")("text", x),
    ],
    ids=["many", "more", "ragged", "no number", "ragged at", "none", "text"],
)
def test_what_python_or_numpy_would_refuse_in_their_own_words_says_the_op(
    call: Callable[[Any], Any],
) -> None:
    with pytest.raises(pt.PhloxError, match=r"^\[(allclose|arange|at|getitem)\] .*got "):
        call(pt.ones((3, 3)))


def test_a_step_that_nobody_takes_may_be_large() -> None:
    assert pt.arange(0, 10, step=2**70).tolist() == [0]
    assert pt.arange(5, 0, step=-(2**70)).tolist() == [5]


@pytest.mark.parametrize("number", [[1.0, 2.0], (1.0, 2.0), []])
@pytest.mark.parametrize("call", [operator.eq, operator.ne, operator.add, operator.lt])
def test_lists_beside_tensors_are_refused(call: Callable[..., Any], number: Any) -> None:
    x = pt.asarray([1.0, 2.0])
    with pytest.raises(pt.WrongTypeError, match=r"beside a tensor.*\nhint: px.asarray\(y\)"):
        call(x, number)
    with pytest.raises(pt.WrongTypeError, match="beside a tensor"):
        call(number, x)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: odd("diag")(x, k=1), "[diag] unknown argument: got k, expected offset"),
        (lambda x: odd("pad")(x, [(1, 1)], constant_values=3), "hint: value=3"),
        (lambda x: odd("histogram")(x, range=(0, 1)), "got range, expected bins, min, max"),
        (lambda x: x.sort(stable=True), "hint: px.sort(x, stable=True)"),
        (np.max, "hint: px.max(x), or np.max(x.numpy())"),
        (np.sum, "hint: px.sum(x), or np.sum(x.numpy())"),
    ],
)
def test_keywords_of_others_say_what_to_type(call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(pt.UnknownArgumentError) as caught:
        call(pt.ones((2, 2)))
    assert text in str(caught.value)


@pytest.mark.parametrize("numbers", [[2**63, -1], [[-1], [2**64 - 1]]])
def test_integers_that_no_type_holds_together_do_not_become_floats(numbers: Any) -> None:
    with pytest.raises(pt.DTypeError, match="no element type fits the data"):
        pt.asarray(numbers)
    assert pt.asarray([2.0**63, -1]).dtype == pt.float32


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: pt.set_printoptions(precision="a"), "[set_printoptions] not a count"),
        (lambda: pt.set_printoptions(threshold=-1), "[set_printoptions] not a count"),
        (lambda: pt.fft.fftfreq(5, d=0), "[fftfreq] no distance between samples"),
        (lambda: pt.fft.rfftfreq(5, d=0.0), "[rfftfreq] no distance between samples"),
        (lambda: odd("fft").rfftfreq(5.5), "[rfftfreq] n is not an integer"),
    ],
)
def test_settings_that_nothing_can_use(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(pt.PhloxError) as caught:
        call()
    assert text in str(caught.value)


def test_all_elements_print_where_the_threshold_is_infinite() -> None:
    with pt.printoptions(threshold=float("inf")):
        assert "..." not in repr(pt.arange(2000))


def test_a_refusal_of_lapack_does_not_repeat_itself() -> None:
    with pytest.raises(
        ArgumentError, match=r"\] a matrix is not positive definite\nhint"
    ) as caught:
        pt.linalg.cholesky(pt.asarray([[1.0, 2.0], [2.0, 1.0]], device="numpy"))
    assert caught.value.got is None


def test_a_truth_value_is_no_axis_and_no_number() -> None:
    x = pt.ones((2, 3))
    flags: list[Callable[[], Any]] = [
        lambda: x.std(False),
        lambda: pt.var(x, False),
        lambda: pt.var_mean(x, False),
    ]
    for call in flags:
        with pytest.raises(ArgumentError, match="axis is not an integer: got False") as caught:
            call()
        assert caught.value.hint == "correction=0"
    others: list[Callable[[], Any]] = [
        lambda: x.sum(True),
        lambda: x.sum((True,)),
        lambda: x.topk(True),
        lambda: x.leaky_relu(True),
        lambda: pt.batch_norm(x, x[0], x[0], mean=x[0], var=x[0], epsilon=True),
    ]
    for call in others:
        with pytest.raises(ArgumentError, match=r"is not an integer: got True|is not a number"):
            call()
