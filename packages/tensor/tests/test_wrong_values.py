"""Arguments that are none: told by what was given, with what to type."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt

NS: Any = pt


def x() -> Any:
    return pt.ones((2, 3))


CALLS: list[tuple[str, Callable[[], Any], str]] = [
    ("zeros of -1", lambda: x().zeros((-1,)), r"\[zeros\] no shape: got \(-1,\)"),
    ("zeros of a text", lambda: x().zeros("a"), r"\[zeros\] no shape: got a, expected ints"),
    ("zeros of a float", lambda: x().zeros((2.0,)), r"\[zeros\] no shape: got \(2\.0,\)"),
    ("an index", lambda: x().item(0, 1), r"hint: x\[0, 1\]\.item\(\)"),
    ("a crop", lambda: pt.pad(x(), ((-1, 0), (2, -1))), r"hint: x\[\.\.\., 1:, :-1\] cuts"),
    ("an order slip", lambda: NS.einsum(x(), "ij->i"), r"hint: px\.einsum\('ij->i', \*tensors\)"),
    ("a vector", lambda: pt.linalg.solve(pt.eye(2), pt.ones(3)), r"got \(2, 2\) and \(3,\)"),
    (
        "a triangle",
        lambda: pt.linalg.solve_triangular(pt.eye(2), pt.ones(3)),
        r"\[solve_triangular\] rows differ: got \(2, 2\) and \(3,\)",
    ),
    (
        "a number of no image",
        lambda: pt.roi_align(pt.ones((2, 1, 4, 4)), pt.asarray([[-1.0, 0.0, 0.0, 1.0, 1.0]]), 1),
        r"\[roi_align\] image of a box out of range: got -1",
    ),
    (
        "a number behind the images",
        lambda: pt.roi_align(pt.ones((2, 1, 4, 4)), pt.asarray([[5.0, 0.0, 0.0, 1.0, 1.0]]), 1),
        r"\[roi_align\] image of a box out of range: got 5",
    ),
    (
        "many counts",
        lambda: pt.bincount(pt.asarray([1]), minlength=2**40),
        "a count for each number up to the largest: got minlength=1099511627776",
    ),
    ("far counts", lambda: pt.bincount(pt.asarray([10**15])), r"hint: px\.unique_counts\(x\)"),
    (
        "another word",
        lambda: x().scatter(pt.asarray([[0, 1, 0]]), pt.ones((1, 3)), update="multiply"),
        r'hint: update="mul"',
    ),
    ("a part of at", lambda: x().at[0].sub(1.0), r"hint: x\.at\[index\]\.subtract\(values\)"),
    ("a division", lambda: x().at[0].divide(2.0), r"hint: x\.at\[index\]\.multiply\(1 / values\)"),
    ("all options", lambda: NS.set_printoptions(profile="full"), r"hint: threshold=math\.inf"),
    ("a word that is no stride", lambda: NS.conv2d("same", x()), r"hint: px\.asarray\(x\)"),
    ("a word that is no axis", lambda: NS.sum("a"), r"hint: px\.asarray\(x\)"),
    (
        "a word of its own",
        lambda: NS.pad_border("edge", x()),
        r"hint: px.pad_border\(x, mode='edge",
    ),
    ("edges of NumPy", lambda: x().pad_border(((1, 1),), mode="wrap"), 'hint: mode="circular"'),
    ("edges of PyTorch", lambda: x().pad_border(((1, 1),), "replicate"), 'hint: mode="edge"'),
    ("no edges", lambda: x().pad_border(((1, 1),), "constant"), r"hint: x\.pad\(padding\)"),
    ("a far mean", lambda: pt.random.normal((2,), 1e39), r"\[normal\] not of float32"),
    ("a far deviation", lambda: pt.random.normal((2,), 0.0, 1e39), r"\[normal\] not of float32"),
    ("a far scale", lambda: pt.random.exponential((2,), 1e39), r"\[exponential\] .*scale 1e\+39"),
    ("many steps", lambda: pt.arange(0, 1, 1e-320), r"\[arange\] too many elements"),
    ("far ends", lambda: pt.arange(-1e308, 1e308), r"\[arange\] too many elements"),
    ("no threshold", lambda: pt.nms(pt.ones((2, 4)), pt.ones(2), math.nan), "threshold is nan"),
    ("an option", lambda: NS.set_printoptions(sci_mode=False), "hint: suppress=True"),
    ("a type of means", lambda: NS.mean(x(), dtype=None), r"hint: px\.mean\(x\)"),
]


@pytest.mark.parametrize(("call", "text"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_a_wrong_argument_says_what_to_type(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(pt.PhloxError, match=text):
        call()


def test_a_size_may_be_one_number_and_parts_may_be_more_than_elements() -> None:
    assert x().zeros(3).tolist() == [0.0, 0.0, 0.0]
    assert [part.shape for part in x().chunk(10**20)] == [(1, 3), (1, 3)]


@pytest.mark.parametrize("size", [np.int64(3), np.asarray(3), [np.int64(3)], pt.asarray([3])])
def test_sizes_may_be_numbers_of_others(size: Any) -> None:
    assert x().zeros(size).tolist() == [0.0, 0.0, 0.0]


def test_what_has_to_be_given_has_no_default_for_help() -> None:
    for function in (pt.max_pool2d, pt.matmul, pt.Tensor.take):
        assert "required" not in str(inspect.signature(function))
    kernel = inspect.signature(pt.max_pool2d).parameters["kernel"]
    assert kernel.default is inspect.Parameter.empty
    with pytest.raises(TypeError, match="missing argument: expected kernel"):
        NS.max_pool2d(x())


def test_narrow_floats_are_written_as_floats() -> None:
    x = pt.asarray([1.0, 2.5, 1e20], dtype="bfloat16")
    assert repr(x).startswith("Tensor([1.000000e+00, 2.500000e+00, 9.9")
    assert repr(pt.ones(2, dtype="bfloat16")).startswith("Tensor([1., 1.], dtype=bfloat16")
