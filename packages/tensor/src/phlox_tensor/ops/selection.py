"""Elements marked, filled and counted: one-hot rows, masks, bags of embeddings, boxes of places."""

from __future__ import annotations

from math import inf
from typing import Any, Final

import numpy as np

from .._data.creation import arange
from .._errors.classes import ArgumentError, IndexOutOfRangeError, KindError, ShapeError
from .._op.records import Given, IndexSample, MaskSample, case, refusal
from .._values.kinds import Bool, Int
from .._values.tensor import Tensor
from ..reference import selection as ref
from ..shapes import selection as shapes
from . import movement
from ._counts import held
from ._families import indexing, row

# Stands for a probability of 0, as -inf has no derivative; sums of it stay far from the limits.
_NONE: Final = -1e25


@indexing.formula(
    "x: Any -> Int",
    numpy=ref.argwhere,
    shape=shapes.argwhere,
    measured=True,
    cases=(case((7,)), case((3, 4)), case((2, 0))),
    example="pt.argwhere(pt.asarray([[0, 1], [1, 0]]))",
    doc="Places of the elements other than 0, a row of indices for each, row by row.",
)
def argwhere(x: Tensor[Any]) -> Tensor[Int]:
    mask = x if x.dtype.kind == "Bool" else x != 0
    return movement.stack(list(mask.nonzero()), axis=1)


def _sequences(
    op: str,
    targets: Tensor[Int],
    input_lengths: Tensor[Int] | None,
    target_lengths: Tensor[Int] | None,
    times: int,
    classes: int,
) -> tuple[Tensor[Int], Tensor[Int] | None, Tensor[Int] | None]:
    """Labels that are classes, 0 after the end of each sequence, and lengths that are there."""
    if input_lengths is not None:
        input_lengths = held(op, "input_lengths", input_lengths, times)
    if target_lengths is not None:
        target_lengths = held(op, "target_lengths", target_lengths, targets.shape[1])
        places = arange(targets.shape[1], dtype=target_lengths.dtype, device=targets.device)
        targets = (places < target_lengths[:, None]).where(targets, 0)
    return held(op, "targets", targets, classes - 1), input_lengths, target_lengths


@row.formula(
    "x: Float, targets: Int, input_lengths: Int?, target_lengths: Int?; blank: int = 0 -> Float",
    numpy=ref.ctc_loss,
    shape=shapes.ctc_loss,
    ulp=32,
    atol=64,
    cases=(
        case((5, 1, 3), IndexSample((1, 2), -3), None, None),
        case((3, 2, 3), IndexSample((2, 2), -3), IndexSample((2,), -4), IndexSample((2,), -2)),
        case((2, 2, 2), IndexSample((2, 1), -2), None, IndexSample((2,), -2), blank=1),
        case((2, 1, 2), IndexSample((1, 0), -2), None, None),
    ),
    refuses=(
        refusal(IndexOutOfRangeError, (4, 1, 3), Given([[1, 3]]), None, None),
        refusal(IndexOutOfRangeError, (4, 1, 3), Given([[1, 2]]), Given([5]), None),
        refusal(IndexOutOfRangeError, (4, 1, 3), Given([[1, 2]]), None, Given([3])),
        refusal(ShapeError, (4, 1, 3), Given([1, 2]), None, None),
    ),
    method=False,
    example="pt.ctc_loss(pt.log_softmax(pt.zeros((3, 1, 4))), pt.asarray([[1, 2]]))",
    doc="``-ln`` of the probability of each sequence of labels under logarithms of probabilities "
    "x (time, batch, classes): targets (batch, longest) without the blank, inf where the time is "
    "too short. Without lengths, all steps and labels count. A label that is no class, or a "
    "length that is not there, raises IndexOutOfRangeError. Graves et al., 2006.",
)  # fmt: skip
def ctc_loss(
    x: Tensor,
    targets: Tensor[Int],
    input_lengths: Tensor[Int] | None,
    target_lengths: Tensor[Int] | None,
    blank: int,
) -> Tensor:
    """The forward variables of Graves et al.: blanks around the labels, one step for each time."""
    time, batch, _ = x.shape
    wide, size = x.to_full_precision(), 2 * targets.shape[1] + 1
    given = (targets, input_lengths, target_lengths)
    targets, input_lengths, target_lengths = _sequences("ctc_loss", *given, time, x.shape[2])
    blanks = targets.zeros() + blank
    pairs = movement.stack([blanks, targets], axis=2).reshape((batch, size - 1))
    labels = movement.concat([pairs, targets.zeros((batch, 1)) + blank], axis=1)
    places = labels.expand_dims(axis=0).broadcast_to((time, batch, size))
    emitted = wide.take_along_axis(places, axis=2)
    new = labels[:, 2:] != labels[:, : size - 2] if size > 2 else None
    # In front of the first step stands a blank for sure: no steps leave nothing but no labels.
    alpha = wide.zeros((batch, 1)).pad(((0, size - 1),), -inf)
    for t in range(time):
        old, parts = alpha, [alpha]
        if new is not None:
            parts.append(alpha[:, : size - 1].pad(((1, 0),), -inf))
            skips = (new & (labels[:, 2:] != blank)).where(alpha[:, : size - 2], -inf)
            parts.append(skips.pad(((2, 0),), -inf))
        moved = movement.stack(parts, axis=0).logsumexp(axis=0) + emitted[t]
        alpha = moved
        if input_lengths is not None:
            alpha = (input_lengths.reshape((batch, 1)) > t).where(moved, old)
    last = targets.zeros((batch, 1)) + (size - 1)
    if target_lengths is not None:
        last = (target_lengths * 2).reshape((batch, 1))
    ends = [alpha.take_along_axis(last, axis=1)]
    before = alpha.take_along_axis((last - 1).maximum(0), axis=1)
    ends.append((last > 0).where(before, -inf))
    return (-movement.concat(ends, axis=1).logsumexp(axis=1)).astype(x.dtype)


