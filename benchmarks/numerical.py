"""Factorisations, transforms, Einstein's sums, distributions and quantised integers."""

from __future__ import annotations

import numpy as np

import phlox as px
from benchmarks.case import Case, Run
from phlox import fft, linalg

SIZE = 512
BATCH = (256, 16, 16)
HEADS = (8, 8, 128, 64)


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    rng = np.random.default_rng(0)
    square, heads = (
        rng.standard_normal((SIZE, SIZE), np.float32),
        rng.standard_normal(HEADS, np.float32),
    )
    small = rng.standard_normal(BATCH, np.float32)
    mine = _phlox(square, small, heads)
    twins: dict[str, Run] = _torch(square, small, heads) if with_torch else {}
    return [Case(name, run, twins.get(name), times=times) for name, (run, times) in mine.items()]


def _phlox(
    square: np.ndarray, small: np.ndarray, heads: np.ndarray
) -> dict[str, tuple[Run, float]]:
    a, b, h = (px.asarray(x, device="cpu") for x in (square, small, heads))
    spd, many = a @ a.mT + px.eye(SIZE) * SIZE, b @ b.mT + px.eye(BATCH[-1])
    scale = px.full((SIZE, 1), 0.02)
    lines = a.reshape((64, 4096))
    whole = px.quantize(a, scale)
    places = px.random.randint((SIZE * 8, 2), 0, SIZE)
    return {
        f"cholesky {SIZE}": (lambda: linalg.cholesky(spd), 0.8),
        f"eigh {SIZE}": (lambda: linalg.eigh(spd), 0.8),
        f"inv {SIZE}": (lambda: linalg.inv(spd), 0.8),
        f"lu {SIZE}": (lambda: linalg.lu(a), 0.0),
        f"qr {SIZE}": (lambda: linalg.qr(a), 0.8),
        f"solve {SIZE}": (lambda: linalg.solve(spd, a), 0.8),
        f"svd {SIZE}": (lambda: linalg.svd(a), 0.8),
        "cholesky 256x16x16": (lambda: linalg.cholesky(many), 0.8),
        "inv 256x16x16": (lambda: linalg.inv(many), 0.8),
        "svd 256x16x16": (lambda: linalg.svd(b), 0.8),
        "matrix_exp 256x16x16": (lambda: linalg.matrix_exp(b * 0.1), 0.0),
        "einsum bhid,bhjd->bhij": (lambda: px.einsum("bhid,bhjd->bhij", h, h), 1.0),
        "einsum ij,jk,kl->il": (lambda: px.einsum("ij,jk,kl->il", a, a, a[:, :8]), 1.0),
        "rfft 4096, 64 lines": (lambda: fft.rfft(lines), 1.0),
        "fft 1000, 64 lines": (lambda: fft.fft(lines[:, :1000]), 1.0),
        "gather_nd": (lambda: px.gather_nd(a, places), 0.0),
        "logcumsumexp": (lambda: a.logcumsumexp(axis=1), 0.0),
        "random.exponential": (lambda: px.random.exponential(SIZE * SIZE), 0.0),
        "random.gamma": (lambda: px.random.gamma(SIZE * SIZE, 2.0), 0.0),
        "random.poisson": (lambda: px.random.poisson(SIZE * SIZE, 4.0), 0.0),
        "quantize": (lambda: px.quantize(a, scale), 0.0),
        "dequantize": (lambda: px.dequantize(whole, scale), 0.0),
    }


def _torch(square: np.ndarray, small: np.ndarray, heads: np.ndarray) -> dict[str, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    a, b, h = (torch.from_numpy(x) for x in (square, small, heads))
    spd, many = a @ a.mT + torch.eye(SIZE) * SIZE, b @ b.mT + torch.eye(BATCH[-1])
    lines = a.reshape(64, 4096)
    places = torch.randint(0, SIZE, (SIZE * 8, 2))
    two, four = torch.full((SIZE * SIZE,), 2.0), torch.full((SIZE * SIZE,), 4.0)
    scale, zero = torch.full((SIZE,), 0.02), torch.zeros(SIZE, dtype=torch.int64)
    whole = torch.quantize_per_channel(a, scale, zero, 0, torch.qint8)
    return {
        f"cholesky {SIZE}": lambda: torch.linalg.cholesky(spd),
        f"eigh {SIZE}": lambda: torch.linalg.eigh(spd),
        f"inv {SIZE}": lambda: torch.linalg.inv(spd),
        f"lu {SIZE}": lambda: torch.linalg.lu(a),
        f"qr {SIZE}": lambda: torch.linalg.qr(a),
        f"solve {SIZE}": lambda: torch.linalg.solve(spd, a),
        f"svd {SIZE}": lambda: torch.linalg.svd(a),
        "cholesky 256x16x16": lambda: torch.linalg.cholesky(many),
        "inv 256x16x16": lambda: torch.linalg.inv(many),
        "svd 256x16x16": lambda: torch.linalg.svd(b),
        "matrix_exp 256x16x16": lambda: torch.linalg.matrix_exp(b * 0.1),
        "einsum bhid,bhjd->bhij": lambda: torch.einsum("bhid,bhjd->bhij", h, h),
        "einsum ij,jk,kl->il": lambda: torch.einsum("ij,jk,kl->il", a, a, a[:, :8]),
        "rfft 4096, 64 lines": lambda: torch.fft.rfft(lines),
        "fft 1000, 64 lines": lambda: torch.fft.fft(lines[:, :1000]),
        "gather_nd": lambda: a[places[:, 0], places[:, 1]],
        "logcumsumexp": lambda: torch.logcumsumexp(a, 1),
        "random.exponential": lambda: torch.empty(SIZE * SIZE).exponential_(),
        "random.gamma": torch.distributions.Gamma(two, 1.0).sample,
        "random.poisson": lambda: torch.poisson(four),
        "quantize": lambda: torch.quantize_per_channel(a, scale, zero, 0, torch.qint8),
        "dequantize": lambda: whole.dequantize(),
    }
