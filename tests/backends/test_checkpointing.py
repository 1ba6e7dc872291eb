"""Peaks of memory: BalancedCheckpointing never holds more than keeping everything does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_autodiff import Autodiff, BalancedCheckpointing, checkpoint
from phlox_kernels import Cpu, _native
from phlox_tensor import Backend, Tensor

DEVICE = Cpu()
PLAIN = Autodiff(DEVICE)
BALANCED = Autodiff(DEVICE, checkpointing=BalancedCheckpointing())
# A value in flight at another moment: one part in fifty of the peaks here.
SLACK = 1.02

Program = Callable[..., Tensor[Any]]


def _chain(x: Tensor[Any]) -> Tensor[Any]:
    for _ in range(20):
        x = ((x * 1.01).tanh() + 0.1).sigmoid()
    return x.sum()


def _block(x: Tensor[Any], w: Tensor[Any], up: Tensor[Any], down: Tensor[Any]) -> Tensor[Any]:
    """A transformer block of one head, its attention written out."""
    y = pt.layer_norm(x, None, None)
    q, k, v = pt.chunk(y @ w, 3, axis=-1)
    scores = (q @ k.permute_dims((1, 0)) * (q.shape[-1] ** -0.5)).softmax(axis=-1)
    x = x + scores @ v
    y = pt.layer_norm(x, None, None)
    return x + (y @ up + 0.1).gelu() @ down


def _transformer(x: Tensor[Any], w: Tensor[Any], up: Tensor[Any], down: Tensor[Any]) -> Tensor[Any]:
    for _ in range(6):
        x = _block(x, w, up, down)
    return x.sum()


def _mlp(x: Tensor[Any], w: Tensor[Any]) -> Tensor[Any]:
    for _ in range(6):
        x = (x @ w + 0.5).relu()
    return x.square().mean()


def _gelu(x: Tensor[Any], w: Tensor[Any]) -> Tensor[Any]:
    for _ in range(6):
        x = (x @ w + 0.5).gelu() * 1.5
    return x.sum()


def _residual(x: Tensor[Any], w: Tensor[Any]) -> Tensor[Any]:
    for _ in range(8):
        x = x + (x @ w).tanh() * 0.5
    return x.sum()


def _gated(x: Tensor[Any], w: Tensor[Any], v: Tensor[Any]) -> Tensor[Any]:
    for _ in range(5):
        x = (x @ w).silu() * (x @ v)
    return x.mean()


def _sums(x: Tensor[Any], w: Tensor[Any], v: Tensor[Any]) -> Tensor[Any]:
    """Values that are kept once in place of two from which they could be computed again."""
    for _ in range(6):
        x = pt.layer_norm((x @ w) + (x @ v), None, None)
    return x.sum()


def _loop(x: Tensor[Any], w: Tensor[Any]) -> Tensor[Any]:
    state = x[0].zeros()
    for i in range(x.shape[0]):
        state = (state @ w + x[i]).tanh() * (x[i] * 0.5).sigmoid()
    return state.sum()


def _broadcasts(x: Tensor[Any]) -> Tensor[Any]:
    for _ in range(5):
        x = (x - x.mean(axis=-1, keepdims=True)) * x.sum(axis=0).sigmoid() + x.exp() * 0.01
    return x.sum()


def _images(x: Tensor[Any], w: Tensor[Any]) -> Tensor[Any]:
    for _ in range(4):
        x = (pt.conv2d(x, w, None, padding=1) * 0.2 + 0.1).relu()
    return pt.max_pool2d(x, 2).sum()


def _views(x: Tensor[Any], w: Tensor[Any]) -> Tensor[Any]:
    for _ in range(6):
        x = (x.reshape((256, 2, 256)).permute_dims((1, 0, 2)).sin() @ w).reshape((512, 256)).cos()
    return x.sum()


SQUARE = ((256, 256), (256, 256))
PROGRAMS: dict[str, tuple[Program, tuple[tuple[int, ...], ...]]] = {
    "a chain of cheap steps": (_chain, ((512, 512),)),
    "transformer blocks": (_transformer, ((128, 128), (128, 384), (128, 512), (512, 128))),
    "relu": (_mlp, SQUARE),
    "gelu": (_gelu, SQUARE),
    "residuals": (_residual, SQUARE),
    "gates": (_gated, (*SQUARE, (256, 256))),
    "sums of products": (_sums, (*SQUARE, (256, 256))),
    "a loop over slices": (_loop, ((20, 64, 128), (128, 128))),
    "broadcasts": (_broadcasts, ((512, 256),)),
    "images": (_images, ((4, 8, 64, 64), (8, 8, 3, 3))),
    "views": (_views, ((512, 256), (256, 256))),
}


def _tensors(device: Backend, shapes: tuple[tuple[int, ...], ...]) -> list[Tensor[Any]]:
    random = np.random.default_rng(0)
    return [
        pt.asarray(
            (random.standard_normal(s) / s[-1] ** 0.5).astype("float32"), device=device
        ).require_grad()
        for s in shapes
    ]


def _peak(program: Program, leaves: list[Tensor[Any]], *, twice: bool = False) -> tuple[int, Any]:
    """Bytes that a step holds at most beside what is there before, and its gradients."""
    _step(program, leaves, twice=twice)  # scratch memory is made at first use
    before = DEVICE.memory().current
    _native._reset_peak()
    out = _step(program, leaves, twice=twice)
    return DEVICE.memory().peak - before, out


def _step(program: Program, leaves: list[Tensor[Any]], *, twice: bool) -> list[Any]:
    loss = program(*leaves)
    if twice:
        loss.backward(retain_graph=True)
    grads = loss.backward()
    return [grads.get(leaf) for leaf in leaves]


@pytest.mark.parametrize("twice", [False, True], ids=["once", "retained"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_checkpointing_never_raises_the_peak(name: str, twice: bool) -> None:
    program, shapes = PROGRAMS[name]
    plain, kept = _peak(program, _tensors(PLAIN, shapes), twice=twice)
    balanced, again = _peak(program, _tensors(BALANCED, shapes), twice=twice)
    for one, other in zip(kept, again, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert balanced <= SLACK * plain, f"{balanced} bytes, {plain} without checkpointing"


def test_a_chain_of_cheap_steps_needs_less_than_half() -> None:
    program, shapes = PROGRAMS["a chain of cheap steps"]
    plain, balanced = (_peak(program, _tensors(d, shapes))[0] for d in (PLAIN, BALANCED))
    assert balanced < 0.6 * plain


def test_checkpointed_blocks_hold_their_inputs_alone() -> None:
    shapes = PROGRAMS["transformer blocks"][1]
    block = checkpoint(_block)

    def program(x: Tensor[Any], *weights: Tensor[Any]) -> Tensor[Any]:
        for _ in range(6):
            x = block(x, *weights)
        return x.sum()

    leaves = _tensors(PLAIN, shapes)
    plain, kept = _peak(_transformer, leaves)
    peak, again = _peak(program, leaves)
    for one, other in zip(kept, again, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert peak < 0.5 * plain
