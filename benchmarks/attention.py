"""Attention of float32 heads, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox as px
from benchmarks.case import Case, Run

# name, query (N, H, Q, D), key and value (N, Hkv, K, D), causal, wanted times PyTorch
SHAPES = (
    ("12 heads 512x64", (1, 12, 512, 64), (1, 12, 512, 64), False, 1.5),
    ("12 heads 512x64, causal", (1, 12, 512, 64), (1, 12, 512, 64), True, 1.5),
    ("b8 8 heads 128x32", (8, 8, 128, 32), (8, 8, 128, 32), False, 0.0),
    ("decode 32 heads, 8 of keys 4096x128", (1, 32, 1, 128), (1, 8, 4096, 128), False, 0.0),
)


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    rng = np.random.default_rng(0)
    out = []
    for name, query, key, causal, times in SHAPES:
        arrays = [rng.standard_normal(shape, np.float32) for shape in (query, key, key)]
        mine = _phlox(arrays, causal)
        twins: tuple[Run | None, Run | None] = (
            _torch(arrays, causal) if with_torch else (None, None)
        )
        flops = 4.0 * np.prod(query) * key[2] * (0.5 if causal else 1.0)
        out.append(Case(name, mine[0], twins[0], flops, times=times))
        if query[2] > 1:
            out.append(Case(f"{name}, with gradients", mine[1], twins[1], 3.5 * flops))
    return out


def _phlox(arrays: list[np.ndarray], causal: bool) -> tuple[Run, Run]:
    q, k, v = (px.asarray(a, device="cpu") for a in arrays)
    train = px.Autodiff(px.Cpu())
    tq, tk, tv = (px.asarray(a, device=train).require_grad() for a in arrays)

    def gradients() -> object:
        return px.attention(tq, tk, tv, is_causal=causal).sum().backward()

    return lambda: px.attention(q, k, v, is_causal=causal), gradients


def _torch(arrays: list[np.ndarray], causal: bool) -> tuple[Run, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    q, k, v = (torch.from_numpy(a) for a in arrays)
    grouped = q.shape[1] != k.shape[1]
    attention: Any = torch.nn.functional.scaled_dot_product_attention
    tracked: list[Any] = [torch.from_numpy(a).requires_grad_() for a in arrays]

    def gradients() -> object:
        out = attention(*tracked, is_causal=causal, enable_gqa=grouped).sum()
        return torch.autograd.grad(out, tracked)

    return lambda: attention(q, k, v, is_causal=causal, enable_gqa=grouped), gradients
