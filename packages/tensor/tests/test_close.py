"""``assert_close`` of trees, complex numbers and large integers; what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor.testing import assert_close

NS: Any = pt


def report(got: Any, want: Any, **how: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_close(got, want, **how)
    return str(caught.value)


def test_dicts_and_lists_of_tensors_are_compared_part_by_part() -> None:
    tree = {"a": pt.ones(2), "b": [pt.zeros(1), {"c": (1.0, 2.0)}]}
    assert_close(tree, {"a": np.ones(2, np.float32), "b": [[0.0], {"c": [1.0, 2.0]}]})
    wrong = {"a": pt.ones(2), "b": [pt.zeros(1), {"c": (1.0, 3.0)}]}
    assert report(wrong, tree).startswith("['b'][1]['c']: 1 of 2 elements differ")
    assert report({"a": 1.0}, tree) == "the whole: got ['a'], expected ['a', 'b']"
    assert report([{"a": 1.0}], [{}]) == "[0]: got ['a'], expected []"
    assert report({"a": 1.0}, pt.ones(1)) == "the whole: got ['a'], expected Tensor"
    assert report(pt.ones(1), {"a": 1.0}) == "the whole: got no dict, expected ['a']"


def test_a_list_of_tensors_may_be_compared_with_one_tensor() -> None:
    assert_close([pt.ones(2), pt.zeros(2)], pt.asarray([[1.0, 1.0], [0.0, 0.0]]))


def test_spectra_have_the_tolerance_of_their_parts() -> None:
    x = pt.asarray([1.0, 2.0, 4.0])
    want = np.fft.fft(x.numpy()).astype(np.complex64)
    assert_close(pt.fft.fft(x), want * np.complex64(1 + 1e-7))
    assert "1 of 1 elements differ" in report(np.array([1 + 1j]), np.array([1 + 1.1j]))


def test_integers_beyond_floats_are_subtracted_as_they_are() -> None:
    text = report(np.array([2**63 + 1], np.uint64), np.array([2**63], np.uint64))
    assert "largest absolute difference 1 at (0,)" in text


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(pt.ArgumentError, match="no tolerance"):
        assert_close(pt.ones(1), pt.ones(1), rtol=-1.0)
    with pytest.raises(pt.ArgumentError, match="no tolerance"):
        assert_close(pt.ones(1), pt.ones(1), atol=float("nan"))
    with pytest.raises(pt.WrongTypeError, match=r"\[assert_close\] no numbers: got str"):
        assert_close("a", "b")
    with pytest.raises(pt.WrongTypeError, match=r"\[allclose\] no numbers: got complex"):
        NS.allclose(pt.ones(1), 1j)


def test_integers_of_any_size_and_objects_that_are_numbers_are_compared() -> None:
    objects = np.asarray([1, 2**70, 0.5], object)
    assert_close(2**70, 2**70)
    assert_close([10**400, 1], [10**400, 1])
    assert_close(objects, objects)
    assert_close(np.asarray([1j, 2], object), [1j, 2.0])
    assert_close(2**70, 2**70 + 1, rtol=1e-6)
    with pytest.raises(AssertionError, match="largest absolute difference 1 at"):
        assert_close(2**70, 2**70 + 1)
    with pytest.raises(pt.WrongTypeError, match="no numbers"):
        assert_close(np.asarray([1, None], object), [1, 2])


def test_lists_of_several_lengths_are_compared_part_by_part() -> None:
    assert_close([[1, 2], [3]], [[1, 2], [3]])
    with pytest.raises(AssertionError, match=r"\[1\]: .*1 of 1"):
        assert_close([[1, 2], [3]], [[1, 2], [4]])


def test_tolerances_are_numbers() -> None:
    assert_close(1.0, 1.05, rtol=NS.asarray(0.1))
    with pytest.raises(pt.ArgumentError, match="rtol is not a number"):
        assert_close(1.0, 1.0, rtol=NS.float32)
