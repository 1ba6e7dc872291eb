"""Rounding and drawing with gradients as if they were smooth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import ShapeError


def test_fake_quantize_has_the_values_of_both_steps() -> None:
    random = np.random.default_rng(0)
    x = pt.asarray(random.normal(size=(6, 8)).astype(np.float32) * 3)
    cases: list[tuple[Any, Any, Any]] = [
        (pt.asarray(0.05, dtype="float32"), pt.asarray(3), None),
        (pt.asarray(np.linspace(0.02, 0.1, 8, dtype=np.float32)), pt.asarray([*range(8)]), 1),
        (pt.asarray(np.linspace(0.02, 0.1, 12, dtype=np.float32).reshape(6, 2)), None, None),
    ]
    for scale, zero, axis in cases:
        for dtype in ("int8", "uint8"):
            whole = pt.quantize(x, scale, zero, axis=axis, dtype=dtype)
            want = pt.dequantize(whole, scale, zero, axis=axis)
            got = pt.fake_quantize(
                x, scale, 0 if zero is None else zero, axis=axis, signed=dtype == "int8"
            )
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6)


def test_gradients_pass_rounding_and_stop_at_the_ends() -> None:
    x = pt.asarray([-100.0, -0.3, 0.26, 0.74, 100.0])
    slope = ad.grad(lambda x: pt.fake_quantize(x, 0.5).sum())(x)
    assert slope.tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]


def test_the_gradient_of_the_scale_is_that_of_learned_steps() -> None:
    """Esser et al., 2020, equation 3."""
    x, step = np.array([-100.0, -0.3, 0.26, 0.74, 100.0]), 0.5
    slope = ad.grad(lambda s: pt.fake_quantize(pt.asarray(x), s).sum(), 0)(pt.asarray(step))
    scaled = x / step
    inside = np.round(scaled) - scaled
    want = np.where(scaled <= -128, -128, np.where(scaled >= 127, 127, inside)).sum()
    assert float(slope) == pytest.approx(want)


def test_quantised_values_saturate_and_round_to_even() -> None:
    one = pt.asarray(1.0)
    x = pt.asarray([-1e9, -0.5, 0.5, 1.5, 1e9, np.nan, np.inf])
    assert pt.quantize(x, one).tolist() == [-128, 0, 0, 2, 127, 0, 127]
    assert pt.quantize(x, one, bits=4).tolist() == [-8, 0, 0, 2, 7, 0, 7]
    assert pt.quantize(x, one, pt.asarray(3), dtype="uint8").tolist() == [0, 3, 3, 5, 255, 0, 255]


def test_scales_that_do_not_fit_are_refused() -> None:
    x = pt.ones((4, 6))
    for call in (
        lambda: pt.quantize(x, pt.ones(6)),
        lambda: pt.quantize(x, pt.ones(4), axis=1),
        lambda: pt.quantize(x, pt.ones((4, 4))),
        lambda: pt.quantize(x, pt.ones(6), pt.asarray([1]), axis=1),
        lambda: pt.fake_quantize(x, pt.ones(4), axis=1),
    ):
        with pytest.raises(ShapeError):
            call()
    with pytest.raises(pt.ArgumentError, match="bits"):
        pt.quantize(x, pt.asarray(1.0), bits=9)


def test_soft_draws_have_gradients_and_hard_ones_theirs() -> None:
    logits = pt.asarray([[0.3, -1.0, 2.0]])
    weights = pt.asarray([1.0, 2.0, 4.0])

    def score(x: Any, *, hard: bool) -> Any:
        pt.seed(3)
        return (pt.random.gumbel_softmax(x, 0.7, hard=hard) * weights).sum()

    soft, straight = (ad.grad(lambda x, h=h: score(x, hard=h))(logits) for h in (False, True))
    np.testing.assert_allclose(soft.numpy(), straight.numpy())
    assert np.abs(soft.numpy()).max() > 0
    ad.gradcheck(lambda x: score(x, hard=False), (logits,))
    pt.seed(3)
    assert sorted(pt.random.gumbel_softmax(logits, hard=True).tolist()[0]) == [0.0, 0.0, 1.0]
