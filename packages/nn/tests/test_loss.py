"""Losses beside their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phlox_nn as nn
import phlox_tensor as pt
from phlox_tensor import ArgumentError, IndexOutOfRangeError, KindError, Numpy, ShapeError

Array = np.ndarray[Any, Any]
DOUBLE = Numpy(float="float64")
CLASSES = 4


def plain_cross_entropy(
    logits: Array, targets: Array, weights: Any, smoothing: float, pads: Any, reduction: str
) -> Any:
    """One example after the other, by the definition."""
    losses, shares = [], []
    w = np.ones(CLASSES) if weights is None else np.array(weights)
    for row, target in zip(logits.reshape(-1, CLASSES), targets.reshape(-1), strict=True):
        if target in pads:
            losses.append(0.0)
            shares.append(0.0)
            continue
        log_p = row - row.max() - np.log(np.exp(row - row.max()).sum())
        wanted = np.eye(CLASSES)[target] * (1 - smoothing) + smoothing / CLASSES
        losses.append(-(wanted * w * log_p).sum())
        shares.append(w[target])
    if reduction == "none":
        return np.array(losses).reshape(targets.shape)
    return sum(losses) / (sum(shares) if reduction == "mean" else 1)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([None, (1.0, 0.5, 2.0, 0.25)]),
    st.sampled_from([0.0, 0.1, 1.0]),
    st.sampled_from([(), (2,), (-100,), (0, -1), (255,)]),
    st.sampled_from(["mean", "sum", "none"]),
    st.sampled_from([(6,), (2, 3), ()]),
)
def test_cross_entropy(
    seed: int, weights: Any, smoothing: float, pads: Any, reduction: Any, shape: Any
) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, (*shape, CLASSES))
    targets = rng.integers(0, CLASSES, shape)
    if pads:
        targets = np.where(rng.random(shape) < 0.4, pads[0], targets)
    if reduction == "mean" and all(t in pads for t in targets.reshape(-1)):
        return  # nothing to average over: nan, tested below
    loss = nn.CrossEntropyLoss(weights, smoothing, pads, reduction)
    got = loss(pt.asarray(logits, device=DOUBLE), pt.asarray(targets, device=DOUBLE))
    want = plain_cross_entropy(logits, targets, weights, smoothing, pads, reduction)
    assert got.shape == np.shape(want)
    assert np.allclose(got.numpy(), want, rtol=1e-10, atol=1e-12)


def test_targets_of_a_small_type_with_a_pad_token_outside_of_it() -> None:
    loss = nn.CrossEntropyLoss(pad_tokens=(-100,))
    targets = pt.asarray([1, 2], dtype="uint8")
    assert np.isfinite(loss(pt.zeros((2, 300)), targets).item())


def test_cross_entropy_far_out() -> None:
    loss = nn.CrossEntropyLoss()
    assert loss(pt.asarray([[1e4, -1e4]]), pt.asarray([1])).item() == 2e4
    assert loss(pt.asarray([[1e4, -1e4]]), pt.asarray([0])).item() == 0.0
    infinite = pt.asarray([[0.0, -np.inf]])
    assert loss(infinite, pt.asarray([1])).item() == np.inf
    padded = nn.CrossEntropyLoss(pad_tokens=(9,))
    both = pt.asarray([[0.0, -np.inf], [0.0, 0.0]])
    assert padded(both, pt.asarray([1, 9])).item() == np.inf
    assert padded(both, pt.asarray([9, 0])).item() == pytest.approx(np.log(2))
    assert np.isnan(padded(both, pt.asarray([9, 9])).item())
    half = loss(pt.zeros((2, 3), dtype="float16"), pt.asarray([0, 1]))
    assert half.dtype is pt.float16


@pytest.mark.parametrize(
    ("logits", "targets", "error", "text"),
    [
        ((2, 3), [0.0, 1.0], KindError, "targets are not class indices: got float32, expected Int"),
        (
            (2, 3),
            [[0], [1]],
            ShapeError,
            r"got logits \(2, 3\), targets \(2, 1\), expected targets",
        ),
        ((2, 3), 1, ShapeError, "targets do not fit"),
        ((), 1, ShapeError, "targets do not fit"),
        ((2, 3), [0, 3], IndexOutOfRangeError, "out of range"),
        ((2, 3), [0, -1], IndexOutOfRangeError, "out of range"),
    ],
)
def test_targets_are_checked(logits: Any, targets: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        nn.CrossEntropyLoss()(pt.zeros(logits), pt.asarray(targets))


def test_settings_are_checked() -> None:
    with pytest.raises(nn.ConfigError, match=r"got 1.5, expected a share"):
        nn.CrossEntropyLoss(smoothing=1.5)
    with pytest.raises(ShapeError, match="got 2 weights, expected 3, one per class"):
        nn.CrossEntropyLoss(weights=(1.0, 2.0))(pt.zeros((1, 3)), pt.asarray([0]))
    with pytest.raises(nn.ConfigError, match="reduction"):
        nn.MseLoss("average")  # type: ignore[arg-type]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_mse(reduction: Any) -> None:
    a, b = np.array([[1.0, 2.0]]), np.array([[0.5, -1.0]])
    squares = (a - b) ** 2
    want = {"mean": squares.mean(), "sum": squares.sum(), "none": squares}[reduction]
    got = nn.MseLoss(reduction)(pt.asarray(a), pt.asarray(b))
    assert np.allclose(got.numpy(), want)
    with pytest.raises(ShapeError, match=r"(?s)got \(1, 2\) and \(2,\).*hint: target.reshape"):
        nn.MseLoss()(pt.zeros((1, 2)), pt.zeros(2))


def test_classes_of_a_margin_are_not_counted_from_the_end() -> None:
    with pytest.raises(IndexOutOfRangeError):
        nn.MultiMarginLoss()(pt.ones((2, 3)), pt.asarray([0, -1]))


def test_targets_of_other_libraries_say_what_to_type() -> None:
    loss: Any = nn.CrossEntropyLoss()
    with pytest.raises(ShapeError, match=r"logits.moveaxis\(1, -1\)"):
        loss(pt.ones((2, 5, 3, 4)), pt.zeros((2, 3, 4), dtype="int32"))
    with pytest.raises(KindError, match=r"targets.astype\(px.int64\)"):
        loss(pt.ones((2, 5)), pt.ones(2))
    with pytest.raises(KindError, match=r"probabilities are of the shape of the logits, \(2, 5\)"):
        loss(pt.ones((2, 5)), pt.ones((2, 1)))
    with pytest.raises(ArgumentError, match="pad tokens are class indices"):
        nn.CrossEntropyLoss(pad_tokens=(0,))(pt.ones((2, 5)), pt.ones((2, 5)))
    with pytest.raises(ShapeError, match="got 3 weights, expected 5"):
        nn.CrossEntropyLoss(weights=(1.0, 2.0, 3.0))(pt.ones((2, 5)), pt.ones((2, 5)))


SHARES = [0.2, 0.3, 0.4]


@pytest.mark.parametrize(
    ("loss", "inside", "outside"),
    [
        (nn.BinaryCrossEntropyLoss(from_logits=False), (SHARES, SHARES), ([0.2, 1.1, 0.4], SHARES)),
        (nn.BinaryCrossEntropyLoss(from_logits=False), (SHARES, SHARES), ([0.2, -0.1, 0], SHARES)),
        (
            nn.CrossEntropyLoss(),
            ([SHARES] * 3, [SHARES] * 3),
            ([SHARES] * 3, [SHARES, [-0.1, 0.5, 0.6], SHARES]),
        ),
        (nn.GaussianNllLoss(), (SHARES, SHARES, SHARES), (SHARES, SHARES, [0.2, -0.3, 0.4])),
        (nn.KlDivLoss(), (SHARES, [0.0, 0.6, 0.4]), (SHARES, [0.2, -0.3, 0.4])),
        (nn.PoissonNllLoss(log_input=False), (SHARES, SHARES), ([0.2, -0.3, 0.4], SHARES)),
    ],
    ids=lambda loss: type(loss).__name__ if isinstance(loss, nn.Module) else None,
)
def test_a_loss_of_what_cannot_be_is_nan(loss: Any, inside: Any, outside: Any) -> None:
    """Never a number that looks right; finding out where would read from the device."""
    assert loss(*map(pt.asarray, inside)).isfinite().item()
    assert loss(*map(pt.asarray, outside)).isnan().item()
    each = loss.replace(settings=loss.settings.replace(reduction="none"))
    assert each(*map(pt.asarray, outside)).isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("wrong", [-2, 3])
@pytest.mark.parametrize(
    ("loss", "targets"),
    [
        (nn.CrossEntropyLoss(), lambda wrong: [0, wrong]),
        (nn.MultiLabelMarginLoss(), lambda wrong: [[0, wrong, -1], [1, -1, 5]]),
        (nn.MultiMarginLoss(), lambda wrong: [0, wrong]),
    ],
    ids=["cross entropy", "multi-label margin", "multi-margin"],
)
def test_a_target_that_is_no_class_is_named(loss: Any, targets: Any, wrong: int) -> None:
    with pytest.raises(IndexOutOfRangeError, match=rf"got {wrong}, expected 0 to 2"):
        loss(pt.ones((2, 3)), pt.asarray(targets(wrong)))


def test_targets_of_two_kinds_are_told_by_their_sign() -> None:
    x = pt.asarray([0.2, 0.3])
    for loss in (nn.HingeEmbeddingLoss(), lambda x, y: nn.CosineEmbeddingLoss()(x, x, y[0])):
        one, other, zero = ([value, value] for value in (1.0, -1.0, 0.0))
        given = [loss(x, pt.asarray(each)).item() for each in (one, other, zero)]
        assert given[0] != given[1] == given[2]
