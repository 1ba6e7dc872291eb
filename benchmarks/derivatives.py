"""What derivatives cost: a node forward and backward, gradients of examples, Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Case, Run

# Steps of a chain whose tensors are so small that the graph is all it costs.
STEPS, SIZE = 100, 8
BATCH, SIZES = 64, (32, 64, 10)


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    rng = np.random.default_rng(0)
    start = rng.standard_normal(SIZE).astype("float32")
    x = rng.standard_normal((BATCH, SIZES[0])).astype("float32")
    y = rng.standard_normal((BATCH, SIZES[2])).astype("float32")
    first = rng.standard_normal(SIZES[:2]).astype("float32") * 0.1
    last = rng.standard_normal(SIZES[1:]).astype("float32") * 0.1
    mine = _phlox(start, x, y, first, last)
    twins = _torch(start, x, y, first, last) if with_torch else {}
    # A node shall cost 0.6 of PyTorch's, forward and backward.
    times = {"a recorded step": 1 / 0.6, "the backward pass of a step": 1 / 0.6}
    return [
        Case(f"{name}, {STEPS} of them" if name in times else name, run, twins.get(name),
             times=times.get(name, 1.0))
        for name, run in mine.items()
    ]  # fmt: skip


def _phlox(
    start: np.ndarray, x: np.ndarray, y: np.ndarray, first: np.ndarray, last: np.ndarray
) -> dict[str, Run]:
    cpu = px.Cpu()
    leaf = px.asarray(start, device=px.Autodiff(cpu)).require_grad()

    def chain() -> px.Tensor[Any]:
        h = leaf
        for _ in range(STEPS // 2):
            h = (h * leaf).tanh()
        return h

    end = chain().sum()
    xs, ys = px.asarray(x, device=cpu), px.asarray(y, device=cpu)
    weights = px.asarray(first, device=cpu), px.asarray(last, device=cpu)

    def loss(w: Any, x: px.Tensor[Any], y: px.Tensor[Any]) -> px.Tensor[Any]:
        return ((x @ w[0]).tanh() @ w[1] - y).square().sum()

    each = px.vmap(px.grad(loss), (None, 0, 0))
    rows = px.jacobian(lambda x: (x @ weights[0]).tanh())
    return {
        "a recorded step": chain,
        "the backward pass of a step": lambda: end.backward(retain_graph=True).get(leaf),
        f"gradients of {BATCH} examples": lambda: each(weights, xs, ys),
        "Jacobian of 64 values": lambda: rows(xs[0]),
    }


def _torch(
    start: np.ndarray, x: np.ndarray, y: np.ndarray, first: np.ndarray, last: np.ndarray
) -> dict[str, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    leaf = torch.from_numpy(start).requires_grad_()

    def chain() -> Any:
        h = leaf
        for _ in range(STEPS // 2):
            h = (h * leaf).tanh()
        return h

    end = chain().sum()
    xs, ys = torch.from_numpy(x), torch.from_numpy(y)
    weights = torch.from_numpy(first), torch.from_numpy(last)

    def loss(w: Any, x: Any, y: Any) -> Any:
        return ((x @ w[0]).tanh() @ w[1] - y).square().sum()

    each = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))
    rows = torch.func.jacrev(lambda x: (x @ weights[0]).tanh())
    return {
        "a recorded step": chain,
        "the backward pass of a step": lambda: torch.autograd.grad(end, leaf, retain_graph=True),
        f"gradients of {BATCH} examples": lambda: each(weights, xs, ys),
        "Jacobian of 64 values": lambda: rows(xs[0]),
    }
