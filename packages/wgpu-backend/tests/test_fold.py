"""Programs that end in a fold: one kernel, with the bits of the map and the reduction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import Tensor
from phlox_tensor.capture import Instr, Program
from phlox_wgpu import Wgpu
from phlox_wgpu._runtime import GpuDevice


def _square(fold: str, keepdims: bool = True, inner: int = 1) -> Program:
    """``fold((x - y)²) · 2 + 1``."""
    instrs = (
        Instr("subtract", (0, 1), "float32"),
        Instr("square", (4,), "float32"),
        Instr(fold, (5,), "float32"),
        Instr("multiply", (6, 2), "float32"),
        Instr("add", (7, 3), "float32"),
    )
    return Program(("float32",) * 2, ("float32",) * 2, instrs, (8, 6), inner, keepdims)


def _wanted(x: Tensor, y: Tensor, fold: str, keepdims: bool, inner: int) -> list[Tensor]:
    axes = tuple(range(-inner, 0))
    folded = getattr(pt, fold)((x - y).square(), axis=axes, keepdims=keepdims)
    return [folded * 2.0 + 1.0, folded]


def _check(program: Program, gpu: Wgpu, x: Tensor, y: Tensor) -> None:
    run = gpu.kernel(program)
    assert run is not None
    fold = program.instrs[2].op
    wanted = _wanted(x, y, fold, program.keepdims, program.inner)
    for _ in range(2):  # planned, and from the plan
        found = run(x.primitive, y.primitive, 2.0, 1.0)
        for mine, own in zip(found, wanted, strict=True):
            assert gpu.shape_of(mine) == own.shape
            got, read = gpu.read(mine), own.numpy()
            assert np.allclose(got, read, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("fold", ["max", "mean", "min", "prod", "sum"])
@pytest.mark.parametrize("shape", [(3, 5), (33, 1000), (1, 70_000), (600, 8), (2, 3, 64)])
def test_a_map_and_its_fold_are_one_kernel(
    gpu: Wgpu, rng: np.random.Generator, fold: str, shape: tuple[int, ...]
) -> None:
    scale = 0.5 if fold == "prod" else 1.0
    x, y = (
        pt.asarray(scale * rng.standard_normal(shape).astype(np.float32), device=gpu)
        for _ in range(2)
    )
    for keepdims in (True, False):
        _check(_square(fold, keepdims), gpu, x, y)
    _check(_square(fold, inner=2), gpu, x, y)


def test_operands_may_lie_in_any_way(gpu: Wgpu, rng: np.random.Generator) -> None:
    wide = pt.asarray(rng.standard_normal((9, 66)).astype(np.float32), device=gpu)
    whole = pt.asarray(rng.standard_normal((64, 9)).astype(np.float32), device=gpu)
    row, one = (
        pt.asarray(rng.standard_normal(64).astype(np.float32), device=gpu),
        pt.asarray(np.float32(0.5), device=gpu),
    )
    column = pt.asarray(rng.standard_normal((9, 1)).astype(np.float32), device=gpu)
    for x, y in (
        (whole.T, row),
        (wide[:, 1:65], whole.T),
        (wide[:, ::3], one),
        (column, row),
        (whole.T.flip(0), column),
    ):
        _check(_square("sum"), gpu, x, y)


def test_nan_and_infinities_are_those_of_the_ops(gpu: Wgpu) -> None:
    rows = [[np.nan, 1, 2, 3], [np.inf, 0, 0, 1], [1, 2, 3, 4], [0, 0, 0, 0]]
    values = np.array(rows, np.float32)
    for fold in ("max", "min", "sum"):
        _check(
            _square(fold),
            gpu,
            pt.asarray(values, device=gpu),
            pt.asarray(np.zeros((4, 4), np.float32), device=gpu),
        )


def test_no_array_lies_between_the_map_and_its_fold(
    gpu: Wgpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = (
        pt.asarray(np.ones((64, 256), np.float32), device=gpu),
        pt.asarray(np.zeros((64, 256), np.float32), device=gpu),
    )
    run = gpu.kernel(_square("mean"))
    assert run is not None
    run(x.primitive, y.primitive, 2.0, 1.0)
    made: list[tuple[int, ...]] = []
    make = GpuDevice._made

    def noting(self: GpuDevice, result: Any) -> Any:
        made.append(result[0])
        return make(self, result)

    monkeypatch.setattr(GpuDevice, "_made", noting)
    run(x.primitive, y.primitive, 2.0, 1.0)
    assert set(made) == {(64, 1)}


def test_what_is_no_fold_of_float32_is_left_to_the_ops(gpu: Wgpu) -> None:
    instrs = (Instr("abs", (0,), "int32"), Instr("sum", (1,), "int32"))
    assert gpu.kernel(Program(("int32",), (), instrs, (2,), 1)) is None


def test_shapes_without_rows_are_rejected(gpu: Wgpu) -> None:
    run = gpu.kernel(_square("sum"))
    assert run is not None
    for x, y in (((2, 3), (4, 3)), ((), ()), ((3, 0), (3, 0))):
        arrays = [pt.asarray(np.zeros(shape, np.float32), device=gpu).primitive for shape in (x, y)]
        with pytest.raises(pt.Rejected):
            run(*arrays, 2.0, 1.0)
