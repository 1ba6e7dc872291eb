"""Norms and variances of equal elements and of ones far from 0: what is left is no rounding."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import REGISTRY, Numpy, Tensor
from phlox_tensor._device.compare import disagreement, narrow_error

Array = np.ndarray[Any, Any]
EPSILON = 1e-5
RNG = np.random.default_rng(0)
ROWS = {
    "equal": np.full((4, 65), 63.7),
    "equal and large": np.full((3, 1000), 12345.678),
    "far": 1e4 + RNG.integers(0, 64, (3, 65)),
    "farther": 1e6 + RNG.standard_normal((3, 129)),
    "one": np.full((2, 1), 63.7),
}
DTYPES = ("float16", "bfloat16", "float32", "float64")


def rows(name: str, dtype: str) -> Tensor[Any]:
    """In float16 the offset is in its range."""
    values = ROWS[name] if dtype != "float16" else np.minimum(ROWS[name], 6e4)
    return pt.asarray(values, dtype=dtype, device=Numpy())


def moments(row: list[float]) -> tuple[float, float, list[float]]:
    """Mean, variance and distances from the mean, by fractions."""
    parts = [Fraction(value) for value in row]
    mean = sum(parts) / len(parts)
    gaps = [part - mean for part in parts]
    variance = sum(gap * gap for gap in gaps) / len(parts)
    return float(mean), float(variance), [float(gap) for gap in gaps]


def true(x: Tensor[Any]) -> dict[str, Array]:
    """What the ops give for each row, in float64 and without rounding on the way."""
    found = [moments([float(v) for v in row]) for row in x.numpy().astype(np.float64)]
    mean, variance = (np.array([each[i] for each in found]) for i in (0, 1))
    scale = 1 / np.sqrt(variance + EPSILON)
    normal = np.array([each[2] for each in found]) * scale[:, None]
    values = x.numpy().astype(np.float64)
    square = np.array([math.fsum(row * row) / len(row) for row in values])[:, None]
    return {
        "mean": mean,
        "normal": normal,
        "root": values / np.sqrt(square + EPSILON),
        "variance": variance,
    }


def check(name: str, got: Tensor[Any], want: Array) -> None:
    """Hold a result to what its op declares."""
    op = REGISTRY[name]
    found = got.numpy()
    assert found.shape == want.shape
    problem = disagreement(
        found, want, ulp=op.tested.ulp, atol=op.tested.atol, rounded=narrow_error(op)
    )
    assert problem is None, f"{name}: {problem}"


def norms(x: Tensor[Any], *, expanded: bool) -> list[tuple[str, Tensor[Any], str]]:
    """Results of ops on rows or on channels, by name, and what they should be."""

    def run(name: str, *operands: Any) -> Any:
        op = REGISTRY[name]
        assert op.expand is not None
        assert op.numpy is not None
        if expanded:
            return op.expand(*operands)
        raw = [each.primitive if isinstance(each, Tensor) else each for each in operands]
        out = op.numpy(*raw)
        many = out if isinstance(out, tuple) else (out,)
        wrapped = tuple(Tensor(each, x.device) for each in many)
        return wrapped if isinstance(out, tuple) else wrapped[0]

    channels = x.mT
    one, none = x.zeros(x.shape[0]) + 1, x.zeros(x.shape[0])
    y, mean, variance = run("batch_norm_train", channels, one, none, EPSILON)
    both = run("var_mean", x, (1,), 0.0, False)
    return [
        ("batch_norm_train", y.mT, "normal"),
        ("batch_norm_train", mean, "mean"),
        ("batch_norm_train", variance, "variance"),
        ("layer_norm", run("layer_norm", x, None, None, EPSILON), "normal"),
        ("mean", both[1], "mean"),
        ("rms_norm", run("rms_norm", x, None, EPSILON), "root"),
        ("var", both[0], "variance"),
        ("var", run("var", x, (1,), 0.0, False), "variance"),
    ]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("expanded", [False, True], ids=["reference", "formula"])
def test_offsets_leave_norms_and_variances_as_they_are(
    name: str, dtype: str, expanded: bool
) -> None:
    x = rows(name, dtype)
    wanted = true(x)
    for op, got, key in norms(x, expanded=expanded):
        assert got.dtype is x.dtype
        check(op, got, wanted[key])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["equal", "one"])
def test_equal_elements_have_no_deviation_and_covariance(name: str, dtype: str) -> None:
    x = rows(name, dtype)
    for expanded in (False, True):
        for op, attributes in (("std", ((1,), 0.0, False)), ("cov", (0.0,))):
            entry = REGISTRY[op]
            assert entry.expand is not None
            got = entry.expand(x, *attributes) if expanded else entry(x, *attributes)
            check(op, got, np.zeros(got.shape))


@pytest.mark.parametrize("dtype", DTYPES)
def test_cotangents_of_equal_elements_are_those_of_no_distance(dtype: str) -> None:
    """normal = 0, so dx is what is left of g beside its mean: nothing of equal ones."""
    x = rows("equal", dtype)
    g = x.zeros() + 2.7
    for expanded in (False, True):
        for name in ("layer_norm_backward", "batch_norm_backward"):
            op = REGISTRY[name]
            assert op.expand is not None
            if name == "layer_norm_backward":
                operands: tuple[Any, ...] = (g, x, None, EPSILON)
            else:
                weight, none = x.zeros(4) + 1, x.zeros(4)
                operands = (g.mT, x.mT, weight, x[:, 0], none, EPSILON)
            dx, dweight, _ = (op.expand if expanded else op)(*operands)
            check(name, dx, np.zeros(dx.shape))
            check(name, dweight, np.zeros(dweight.shape))
