"""Programs of the CPU backend have the bits of their ops: every op, element type and layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from phlox_kernels import Cpu, _native
from phlox_tensor import REGISTRY, DType, Op, Rejected, as_dtype, asarray
from phlox_tensor.capture import ElementFormula, Instr, Kernel, Program, interpreted

DEVICE = Cpu()
DTYPES = tuple(
    as_dtype(name)
    for name in ("bfloat16", "bool", "float16", "float32", "float64", "int32", "int64")
)
OPS = tuple(
    op
    for op in REGISTRY.values()
    if op.op_class.diagonal and not op.internal and DEVICE.entry(op.name) is not None
    if op.name not in DEVICE.limits.apart
)
FINITE = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e-40, -1e-40, 3e38, -100.0, 1e6, -3e9)
SPECIAL = np.array([*FINITE, np.inf, -np.inf, np.nan])


def needs_code() -> None:
    """There is code for AVX2 and later."""
    if DEVICE.kernel(Program(("float32",), (), (Instr("abs", (0,), "float32"),), (1,))) is None:
        pytest.skip("no code for this machine: programs run op by op")


def kernel_of(program: Program) -> Kernel:
    """The kernel of a program that has one on every machine with code."""
    needs_code()
    kernel = DEVICE.kernel(program)
    assert kernel is not None, str(program)
    return kernel


def values(dtype: DType, count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, 2**32, count, np.uint32).view(np.float32)
    drawn = np.where(np.isnan(drawn), np.float32(np.nan), drawn).astype(np.float64)
    mixed = np.where(rng.random(count) < 0.3, drawn, rng.normal(size=count) * 4)
    mixed[: len(SPECIAL)] = SPECIAL[:count]
    with np.errstate(all="ignore"):
        if dtype.kind == "Int":
            return (
                np.nan_to_num(mixed, posinf=7, neginf=-7)
                .clip(-(2**31), 2**31 - 1)
                .astype(dtype.numpy)
            )
        return mixed.astype(dtype.numpy)


def put(array: np.ndarray[Any, Any]) -> Any:
    return DEVICE.upload(array, as_dtype(array.dtype))


def bits(primitive: Any) -> bytes:
    """The bits of the values; a narrow float that is NaN counts as one whatever its payload."""
    array = DEVICE.read(primitive)
    if array.dtype.itemsize == 2 and array.dtype.kind != "i":
        return (
            array.astype(np.float32).tobytes()
            if not np.isnan(array).any()
            else np.nan_to_num(array.astype(np.float32), nan=-12345.0).tobytes()
        )
    return array.tobytes()


def single(op: Op, dtype: DType) -> Program:
    """The program of one op on arrays of one element type."""
    signature = op.signature
    kinds = [operand.kind for operand in signature.operands]
    letters = ["bool" if kind == "Bool" else dtype.name for kind in kinds]
    numbers = [a for a in signature.attributes if a.type != "DType"]
    result = "bool" if signature.results[0].kind == "Bool" else dtype.name
    given = (dtype.name,) * len(numbers)
    args = tuple(range(len(letters) + len(numbers)))
    return Program(tuple(letters), given, (Instr(op.name, args, result),), (len(args),))


@pytest.mark.parametrize("count", [1, 37, 5000])
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_an_op_as_a_program_has_the_bits_of_its_entry(op: Op, count: int) -> None:
    needs_code()
    made = 0
    for dtype in DTYPES:
        program = single(op, dtype)
        kernel = DEVICE.kernel(program)
        if kernel is None:
            continue
        made += 1
        arrays = [values(as_dtype(name), count, k) for k, name in enumerate(program.inputs)]
        numbers = [
            0.25 + k if dtype.kind == "Float" else 2 + k for k in range(len(program.numbers))
        ]
        extra = (
            [as_dtype(program.instrs[0].dtype)]
            if op.signature.attributes[:1] and not numbers
            else []
        )
        operands = [put(array) for array in arrays]
        (out,) = kernel(*operands, *numbers)
        assert bits(out) == bits(DEVICE.ops[op.name](*operands, *numbers, *extra)), str(program)
    assert made or not any(d.kind == "Float" for d in DTYPES)


@pytest.mark.parametrize("name", sorted(DEVICE.limits.apart))
def test_an_op_apart_is_spelled_out_with_the_bits_of_its_entry(name: str) -> None:
    needs_code()
    op = REGISTRY[name]
    for dtype in (dtype for dtype in DTYPES if dtype.kind == "Float"):
        given = [
            asarray(values(dtype, 5000, k), device=DEVICE).astype(dtype)
            for k in range(len(op.signature.operands))
        ]
        out = ElementFormula(name, op, strict=True)(*given)
        assert bits(out.primitive) == bits(op(*given).primitive), dtype.name


CHAIN = Program(
    ("float32", "float32", "bool"),
    ("float32",),
    (
        Instr("multiply", (0, 3), "float32"),
        Instr("sin", (4,), "float32"),
        Instr("where", (2, 5, 1), "float32"),
        Instr("less", (6, 4), "bool"),
        Instr("subtract", (1, 6), "float32"),
    ),
    (8, 7, 5),
)


def op_by_op(x: Any, y: Any, mask: Any, number: float) -> tuple[Any, ...]:
    entry = DEVICE.ops
    product = entry.multiply(x, number)
    sine = entry.sin(product)
    chosen = entry.where(mask, sine, y)
    return entry.subtract(y, chosen), entry.less(chosen, product), sine


@pytest.mark.parametrize(
    ("shape", "others"),
    [
        ((0, 3), ((0, 3), (3,))),
        ((), ((), ())),
        ((300, 1000), ((1000,), (300, 1))),
        ((7, 1, 129), ((5, 1), (7, 5, 129))),
        ((3_000_001,), ((1,), (3_000_001,))),
        ((5_000_000,), ((5_000_000,), (1,))),
    ],
)
def test_operands_broadcast_and_large_results_are_whole(shape: Any, others: Any) -> None:
    needs_code()
    rng = np.random.default_rng(1)
    x, y = (put(rng.normal(size=s).astype(np.float32)) for s in (shape, others[0]))
    mask = put(rng.random(others[1]) < 0.5)
    got = kernel_of(CHAIN)(x, y, mask, 1.5)
    full = np.broadcast_shapes(shape, *others)
    for mine, own in zip(got, op_by_op(x, y, mask, 1.5), strict=True):
        wanted = np.broadcast_to(DEVICE.read(own), full)
        assert DEVICE.read(mine).tobytes() == wanted.tobytes()


def test_any_layout_is_read_and_foreign_orders_are_kept() -> None:
    needs_code()
    rng = np.random.default_rng(2)
    base = put(rng.normal(size=(40, 60, 20)).astype(np.float32))
    turned = DEVICE.ops.permute_dims(base, (2, 0, 1))
    other = put(rng.normal(size=(20, 40, 60)).astype(np.float32))
    mask = put(rng.random((20, 40, 60)) < 0.5)
    flipped = DEVICE.ops.flip(other, (0, 2))
    for x, y in ((turned, other), (turned, turned), (flipped, turned), (other, flipped)):
        got = kernel_of(CHAIN)(x, y, mask, -2.0)
        for mine, own in zip(got, op_by_op(x, y, mask, -2.0), strict=True):
            assert bits(mine) == bits(own)
    (double,) = kernel_of(Program(("float32",), (), (Instr("add", (0, 0), "float32"),), (1,)))(
        turned
    )
    assert double.strides == turned.strides


def softmax(dtype: str) -> Program:
    """As users write it."""
    instrs = (
        Instr("max", (0,), dtype),
        Instr("subtract", (0, 2), dtype),
        Instr("exp", (3,), dtype),
        Instr("sum", (4,), dtype),
        Instr("divide", (4, 5), dtype),
        Instr("multiply", (5, 1), dtype),
    )
    return Program((dtype, dtype), (), instrs, (6, 7, 2), 1, True, (1,))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(4, 1), (300, 7), (3, 5, 129), (65, 1024), (9, 5000), (2, 70_000)]
)
def test_folds_have_the_bits_of_reductions(dtype: str, shape: tuple[int, ...]) -> None:
    kernel, entry, last = kernel_of(softmax(dtype)), DEVICE.ops, (len(shape) - 1,)
    rng = np.random.default_rng(4)
    of_rows = put(rng.normal(size=(*shape[:-1], 1)).astype(as_dtype(dtype).numpy))
    base = put(rng.normal(size=shape[::-1]).astype(as_dtype(dtype).numpy))
    turned = entry.permute_dims(base, tuple(reversed(range(len(shape)))))
    for x in (turned, entry.add(turned, 0)):
        e = entry.exp(entry.subtract(x, entry.max(x, last, True)))
        total = entry.sum(e, last, True, as_dtype(dtype))
        wanted = entry.divide(e, total), entry.multiply(total, of_rows), entry.max(x, last, True)
        for mine, own in zip(kernel(x, of_rows), wanted, strict=True):
            assert mine.shape == own.shape
            assert bits(mine) == bits(own)


def test_rows_may_be_gone_and_span_axes() -> None:
    chain = (Instr("square", (0,), "float32"), Instr("mean", (1,), "float32"))
    for inner in (1, 2, 3):
        x = put(np.random.default_rng(5).normal(size=(6, 50, 70)).astype(np.float32))
        axes = tuple(range(3 - inner, 3))
        (mine,) = kernel_of(Program(("float32",), (), chain, (2,), inner, False))(x)
        own = DEVICE.ops.mean(DEVICE.ops.square(x), axes, False)
        assert (mine.shape, bits(mine)) == (own.shape, bits(own))


def test_calls_together_give_what_they_give_one_by_one() -> None:
    needs_code()
    kernel: Any = kernel_of(CHAIN)
    rng = np.random.default_rng(6)
    calls = []
    for size in (3, 40_000, 1):
        x, y = (put(rng.normal(size=size).astype(np.float32)) for _ in range(2))
        calls.append((x, y, put(rng.random(size) < 0.5), 0.5 * size))
    wanted = [out for call in calls for out in kernel(*call)]
    for mine, own in zip(kernel.over(calls), wanted, strict=True):
        assert (mine.shape, bits(mine)) == (own.shape, bits(own))
    assert kernel.over([]) == ()
    with pytest.raises(Rejected):
        kernel.over([calls[0], calls[0][:2]])


def test_the_reference_agrees_where_no_function_is_rounded() -> None:
    needs_code()
    program = Program(
        ("float16", "int32"),
        ("float16", "int32"),
        (
            Instr("cast", (1,), "float16"),
            Instr("multiply", (0, 2), "float16"),
            Instr("add", (5, 4), "float16"),
            Instr("cast", (6,), "int32"),
            Instr("bitwise_xor", (7, 3), "int32"),
            Instr("clip", (6, 2, 2), "float16"),
        ),
        (8, 6, 9),
    )
    rng = np.random.default_rng(3)
    x = rng.normal(size=777).astype(np.float16)
    n = rng.integers(-5000, 5000, 777).astype(np.int32)
    mine = kernel_of(program)(put(x), put(n), 0.3, 77)
    own = interpreted(program)(x, n, np.float16(0.3), 77)
    for a, b in zip(mine, own, strict=True):
        assert DEVICE.read(a).tobytes() == b.tobytes()


def test_operands_and_numbers_that_do_not_fit_are_rejected() -> None:
    needs_code()
    kernel = kernel_of(CHAIN)
    x, mask = put(np.ones(3, np.float32)), put(np.ones(3, np.bool_))
    for args in (
        (x, x, x, 1.0),
        (x, x, mask),
        (x, x, mask, 1.0, 2.0),
        (x, x, mask, "a"),
        (x, x, 1, 1.0),
    ):
        with pytest.raises(Rejected):
            kernel(*args)
    whole = kernel_of(Program(("int32",), ("int32",), (Instr("add", (0, 1), "int32"),), (2,)))
    with pytest.raises(Rejected):
        whole(put(np.ones(3, np.int32)), 2**40)
    with pytest.raises(Rejected):
        kernel(x, x, put(np.ones(4, np.bool_)), 1.0)


@pytest.mark.parametrize(
    "program",
    [
        CHAIN._replace(outputs=(0,)),
        CHAIN._replace(outputs=()),
        CHAIN._replace(instrs=(Instr("exp", (9,), "float32"),)),
    ],
)
def test_what_is_no_program_is_refused(program: Program) -> None:
    with pytest.raises(ValueError, match="program"):
        _native._program(*program)


@pytest.mark.long
@pytest.mark.parametrize(
    "op", [op for op in OPS if len(op.signature.operands) == 1], ids=lambda op: op.name
)
def test_all_numbers_of_float32_have_the_bits_of_the_entry(op: Op) -> None:
    needs_code()
    program = single(op, as_dtype("float32"))
    kernel = DEVICE.kernel(program)
    if kernel is None or program.numbers or op.signature.attributes:
        pytest.skip("not of one float32 alone")
    step = 2**24
    for start in range(0, 2**32, step):
        x = put(np.arange(start, start + step, dtype=np.uint32).view(np.float32))
        (out,) = kernel(x)
        assert DEVICE.read(out).tobytes() == DEVICE.read(DEVICE.ops[op.name](x)).tobytes()
