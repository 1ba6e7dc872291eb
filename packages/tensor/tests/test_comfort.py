"""Printing, notebooks, comparing: what people look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor.testing import assert_close


def test_options_change_how_tensors_print_and_go_with_their_block() -> None:
    x = pt.asarray([0.123456, 100.0])
    before = repr(x)
    with pt.printoptions(precision=2, suppress=True) as options:
        assert options.precision == 2
        assert repr(x) == "Tensor([  0.12, 100.  ], dtype=float32, device=Numpy())"
    with pt.printoptions(threshold=3, edgeitems=1):
        assert repr(pt.arange(9)) == "Tensor([0, ..., 8], shape=(9,), dtype=int64, device=Numpy())"
    assert repr(x) == before
    with pt.printoptions(), pytest.raises(pt.ArgumentError, match="no such option"):
        pt.set_printoptions(digits=3)
    with pt.printoptions():
        pt.set_printoptions(precision=1)
        assert "0.1," in repr(x)
    assert repr(x) == before


def test_a_notebook_shows_shape_type_device_and_a_heat_map() -> None:
    html: Any = pt.asarray([[1.0, -2.0], [0.0, float("nan")]])._repr_html_()
    assert "Tensor (2, 2), float32, Numpy()" in html
    assert html.count("<td") == 4
    assert 'title="-2"' in html
    assert "rgb(67,147,195)" in html  # the largest magnitude, below 0
    assert "rgb(255,255,255)" in html
    assert "rgb(160,160,160)" in html
    large: Any = pt.zeros((3, 100, 40))._repr_html_()
    assert large.count("<td") == 256
    assert "first (16, 16) of (300, 40) shown" in large
    empty: Any = pt.zeros((0, 3))._repr_html_()
    assert "<td" not in empty
    number: Any = pt.asarray(3)._repr_html_()
    assert number.count("<td") == 1


def test_close_tensors_pass_and_the_others_say_where_they_differ() -> None:
    x = pt.asarray([[1.0, 2.0], [3.0, float("nan")]])
    assert_close(x, x)
    assert_close(x, x.numpy())
    assert_close(x[0], [1.0000001, 2.0])
    assert_close(pt.asarray([1, 2]), [1, 2])
    assert_close(x[0], [1.1, 2.0], atol=0.2)
    with pytest.raises(AssertionError, match="shapes differ"):
        assert_close(x, x[0])
    with pytest.raises(AssertionError, match="types differ: got float32, expected float64"):
        assert_close(x, x.astype("float64"))
    assert_close(x, x.astype("float64"), check_dtype=False)
    with pytest.raises(AssertionError) as caught:
        assert_close(x, x.at[1, 0].set(4.0))
    assert str(caught.value) == (
        "1 of 4 elements differ by more than 1e-05 + 1.3e-06·|want|\n"
        "largest absolute difference 1 at (1, 0)\n"
        "largest relative difference 0.25 at (1, 0)\n"
        "  at (1, 0): got 3.0, expected 4.0"
    )
    for got, want in (([1, 2], [1, 3]), (2.0, 2.5), ([np.inf], [-np.inf]), ([np.nan], [0.0])):
        with pytest.raises(AssertionError, match="1 of"):
            assert_close(pt.asarray(got), want)
    with pytest.raises(AssertionError, match="1 of 4"):
        assert_close(x, x, equal_nan=False)


def test_a_format_is_that_of_one_element_or_of_the_whole_text() -> None:
    assert f"{pt.asarray(3.14159):.2f}" == "3.14"
    assert f"{pt.ones(1)}" == f"{pt.ones(1)!r:>0}"
    with pytest.raises(pt.ArgumentError, match=r"\[format\] .*\n.*px\.printoptions\(precision"):
        f"{pt.ones(2):.2f}"


def test_bytes_are_those_of_the_elements() -> None:
    assert bytes(pt.asarray([1, 256], dtype="uint16")) == b"\x01\x00\x00\x01"
    assert bytes(pt.asarray([[1, 2], [3, 4]], dtype="uint8").T) == b"\x01\x03\x02\x04"


def test_several_quantiles_stand_on_a_first_axis() -> None:
    x = pt.asarray([[1.0, 2.0, 5.0], [3.0, 4.0, 9.0]])
    found = pt.quantile(x, (0.25, 0.5), axis=1)
    np.testing.assert_allclose(found.numpy(), np.quantile(x.numpy(), (0.25, 0.5), axis=1))
    assert x.quantile([0.5]).tolist() == [3.5]
    assert x.quantile(0.5).tolist() == 3.5
    with pytest.raises(pt.ArgumentError, match="no q"):
        pt.quantile(x, ())