@row.formula(
    "x: Float, targets: Int, input_lengths: Int?, target_lengths: Int?; blank: int = 0 -> Float",
    numpy=ref.rnnt_loss,
    shape=shapes.rnnt_loss,
    ulp=32,
    atol=64,
    cases=(
        case((1, 3, 3, 3), IndexSample((1, 2), -3), None, None),
        case((2, 3, 2, 3), IndexSample((2, 1), -3), IndexSample((2,), -4), IndexSample((2,), -2)),
        case((2, 2, 3, 2), IndexSample((2, 2), -2), None, IndexSample((2,), -3), blank=1),
        case((1, 2, 1, 2), IndexSample((1, 0), -2), None, None),
    ),
    refuses=(
        refusal(IndexOutOfRangeError, (1, 4, 3, 3), Given([[1, 3]]), None, None),
        refusal(IndexOutOfRangeError, (1, 4, 3, 3), Given([[1, 2]]), Given([5]), None),
        refusal(IndexOutOfRangeError, (1, 4, 3, 3), Given([[1, 2]]), None, Given([3])),
    ),
    method=False,
    example="pt.rnnt_loss(pt.log_softmax(pt.zeros((1, 2, 2, 3))), pt.asarray([[1]]))",
    doc="``-ln`` of the probability of each sequence of labels by all ways through a transducer, "
    "under logarithms of probabilities x (batch, steps, labels + 1, classes) by step and by number "
    "of labels so far: targets (batch, labels). Without lengths, all steps and labels count; no "
    "steps give inf. Graves, 2012.",
)
def rnnt_loss(
    x: Tensor,
    targets: Tensor[Int],
    input_lengths: Tensor[Int] | None,
    target_lengths: Tensor[Int] | None,
    blank: int,
) -> Tensor:
    """Section 2.4 of the paper: places of a step t and u labels are visited by diagonals t + u."""
    n, steps, width, _ = x.shape
    wide, count = x.to_full_precision().maximum(_NONE), steps + width - 1
    given = (targets, input_lengths, target_lengths)
    targets, input_lengths, target_lengths = _sequences("rnnt_loss", *given, steps, x.shape[3])
    index = targets[:, None, :, None].broadcast_to((n, steps, width - 1, 1))
    labels = wide[:, :, : width - 1].take_along_axis(index, axis=-1)[..., 0]
    u = arange(width, dtype=targets.dtype, device=x.device)
    t = arange(count, dtype=targets.dtype, device=x.device)[:, None] - u
    inside, at = (t >= 0) & (t < steps), t.clip(0, steps - 1).broadcast_to((n, count, width))
    stay = inside.where(wide[..., blank].take_along_axis(at, axis=1), _NONE)
    emit = labels.pad(((0, 0), (0, 0), (0, 1)), _NONE).take_along_axis(at, axis=1)
    on, up = (movement.unstack(each, axis=1) for each in (stay, inside.where(emit, _NONE)))
    ways = (u == 0).where(wide.zeros((n, width)), _NONE)
    found = [ways]
    for d in range(count - 1):
        emitted = (ways + up[d]).pad(((0, 0), (1, 0)), _NONE)[:, :width]
        ways = (ways + on[d]).logaddexp(emitted)
        found.append(ways)
    ends = (movement.stack(found, axis=1) + stay).reshape((n, count * width))
    last = targets.zeros((n,)) + steps if input_lengths is None else input_lengths
    labeled = targets.zeros((n,)) + (width - 1) if target_lengths is None else target_lengths
    places = ((last - 1 + labeled) * width + labeled).maximum(0).reshape((n, 1))
    loss = -ends.take_along_axis(places.astype(targets.dtype), axis=1)[:, 0]
    impossible = (last <= 0) | (loss > -_NONE / 2)
    return impossible.where(inf, loss).astype(x.dtype)


