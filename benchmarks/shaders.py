"""Ops on each GPU adapter, many to a read; beside PyTorch where it has CUDA.

Wall time as a program sees it. ``python -m benchmarks.gpu_kernels`` times single kernels by the
clock of the GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Literal

import numpy as np

import phlox as px
from benchmarks.case import Case
from benchmarks.gpu_steps import TURNS, read_back, torch_with_cuda

Of = Callable[..., Any]


@dataclass(frozen=True)
class Row:
    """One op: what it takes, how phlox and PyTorch write it.

    Attributes:
        arrays: shapes of float arrays of normal numbers.
        times: the wanted ratio to PyTorch's time.
        ours: of the arrays.
        theirs: of PyTorch's module and the arrays.
        flops: operations of one run.
        moved: bytes read and written by one run, in arrays like the first one.
        dtype: of the arrays.
        products: those of the device.
        turns: calls between two reads.
        picks: whether as many row numbers as the first array has rows follow the arrays.
    """

    name: str
    arrays: tuple[tuple[int, ...], ...]
    times: float
    ours: Of
    theirs: Of
    flops: float = 0.0
    moved: float = 0.0
    dtype: str = "float32"
    products: Literal["plain", "tensor"] = "plain"
    turns: int = TURNS
    picks: bool = False


def cases(*, with_torch: bool) -> Iterator[Case]:
    """Give the benchmarks of the group, for every adapter found."""
    for index, device in enumerate(px.Wgpu.found()):
        torch = torch_with_cuda() if with_torch and not device.is_software else None
        for row in rows(software=device.is_software):
            yield _case(index, row, torch)


def rows(*, software: bool) -> list[Row]:
    """Return all ops, in sizes for a GPU or for a CPU that plays one."""
    many, table = (1 << 20, (1024, 1024)) if software else (1 << 26, (65536, 1024))
    sort = (256, 256) if software else (4096, 1024)
    return [
        Row(
            "gather of rows",
            (table,),
            0.9,
            lambda x, i: px.take(x, i, axis=0),
            lambda _, x, i: x[i],
            moved=2,
            picks=True,
        ),
        Row("add of 10", ((10,),), 1.5, lambda x: x + x, lambda _, x: x + x, turns=1000),
        Row("one add and a read", ((10,),), 1.0, lambda x: x + x, lambda _, x: x + x, turns=1),
        Row("add", ((many,),) * 2, 0.95, lambda x, y: x + y, lambda _, x, y: x + y, moved=3),
        Row("exp", ((many,),), 0.95, lambda x: x.exp(), lambda _, x: x.exp(), moved=2),
        Row("gelu", ((many,),), 0.95, lambda x: x.gelu(), _functional("gelu"), moved=2),
        Row("sum", ((many,),), 0.95, lambda x: x.sum(), lambda _, x: x.sum(), moved=1),
        Row("softmax", (table,), 1.0, px.softmax, lambda _, x: x.softmax(1), moved=2),
        Row("layer norm", (table,), 1.1, px.layer_norm, _layer_norm, moved=2),
        Row(
            "sum over rows", (table,), 0.95, lambda x: x.sum(axis=0), lambda _, x: x.sum(0), moved=1
        ),
        Row("sum of rows", (table,), 0.95, lambda x: x.sum(axis=1), lambda _, x: x.sum(1), moved=1),
        Row(
            "cumsum",
            (table,),
            0.95,
            lambda x: px.cumsum(x, axis=1),
            lambda _, x: x.cumsum(1),
            moved=2,
        ),
        Row(
            "argmax", (table,), 0.95, lambda x: x.argmax(axis=1), lambda _, x: x.argmax(1), moved=1
        ),
        Row(
            "transpose copy",
            (table,),
            1.3,
            lambda x: x.T.contiguous(),
            lambda _, x: x.T.contiguous(),
            moved=2,
        ),
        Row("sort rows", (sort,), 0.8, lambda x: px.sort(x), lambda _, x: x.sort(1), turns=4),
        Row(
            "topk 10 of rows",
            (sort,),
            1.0,
            lambda x: px.topk(x, 10),
            lambda _, x: x.topk(10),
            turns=4,
        ),
        *_products(software=software),
        *_windows(software=software),
        *_attention(software=software),
    ]


def _functional(name: str) -> Of:
    return lambda torch, x: getattr(torch.nn.functional, name)(x)


def _layer_norm(torch: Any, x: Any) -> Any:
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def _products(*, software: bool) -> list[Row]:
    wanted = {64: 1.0, 256: 1.0, 1024: 1.0, 4096: 0.9}
    found = []

    def product(name: str, times: float, *arrays: tuple[int, ...], **how: Any) -> Row:
        flops = 2.0 * prod(arrays[0]) * arrays[1][-1]
        return Row(
            f"matmul {name}",
            arrays,
            times,
            lambda x, y: x @ y,
            lambda _, x, y: x @ y,
            flops,
            **how,
        )

    for n in (64, 256) if software else tuple(wanted):
        found.append(product(f"{n}", wanted[n], (n, n), (n, n)))
    if software:
        return found
    square = ((4096, 4096),) * 2
    found.append(product("4096, products by tensor cores", 1.3, *square, products="tensor"))
    found += [product(f"{n}, float16", 0.4, (n, n), (n, n), dtype="float16") for n in (4096, 8192)]
    found.append(product("96 of 512x64x512", 0.9, (96, 512, 64), (96, 64, 512)))
    found.append(product("1x4096x4096", 0.95, (1, 4096), (4096, 4096)))
    return found


def _windows(*, software: bool) -> list[Row]:
    batch, side, large = (1, 56, 64) if software else (32, 56, 512)
    flops = 2.0 * batch * 64 * 64 * 9 * side * side
    arrays = ((batch, 64, side, side), (64, 64, 3, 3))

    def ours(x: Any, w: Any) -> Any:
        device = px.Autodiff(x.device)
        x, w = (z.to_device(device).require_grad() for z in (x, w))
        grads = px.conv2d(x, w, padding=1).sum().backward()
        return [grads.get(x), grads.get(w)]

    def theirs(torch: Any, x: Any, w: Any) -> Any:
        x, w = (z.detach().requires_grad_() for z in (x, w))
        return torch.autograd.grad(torch.nn.functional.conv2d(x, w, padding=1).sum(), (x, w))

    return [
        Row(
            "conv 64->64 3x3, 56x56",
            arrays,
            0.9,
            lambda x, w: px.conv2d(x, w, padding=1),
            lambda torch, x, w: torch.nn.functional.conv2d(x, w, padding=1),
            flops,
        ),
        Row("the same with both gradients", arrays, 0.85, ours, theirs, 3 * flops),
        Row(
            "max pool of 5, step 2, dilation 2",
            ((2, 128, large, large),),
            1.0,
            lambda x: px.max_pool2d(x, 5, stride=2, padding=2, dilation=2),
            lambda torch, x: torch.nn.functional.max_pool2d(x, 5, 2, 2, 2),
        ),
    ]


def _attention(*, software: bool) -> list[Row]:
    shape = (1, 2, 64, 32) if software else (8, 12, 1024, 64)
    flops = 4.0 * prod(shape) * shape[2]
    found = []
    for dtype in ("float32",) if software else ("float32", "float16"):
        for is_causal in (False, True):
            found.append(
                Row(
                    f"attention {dtype}{', causal' * is_causal}",
                    (shape,) * 3,
                    1.0,
                    lambda q, k, v, is_causal=is_causal: px.attention(q, k, v, is_causal=is_causal),
                    lambda torch, q, k, v, is_causal=is_causal: (
                        torch.nn.functional.scaled_dot_product_attention(
                            q, k, v, is_causal=is_causal
                        )
                    ),
                    flops / (1 + is_causal),
                    dtype=dtype,
                )
            )
    return found


@lru_cache(maxsize=3)
def _drawn(shape: tuple[int, ...], place: int) -> np.ndarray:
    """Normal numbers; rows of one shape follow each other."""
    return np.random.default_rng(place).standard_normal(shape, np.float32)


def _case(index: int, row: Row, torch: Any) -> Case:
    device = px.Wgpu(index, products=row.products)
    drawn = [_drawn(shape, place) for place, shape in enumerate(row.arrays)]
    arrays = [px.asarray(x, device=device).astype(row.dtype) for x in drawn]
    count = row.arrays[0][0]
    picked = [np.random.default_rng(0).integers(0, count, count)] * row.picks
    arrays += [px.asarray(x.astype(np.int32), device=device) for x in picked]
    theirs = None
    if torch is not None:
        given = [torch.as_tensor(x, device="cuda").to(getattr(torch, row.dtype)) for x in drawn]
        given += [torch.as_tensor(x, device="cuda") for x in picked]
        theirs = read_back(lambda: row.theirs(torch, *given), _read_theirs, row.turns)
    item = arrays[0].dtype.itemsize
    return Case(
        f"{device!r} {row.name}, x{row.turns}",
        read_back(lambda: row.ours(*arrays), _read, row.turns),
        theirs,
        row.flops * row.turns,
        row.moved * prod(row.arrays[0]) * item * row.turns,
        times=row.times,
    )


def _first(found: Any) -> Any:
    while isinstance(found, tuple | list):
        found = found[0]
    return found.flatten()[:1]


def _read(found: Any) -> object:
    return _first(found).numpy()


def _read_theirs(found: Any) -> object:
    return _first(found).detach().cpu()
