"""Optimizer steps and clipping over a list of tensors: one op for all, for backends to fuse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod, sqrt
from operator import add

from .._op.records import case
from .._values.number import call
from .._values.tensor import Tensor
from ..reference import step as ref
from ..shapes import step as shapes
from . import binary
from ._families import step
from ._norms import root_of, scale_of

Tensors = Sequence["Tensor"]
_LIST = [(2, 3), (5,), ()]
_LONG = [(3, 700), (2,), (0, 4)]


@step.formula(
    "*tensors: Float, *grads: Float, *firsts: Float?, *seconds: Float?, *largest: Float?; "
    "lr: float, time: int, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-5, "
    "weight_decay: float = 0.0, decoupled: bool = False, amsgrad: bool = False -> *new: Float",
    numpy=ref.adam_step,
    shape=shapes.adam_step,
    # Away from gradients and means of 0, where the root has no derivative.
    domain={"grads": (0.5, 3.0), "seconds": (0.5, 3.0), "largest": (0.5, 3.0)},
    ulp=8,
    atol=8,
    cases=(
        case([(2, 3), ()], [(2, 3), ()], None, None, None, lr=0.1, time=1, beta_2=0.5),
        case(
            _LIST, _LIST, _LIST, _LIST, None, lr=0.1, time=3, beta_2=0.5,
            weight_decay=0.5, decoupled=True,
        ),
        case(
            [(2, 2)], [(2, 2)], [(2, 2)], [(2, 2)], [(2, 2)], lr=0.1, time=2, beta_1=0.5,
            beta_2=0.25, weight_decay=0.25, amsgrad=True,
        ),
        case([(3,)], [(3,)], None, None, None, lr=0.1, time=1, beta_2=0.5, amsgrad=True),
        case(_LONG, _LONG, _LONG, _LONG, None, lr=0.1, time=9, weight_decay=0.01),
    ),
    internal=True,
    doc="One step of Adam for each of a list of tensors: the new tensors, then the new first and "
    "second means, then with ``amsgrad`` the largest second means. No means stand for zeros, "
    "which is what the first step (``time`` 1) starts from. ``decoupled`` is AdamW. Kingma and "
    "Ba, 2014; Loshchilov and Hutter, 2017; Reddi et al., 2018.",
)  # fmt: skip
def adam_step(  # noqa: PLR0913, PLR0917 - what the op takes
    tensors: Tensors,
    grads: Tensors,
    firsts: Tensors,
    seconds: Tensors,
    largest: Tensors,
    lr: float,
    time: int,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    weight_decay: float,
    decoupled: bool,
    amsgrad: bool,
) -> tuple[Tensor, ...]:
    if weight_decay and not decoupled:
        grads = [g + x * weight_decay for x, g in zip(tensors, grads, strict=True)]
    new_firsts = [g * (1.0 - beta_1) for g in grads]
    new_seconds = [g.square() * (1.0 - beta_2) for g in grads]
    if firsts:
        new_firsts = [m + old * beta_1 for m, old in zip(new_firsts, firsts, strict=True)]
        new_seconds = [v + old * beta_2 for v, old in zip(new_seconds, seconds, strict=True)]
    tops = new_seconds
    if amsgrad and largest:
        tops = [v.maximum(old) for v, old in zip(new_seconds, largest, strict=True)]
    new = []
    for x, m, v in zip(tensors, new_firsts, tops, strict=True):
        root = v.sqrt() * (1.0 / call(sqrt, 1.0 - beta_2**time))
        move = m * (1.0 / (1.0 - beta_1**time)) / (root + epsilon)
        kept = x * (1.0 - lr * weight_decay) if weight_decay and decoupled else x
        new.append(kept - move * lr)
    return (*new, *new_firsts, *new_seconds, *(tops if amsgrad else ()))


@step.formula(
    "*grads: Float; threshold: float, joint: bool = False -> *clipped: Float",
    numpy=ref.clip_norms,
    shape=shapes.clip_norms,
    ulp=8,
    atol=8,
    cases=(
        case([(2, 3), (5,), ()], threshold=0.5),
        case([(2, 3), (5,), ()], threshold=0.5, joint=True),
        case([(2,), (0, 4)], threshold=100.0, joint=True),
        case([(3, 700), (2,)], threshold=0.25),
    ),
    internal=True,
    doc="Gradients scaled down to a Euclidean norm of at most ``threshold``: each, or with "
    "``joint`` all together. Pascanu et al., 2013.",
)
def clip_norms(grads: Tensors, threshold: float, joint: bool) -> tuple[Tensor, ...]:
    """By parts of the largest element: squares leave the range long before norms do.

    Those below 1 stay as they are, for beside ``LEAST_NORM`` small ones count for nothing.
    """
    wide = [g.to_full_precision() for g in grads]
    leading = [g.abs().max() if prod(g.shape) else g.sum() for g in wide]
    alike = len(wide) if joint else 1  # how many have one norm
    if joint and leading:
        leading = [reduce(binary.maximum, leading)]
    scales = [scale_of(each).maximum(1.0) for each in leading]
    squares = [(g / scale).square().sum() for g, scale in zip(wide, scales * alike, strict=True)]
    if joint and squares:
        squares = [reduce(add, squares)]
    factors = alike * [
        (threshold / scale / (root_of(each, 2.0) + shapes.LEAST_NORM / scale)).clip(max=1.0)
        for each, scale in zip(squares, scales, strict=True)
    ]
    return tuple(g * f.astype(g.dtype) for g, f in zip(grads, factors, strict=True))


@step.formula(
    "*tensors: Float, *grads: Float, *velocities: Float?; lr: float, momentum: float = 0.0, "
    "dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False -> *new: Float",
    numpy=ref.sgd_step,
    shape=shapes.sgd_step,
    ulp=4,
    atol=4,
    cases=(
        case(_LIST, _LIST, None, lr=0.1),
        case([(2, 2)], [(2, 2)], None, lr=0.1, momentum=0.5, dampening=0.25, weight_decay=0.5),
        case(_LIST, _LIST, _LIST, lr=0.1, momentum=0.5, dampening=0.25, weight_decay=0.5),
        case(_LONG, _LONG, _LONG, lr=0.1, momentum=0.5, nesterov=True),
    ),
    internal=True,
    doc="One step of gradient descent for each of a list of tensors: the new tensors, then with "
    "``momentum`` the new velocities. No velocities is where the first step starts from: they "
    "become the gradients. Sutskever et al., 2013.",
)
def sgd_step(
    tensors: Tensors,
    grads: Tensors,
    velocities: Tensors,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
) -> tuple[Tensor, ...]:
    if weight_decay:
        grads = [g + x * weight_decay for x, g in zip(tensors, grads, strict=True)]
    if not momentum:
        return tuple(x - g * lr for x, g in zip(tensors, grads, strict=True))
    moves = list(grads)
    if velocities:
        pairs = zip(velocities, grads, strict=True)
        moves = [v * momentum + g * (1.0 - dampening) for v, g in pairs]
    new = []
    for x, g, v in zip(tensors, grads, moves, strict=True):
        new.append(x - (g + v * momentum if nesterov else v) * lr)
    return (*new, *moves)
