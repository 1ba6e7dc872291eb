"""The emitter of elementwise kernels: golden texts, fused chains, walks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray
from phlox_wgpu._elementwise import Chained, run_program
from phlox_wgpu._kernel import source
from phlox_wgpu._probe import keeps_ops_apart
from phlox_wgpu._split import bindings, pieces
from phlox_wgpu.wgsl import chain as chains
from phlox_wgpu.wgsl import table
from phlox_wgpu.wgsl.chain import Chain, Node, Walk, chain_source

Up = Callable[[Any], GpuArray]

ADD = Chain(("float32", "float32"), (Node("add", (0, 1), "float32"),), (2,))
LESS = Chain(("int32", "int32"), (Node("less", (0, 1), "bool"),), (2,))
TANH = Chain(("float16",), (Node("tanh", (0,), "float16"),), (1,))
FUSED = Chain(
    ("float32", "float32", "float32"),
    (
        Node("multiply", (0, 1), "float32"),
        Node("add", (3, 2), "float32"),
        Node("maximum", (4, 2), "float32"),
        Node("isnan", (5,), "bool"),
    ),
    (5, 6),
)

TEXTS = {
    "add_dense": (ADD, Walk("vv", 1, vector=True)),
    "add_row_bias": (ADD, Walk("vv", 2, vector=True)),
    "add_scalar": (ADD, Walk("vc", 1, vector=True)),
    "fused_column": (FUSED, Walk("vsv", 2, vector=True)),
    "less_strided": (LESS, Walk("ee", 3, vector=False)),
    "tanh_half": (TANH, Walk("v", 1, vector=True)),
}


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_text_is_the_golden_one(golden: Callable[[str, str], None], name: str) -> None:
    golden(name, source(chain_source(*TEXTS[name])))


def test_rows_are_sorted() -> None:
    assert list(table.ELEMENTWISE) == sorted(table.ELEMENTWISE)


def test_every_row_is_a_declared_op() -> None:
    assert set(table.ELEMENTWISE) <= set(pt.REGISTRY)


def test_a_missing_type_is_an_error() -> None:
    with pytest.raises(KeyError, match="bitwise_and"):
        table.expression("bitwise_and", "f")


@pytest.mark.parametrize("shape", [(5,), (4, 8), (3, 5, 7), (2, 1024), (0, 3), ()])
def test_fused_chain_equals_its_ops(
    gpu: Wgpu, up: Up, rng: np.random.Generator, shape: tuple[int, ...]
) -> None:
    a, b = (np.asarray(rng.normal(size=shape), np.float32) for _ in range(2))
    if a.size > 2:
        a.flat[1] = np.nan
    program = Chained(FUSED, (pt.float32, pt.bool_))
    values, nans = run_program(gpu.device, program, (up(a), 0.5, up(b)))
    expected = np.maximum(a * np.float32(0.5) + b, b)
    np.testing.assert_allclose(gpu.read(values), expected, rtol=1e-6)
    np.testing.assert_array_equal(gpu.read(nans), np.isnan(expected))


def test_float16_is_rounded_between_the_ops_of_a_chain(gpu: Wgpu, up: Up) -> None:
    nodes = (Node("add", (0, 1), "float16"), Node("subtract", (2, 1), "float16"))
    chain = Chain(("float16", "float16"), nodes, (3,))
    x, y = np.array([1.0], np.float16), np.array([2048.0], np.float16)
    (out,) = run_program(gpu.device, Chained(chain, (pt.float16,)), (up(x), up(y)))
    assert gpu.read(out) == (x + y) - y


@pytest.mark.parametrize("offset", range(5))
@pytest.mark.parametrize("count", [1, 3, 4, 5, 16, 17, 4099])
def test_any_offset_and_length(gpu: Wgpu, up: Up, offset: int, count: int) -> None:
    values = np.arange(5000, dtype=np.float32)
    x = gpu.ops.slice(up(values), (offset,), (count,), (1,))
    got = gpu.read(gpu.ops.add(x, x))
    np.testing.assert_array_equal(got, 2 * values[offset : offset + count])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((6, 8), (8,)),
        ((6, 8), (6, 1)),
        ((6, 7), (6, 1)),
        ((2, 3, 4), (3, 1)),
        ((2, 1, 4), (1, 5, 1)),
        ((4, 1), (1, 8)),
        ((), (3, 4)),
    ],
)
def test_broadcasts(
    gpu: Wgpu,
    up: Up,
    rng: np.random.Generator,
    left: tuple[int, ...],
    right: tuple[int, ...],
) -> None:
    a, b = (np.asarray(rng.normal(size=s), np.float32) for s in (left, right))
    np.testing.assert_array_equal(gpu.read(gpu.ops.subtract(up(a), up(b))), a - b)
    np.testing.assert_array_equal(gpu.read(gpu.ops.less(up(b), up(a))), b < a)


def test_a_number_takes_the_type_of_the_array(gpu: Wgpu, up: Up) -> None:
    half = np.array([3.0, 5.0], np.float16)
    np.testing.assert_array_equal(gpu.read(gpu.ops.multiply(up(half), 0.1)), half * np.float16(0.1))
    single = np.array([1.0], np.float32)
    assert gpu.read(gpu.ops.multiply(up(single), 1e39)) == np.inf
    assert np.isnan(gpu.read(gpu.ops.add(up(single), float("nan"))))
    with pytest.raises(pt.Rejected, match="does not fit int32"):
        gpu.ops.add(up(np.array([1], np.int32)), 2**31)


@pytest.mark.parametrize(
    ("op", "operands"),
    [
        ("add", (np.zeros(2, np.float32), np.zeros(2, np.int32))),
        ("add", (np.zeros(2, np.float32), np.zeros(3, np.float32))),
        ("add", (np.zeros(2, np.int32), 0.5)),
        ("divide", (np.zeros(2, np.int32), np.zeros(2, np.int32))),
        ("exp", (np.zeros(2, np.int32),)),
        ("logical_and", (np.zeros(2, np.bool_), 1)),
        ("matmul", (np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32))),
    ],
)
def test_what_an_entry_does_not_take_is_rejected(
    gpu: Wgpu, up: Up, op: str, operands: tuple[Any, ...]
) -> None:
    placed = [up(x) if isinstance(x, np.ndarray) else x for x in operands]
    with pytest.raises(pt.Rejected):
        gpu.ops[op](*placed)


def test_a_negative_integer_exponent_is_an_error_at_the_next_read(gpu: Wgpu, up: Up) -> None:
    base = up(np.array([2, 3], np.int32))
    out = gpu.ops.pow(base, up(np.array([3, -1], np.int32)))
    with pytest.raises(pt.ArgumentError, match="negative integer exponent: got -1"):
        gpu.read(out)
    assert gpu.read(gpu.ops.pow(base, 3)).tolist() == [8, 27]


def test_a_result_takes_the_layout_that_its_operands_share(gpu: Wgpu, up: Up) -> None:
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = gpu.ops.permute_dims(up(values), (2, 0, 1))
    row = up(np.arange(3, dtype=np.float32))
    expected = values.transpose(2, 0, 1)
    out = gpu.ops.add(gpu.ops.multiply(x, x), row)
    assert out.strides == x.strides
    np.testing.assert_array_equal(gpu.read(out), expected**2 + np.arange(3, dtype=np.float32))
    mixed = gpu.ops.add(x, up(np.ones((4, 2, 3), np.float32)))
    assert mixed.contiguous
    np.testing.assert_array_equal(gpu.read(mixed), expected + 1)


def test_large_operands_against_the_grain(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    a, b = (rng.normal(size=(600, 600)).astype(np.float32) for _ in range(2))
    got = gpu.read(gpu.ops.subtract(up(a), gpu.ops.permute_dims(up(b), (1, 0))))
    np.testing.assert_array_equal(got, a - b.T)


@pytest.mark.parametrize("limit", [4, 5, 8])
def test_a_chain_over_more_arrays_than_a_kernel_binds_runs_in_pieces(
    gpu: Wgpu, up: Up, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    kinds = ("float32",) * 7 + ("float16",)
    nodes = tuple(Node("add", (8 + i - 1 if i else 0, i + 1), "float32") for i in range(6))
    nodes += (Node("cast", (13,), "float16"), Node("multiply", (14, 7), "float16"))
    nodes += (Node("less", (13, 9), "bool"), Node("square", (8,), "float32"))
    chain = Chain(kinds, nodes, (15, 16, 17, 13))
    shapes = [(5, 8), (8,), (1, 8), (5, 1), (5, 8), (5, 8), (5, 8), (8,)]
    operands = [up(rng.normal(size=s).astype(k)) for s, k in zip(shapes, kinds, strict=True)]
    program = Chained(chain, (pt.float16, pt.bool_, pt.float32, pt.float32))
    whole = run_program(gpu.device, program, tuple(operands))
    monkeypatch.setattr(gpu.device, "max_bindings", limit)
    gpu.device.plans.clear()
    cut = run_program(gpu.device, program, tuple(operands))
    gpu.device.plans.clear()
    for a, b in zip(whole, cut, strict=True):
        assert a.shape == b.shape == (5, 8)
        np.testing.assert_array_equal(gpu.read(a), gpu.read(b))


def test_pieces_bind_no_more_than_allowed_and_leave_nothing_out() -> None:
    nodes = tuple(Node("add", (i, i + 1), "float32") for i in range(11))
    chain = Chain(("float32",) * 12, nodes, (*range(12, 23), 3))
    for limit in range(4, 13):
        cut = pieces(chain, [True] * 12, limit)
        assert sum(len(piece.chain.nodes) for piece in cut) == len(nodes)
        assert {value for piece in cut for value in piece.gives} == {*range(12, 23)}
        assert all(bindings(p.chain, len(p.takes)) <= limit for p in cut)
        assert all(len(p.chain.outputs) == len(p.gives) for p in cut)


@pytest.mark.parametrize("name", ["digamma", "erfc", "erfinv", "lgamma", "lerp", "mish"])
def test_the_formula_of_an_op_is_one_kernel(gpu: Wgpu, dispatches: list[int], name: str) -> None:
    op = pt.REGISTRY[name]
    x = pt.asarray(np.linspace(0.1, 3, 60).astype(np.float32).reshape(5, 12), device=gpu)
    operands = [x] * len(op.signature.operands)
    want = getattr(pt, name)(*operands).numpy()
    dispatches.clear()
    got = getattr(pt, name)(*operands)
    assert len(dispatches) == 1
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize(
    ("name", "shapes", "settings", "most"),
    [
        ("cdist", [(8, 6), (5, 6)], {}, 1),
        ("cosine_similarity", [(8, 6), (8, 6)], {}, 1),
        ("fold", [(1, 8, 25)], {"size": (6, 6), "kernel": 2}, 5),
        ("grid_sample", [(1, 2, 5, 5), (1, 4, 4, 2)], {}, 30),
        ("logcumsumexp", [(8, 6)], {}, 1),
        ("median", [(8, 6)], {"axis": 1}, 2),
        ("vector_norm", [(8, 6)], {"axis": 1}, 1),
    ],
)
def test_ops_of_many_parts_are_few_kernels(
    gpu: Wgpu,
    dispatches: list[int],
    name: str,
    shapes: list[tuple[int, ...]],
    settings: dict[str, Any],
    most: int,
) -> None:
    rng = np.random.default_rng(0)
    operands = [pt.asarray(rng.random(shape, np.float32), device=gpu) for shape in shapes]
    call = getattr(pt, name, None) or getattr(pt.linalg, name)
    call(*operands, **settings)
    dispatches.clear()
    call(*operands, **settings)
    assert len(dispatches) <= most


def test_a_number_beside_tensors_of_a_formula_is_one_more_kernel(
    gpu: Wgpu, dispatches: list[int]
) -> None:
    x = pt.asarray([1.0, 2.0], device=gpu)
    want = pt.lerp(x, 2 * x, 0.25).numpy()
    dispatches.clear()
    got = pt.lerp(x, 2 * x, 0.25)
    assert len(dispatches) == 3  # the product, the number, the formula
    np.testing.assert_array_equal(got.numpy(), want)
    np.testing.assert_array_equal(want, np.array([1.25, 2.5], np.float32))


def test_the_probe_tells_a_driver_that_takes_floats_for_real_numbers(
    gpu: Wgpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = gpu.device
    assert keeps_ops_apart(device)
    if not gpu.is_software:
        pytest.skip("what a driver makes of such a kernel is known of llvmpipe alone")

    def forget() -> None:
        device.plans.clear()
        device.pipelines._known.clear()

    hidden = chains.kept
    monkeypatch.setattr(
        chains, "kept", lambda text, size: hidden(text, size).replace(f"^ (p.{size} >> 31u)", "")
    )
    forget()
    assert not keeps_ops_apart(device)
    forget()
