"""Products of few rows with a norm before them and elementwise ops after them, in one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor.capture import Instr, Program, RowProduct
from phlox_tensor.ops.blocks import dequantize_words
from phlox_tensor.shapes.blocks import FORMS
from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray
from phlox_wgpu.products import rows as products

EPSILON = 1e-5
DEPTH = 512
Up = Callable[[Any], GpuArray]


def matrix(form: str, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A matrix as it lies on the device, and its numbers, (DEPTH, count)."""
    if not form:
        numbers = rng.normal(size=(DEPTH, count)).astype(np.float32)
        return numbers, numbers
    size, nbytes = FORMS[form]
    blocks = rng.integers(0, 256, (count, DEPTH // size, nbytes), dtype=np.uint8)
    for at in {"Q4_K": (0, 2), "Q6_K": (208,)}.get(form, (0,)):
        halves = rng.normal(scale=0.01, size=blocks.shape[:2]).astype(np.float16)
        blocks[..., at : at + 2] = halves[..., None].view(np.uint8)
    words = blocks.reshape(count, -1).view(np.int32)
    whole = dequantize_words(pt.asarray(words, device=pt.Numpy()), form, dtype=pt.float32)
    return words, whole.numpy().T


def refused(*_: Any) -> Any:
    raise AssertionError("the formula ran")


def program(*instrs: tuple[str, tuple[int, ...]], arrays: int) -> Program:
    """The last of some ops of float32."""
    made = tuple(Instr(op, args, "float32") for op, args in instrs)
    return Program(("float32",) * arrays, (), made, (arrays + len(made) - 1,))


def made(gpu: Wgpu, form: str, count: int, last: Program | None, *, normed: bool) -> Any:
    """The kernel."""
    op, attributes = ("words_linear", (form,)) if form else ("linear", ())
    product = RowProduct(op, attributes, count, EPSILON if normed else None, last)
    kernel = gpu.row_product(product, refused)
    assert kernel is not None
    return kernel


def normal(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """A row divided by its root mean square, times a weight."""
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide**2).mean(axis=-1, keepdims=True) + EPSILON) * weight


def check(gpu: Wgpu, found: GpuArray, want: np.ndarray, near: float = 1e-5) -> None:
    got = gpu.read(found)
    assert got.shape == want.shape
    assert np.abs(got - want).max() < near * np.abs(want).max()


@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize("form", ["", "Q4_0", "Q4_K", "Q6_K", "Q8_0"])
def test_several_matrices_behind_a_norm(
    form: str, lanes: bool, gpu: Wgpu, up: Up, rng: np.random.Generator, monkeypatch: Any
) -> None:
    if not lanes and form:  # as of engines that do not know how many threads a subgroup has
        monkeypatch.setattr(products, "_lanes", lambda _: 0)
    counts = (36, 4, 20) if not form else (37, 3, 20)
    each = [matrix(form, count, rng) for count in counts]
    weight = rng.normal(size=DEPTH).astype(np.float32)
    for rows in (1, 3):
        x = rng.normal(size=(1, rows, DEPTH)).astype(np.float32)
        kernel = made(gpu, form, 3, None, normed=True)
        found = kernel(up(x), up(weight), *[up(lying) for lying, _ in each])
        assert len(found) == 3
        for result, (_, numbers) in zip(found, each, strict=True):
            check(gpu, result, normal(x, weight) @ numbers)


@pytest.mark.parametrize("form", ["", "Q4_0", "Q8_0"])
def test_what_is_made_of_the_products(
    form: str, gpu: Wgpu, up: Up, rng: np.random.Generator
) -> None:
    (a, first), (b, second) = matrix(form, 40, rng), matrix(form, 40, rng)
    x = rng.normal(size=(2, DEPTH)).astype(np.float32)
    more = rng.normal(size=(2, 40)).astype(np.float32)
    adds = made(gpu, form, 1, program(("add", (1, 0)), arrays=2), normed=False)
    check(gpu, adds(up(x), up(a), up(more))[0], more + x.astype(np.float64) @ first)
    gate = program(("sigmoid", (0,)), ("multiply", (3, 1)), ("subtract", (4, 2)), arrays=3)
    weight = np.ones(DEPTH, np.float32)
    gated = made(gpu, form, 2, gate, normed=True)
    y = normal(x, weight)
    want = 1 / (1 + np.exp(-(y @ first))) * (y @ second) - more
    check(gpu, gated(up(x), up(weight), up(a), up(b), up(more))[0], want)


def test_numbers_follow_the_arrays(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    lying, numbers = matrix("", 8, rng)
    last = Program(("float32",), ("float32",), (Instr("multiply", (0, 1), "float32"),), (2,))
    x = rng.normal(size=(1, DEPTH)).astype(np.float32)
    kernel = made(gpu, "", 1, last, normed=False)
    for factor in (2.0, -0.5):
        check(gpu, kernel(up(x), up(lying), factor)[0], factor * (x @ numbers))


@pytest.mark.parametrize(("size", "by"), [(1e25, 1.0), (8e37, 100.0)], ids=["squares", "products"])
@pytest.mark.parametrize("form", ["", "Q8_0"])
def test_rows_so_large_that_no_float_holds_what_is_made_of_them_before_they_are_divided(
    form: str, size: float, by: float, gpu: Wgpu, up: Up, rng: np.random.Generator
) -> None:
    lying, numbers = matrix(form, 8, rng)
    x = rng.uniform(-4, 4, size=(1, DEPTH)).astype(np.float32) * np.float32(size)
    weight = np.full(DEPTH, by, np.float32)
    kernel = made(gpu, form, 1, None, normed=True)
    check(gpu, kernel(up(x), up(weight), up(lying))[0], normal(x, weight) @ numbers)


def test_halves_are_rounded_where_ops_would_store_them(
    gpu: Wgpu, up: Up, rng: np.random.Generator
) -> None:
    if pt.float16 not in gpu.dtypes:
        pytest.skip("no float16 on this adapter")
    x = rng.normal(size=(1, DEPTH)).astype(np.float16)
    lying = rng.normal(scale=0.1, size=(DEPTH, 64)).astype(np.float16)
    more = rng.normal(size=(1, 64)).astype(np.float16)
    last = Program(("float16", "float16"), (), (Instr("add", (0, 1), "float16"),), (2,))
    found = gpu.read(made(gpu, "", 1, last, normed=False)(up(x), up(lying), up(more))[0])
    want = (x.astype(np.float32) @ lying.astype(np.float32)).astype(np.float16) + more
    assert found.dtype == np.float16
    assert (found == want).mean() > 0.9  # sums in another order are rounded to a neighbor
    assert np.abs(found.astype(np.float32) - want).max() < 0.02


def test_operands_that_do_not_fit_run_the_formula(
    gpu: Wgpu, up: Up, rng: np.random.Generator
) -> None:
    ran: list[int] = []

    def formula(*operands: Any) -> tuple[Any, ...]:
        ran.append(len(operands))
        return ()

    kernel = gpu.row_product(RowProduct("linear", (), 1, None, None), formula)
    assert kernel is not None
    x = up(rng.normal(size=(1, 8)).astype(np.float32))
    turned = up(np.ones((12, 8), np.float32)).view((8, 12), (1, 8), 0)
    kernel(x, turned)
    kernel(x, up(np.ones((8, 7), np.float32)))
    kernel(up(np.ones((5, 8), np.float32)), up(np.ones((8, 4), np.float32)))
    assert ran == [2, 2, 2]
    kernel(x, up(np.ones((8, 4), np.float32)))
    assert len(ran) == 3


def test_there_is_no_kernel_for_other_words_and_epsilons(gpu: Wgpu) -> None:
    assert gpu.row_product(RowProduct("words_linear", ("Q5_0",), 1, None, None), refused) is None
    assert gpu.row_product(RowProduct("linear", (), 1, 0.0, None), refused) is None