@indexing.formula(
    "weight: Float, indices: Int, scale: Float?; mode: str = 'mean' -> Float",
    numpy=ref.embedding_bag,
    shape=shapes.embedding_bag,
    ulp=8,
    atol=8,
    cases=(
        case((4, 2), IndexSample((2, 3), 4), None),
        case((4, 2), IndexSample((2, 2), 4), (2, 2), mode="sum"),
        case((5, 2), IndexSample((3, 2), 5), None, mode="max"),
    ),
    refuses=(
        refusal(IndexOutOfRangeError, (2, 3), Given([[2]]), None),
        refusal(ShapeError, (2,), Given([[0]]), None),
        refusal(ArgumentError, (2, 3), Given([[0]]), None, mode="middle"),
    ),
    method=False,
    example=(
        "pt.embedding_bag(pt.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), "
        "pt.asarray([[0, 2], [1, 1]]), mode='sum')"
    ),
    doc="Sum, mean or largest of the rows of weight (words, d) in each bag of indices (bags, "
    "length), each row times ``scale`` (bags, length).",
)
def embedding_bag(weight: Tensor, indices: Tensor[Int], scale: Tensor | None, mode: str) -> Tensor:
    found = weight.take(indices, axis=0).to_full_precision()
    if scale is not None:
        found = found * scale.to_full_precision().expand_dims(axis=2)
    kinds: Any = {"max": found.max, "mean": found.mean, "sum": found.sum}
    out: Tensor = kinds[mode](axis=1)
    return out.astype(weight.dtype)


def _filled_with(x: Tensor[Any], mask: Tensor[Bool], value: Tensor[Any]) -> Tensor[Any]:
    """By values that only the device knows, or that a derivative is wanted of."""
    if value.dtype.kind != x.dtype.kind:
        raise KindError(
            "masked_fill",
            "value is of another kind than x",
            got=value.dtype,
            expected=x.dtype.kind,
            hint=f"value.astype({x.dtype})",
        )
    return mask.broadcast_to(x.shape).where(value.broadcast_to(x.shape).astype(x.dtype), x)


@indexing.formula(
    "x: Any, mask: Bool; value: Scalar -> Any",
    numpy=lambda x, mask, value: np.where(mask, np.asarray(value, x.dtype), x),
    shape=shapes.masked_fill,
    prepare=shapes.prepare_fill,
    with_tensors=_filled_with,
    cases=(
        case((2, 3), MaskSample((3,)), value=1),
        case((2, 3), MaskSample((2, 3)), value=0),
        case((), MaskSample(()), value=1),
    ),
    refuses=(refusal(ShapeError, (2, 3), MaskSample((4,)), value=0.0),),
    example="pt.masked_fill(pt.asarray([1.0, 2.0, 3.0]), pt.asarray([True, False, True]), 0.0)",
    doc="x with ``value`` where the mask, which broadcasts to x, is True. A tensor of one value or "
    "of several that broadcast to x is taken as by ``where``, with its gradient.",
)
def masked_fill(x: Tensor[Any], mask: Tensor[Bool], value: float) -> Tensor[Any]:
    filled: Tensor[Any] = Tensor(x.device.ops.full(x.shape, value, x.dtype), x.device)
    return mask.broadcast_to(x.shape).where(filled, x)


one_hot = indexing(
    "one_hot",
    "x: Int; classes: int -> Int",
    expand=lambda x, classes: x.zeros((*x.shape, classes)).scatter(
        x.expand_dims(axis=-1), x.zeros((*x.shape, 1)) + 1, axis=-1, update="set"
    ),
    numpy=ref.one_hot,
    shape=shapes.one_hot,
    cases=(
        case(IndexSample((4,), 3), classes=3),
        case(IndexSample((2, 2), 4), classes=4),
        case(IndexSample((), 2), classes=2),
    ),
    refuses=(
        refusal(IndexOutOfRangeError, Given([3]), classes=3),
        refusal(IndexOutOfRangeError, Given([-4]), classes=3),
        refusal(ArgumentError, Given([0]), classes=-1),
    ),
    example="pt.one_hot(pt.asarray([2, 0]), 3)",
    doc="A row of zeros with a 1 at each index; a negative one counts from the end, one outside "
    "of the classes raises IndexOutOfRangeError.",
)
