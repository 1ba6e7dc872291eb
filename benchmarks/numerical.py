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
        f"lu {SIZE}": (lambda: linalg.lu(a), 0.8),
        f"qr {SIZE}": (lambda: linalg.qr(a), 0.8),
        f"solve {SIZE}": (lambda: linalg.solve(spd, a), 0.8),
        f"svd {SIZE}": (lambda: linalg.svd(a), 0.8),
        "cholesky 256x16x16": (lambda: linalg.cholesky(many), 0.8),
        "inv 256x16x16": (lambda: linalg.inv(many), 0.8),
        "svd 256x16x16": (lambda: linalg.svd(b), 0.8),
        "matrix_exp 256x16x16": (lambda: linalg.matrix_exp(b * 0.1), 0.8),
        "det 256x16x16": (lambda: linalg.det(many), 0.8),
        "inv 300": (lambda: linalg.inv(spd[:300, :300]), 0.8),
        "lstsq 512x50": (lambda: linalg.lstsq(a[:, :50], a[:, :1]), 0.8),
        "pinv 200x100": (lambda: linalg.pinv(a[:200, :100]), 0.8),
        "solve 512, one column": (lambda: linalg.solve(spd, a[:, :1]), 0.8),
        "solve_triangular 300, 10 columns": (
            lambda: linalg.solve_triangular(spd[:300, :300], a[:300, :10], upper=True), 0.8,
        ),
        "solve_triangular 512": (lambda: linalg.solve_triangular(spd, a, upper=False), 0.8),
        "einsum bhid,bhjd->bhij": (lambda: px.einsum("bhid,bhjd->bhij", h, h), 1.0),
        "einsum ij,jk,kl->il": (lambda: px.einsum("ij,jk,kl->il", a, a, a[:, :8]), 1.0),
        "einsum ij,ij->": (lambda: px.einsum("ij,ij->", a, a), 1.0),
        "einsum ij,ij->i": (lambda: px.einsum("ij,ij->i", a, a), 1.0),
        "rfft 4096, 64 lines": (lambda: fft.rfft(lines), 1.0),
        "fft 1000, 64 lines": (lambda: fft.fft(lines[:, :1000]), 1.0),
        "fft 512, 512 lines": (lambda: fft.fft(a), 1.0),
        "fftn 512x512": (lambda: fft.fftn(a), 1.0),
        "gather_nd": (lambda: px.gather_nd(a, places), 1.0),
        "logcumsumexp": (lambda: a.logcumsumexp(axis=1), 1.0),
        "random.exponential": (lambda: px.random.exponential(SIZE * SIZE), 1.0),
        "random.gamma": (lambda: px.random.gamma(SIZE * SIZE, 2.0), 1.0),
        "random.poisson": (lambda: px.random.poisson(SIZE * SIZE, 4.0), 1.0),
        "quantize": (lambda: px.quantize(a, scale), 1.0),
        "dequantize": (lambda: px.dequantize(whole, scale), 1.0),
    }  # fmt: skip


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
        "det 256x16x16": lambda: torch.linalg.det(many),
        "inv 300": lambda: torch.linalg.inv(spd[:300, :300]),
        "lstsq 512x50": lambda: torch.linalg.lstsq(a[:, :50], a[:, :1]),
        "pinv 200x100": lambda: torch.linalg.pinv(a[:200, :100]),
        "solve 512, one column": lambda: torch.linalg.solve(spd, a[:, :1]),
        "solve_triangular 300, 10 columns": lambda: torch.linalg.solve_triangular(
            spd[:300, :300], a[:300, :10], upper=True
        ),
        "solve_triangular 512": lambda: torch.linalg.solve_triangular(spd, a, upper=False),
        "einsum bhid,bhjd->bhij": lambda: torch.einsum("bhid,bhjd->bhij", h, h),
        "einsum ij,jk,kl->il": lambda: torch.einsum("ij,jk,kl->il", a, a, a[:, :8]),
        "einsum ij,ij->": lambda: torch.einsum("ij,ij->", a, a),
        "einsum ij,ij->i": lambda: torch.einsum("ij,ij->i", a, a),
        "rfft 4096, 64 lines": lambda: torch.fft.rfft(lines),
        "fft 1000, 64 lines": lambda: torch.fft.fft(lines[:, :1000]),
        "fft 512, 512 lines": lambda: torch.fft.fft(a),
        "fftn 512x512": lambda: torch.fft.fftn(a),
        "gather_nd": lambda: a[places[:, 0], places[:, 1]],
        "logcumsumexp": lambda: torch.logcumsumexp(a, 1),
        "random.exponential": lambda: torch.empty(SIZE * SIZE).exponential_(),
        "random.gamma": torch.distributions.Gamma(two, 1.0).sample,
        "random.poisson": lambda: torch.poisson(four),
        "quantize": lambda: torch.quantize_per_channel(a, scale, zero, 0, torch.qint8),
        "dequantize": lambda: whole.dequantize(),
    }
