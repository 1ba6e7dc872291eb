"""No kernel hides a copy of a large operand: the peak of a call is little more than its result.

What is an expansion on this device takes what its steps take.
"""

from __future__ import annotations

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_kernels import Cpu, _native
from phlox_tensor import DType, Op, Tensor, bfloat16, bool_, float32, int8, int64
from phlox_tensor._call.dispatch import call_by_signature
from phlox_tensor.testing import LAYOUTS
from phlox_tensor.testing._conformance import _place
from tests.backends import large

DEVICE = Cpu()
OPS = large.ops_of(DEVICE)
WINDOWS = [op for op in OPS if op.op_class.windows]
# Memory that an op may take beside its results, in parts of its operands' bytes: blocks of partial
# sums, and what rounding up to size classes makes of it.
ALLOWANCE = 0.25
# What an op takes beyond that whatever the layout, and why.
WORKS_WITH: dict[str, tuple[float, str]] = {
    "attention_backward": (1.0, "cotangents of the scores of heads that share one head of keys"),
    "cdist": (2.1, "both operands become float64"),
    "cumulative_prod": (4.1, "narrow elements are multiplied wide"),
    "dequantize": (4.1, "narrow results are computed wide"),
    "interpolate": (1.5, "lines with gaps are brought in order first"),
    "isin": (8.1, "a table of what is looked for"),
    "matmul_integer": (0.6, "wide integers are brought to the type of the sums"),
    "median": (1.3, "ranks of a line"),
    "nan_to_num": (1.1, "infinities are replaced, then nan, where numbers for them are given"),
    "quantile": (1.3, "as median"),
    "quantized_linear": (0.5, "integers but int8 become floats before they are multiplied"),
}
# What an op takes when operands are transposed or sliced, and why.
REORDERS: dict[str, tuple[float, str]] = {
    "blocks_linear": (1.3, "rows are read dense"),
    "cdist": (3.6, "rows are read dense, in float64"),
    "cummax": (1.3, "lines are read dense"),
    "cummin": (1.3, "as cummax"),
    "cumulative_prod": (5.3, "lines are read dense"),
    "dequantize": (5.3, "integers are read dense"),
    "fused_linear": (0.4, "a residual without rows at equal distances is gathered"),
    "gru_steps": (1.3, "a walk reads dense steps"),
    "gru_steps_backward": (1.3, "as gru_steps"),
    "histogram": (1.3, "elements are read in order"),
    "isin": (9.3, "what is searched is read dense"),
    "lstm_steps": (1.3, "as gru_steps"),
    "lstm_steps_backward": (1.3, "as gru_steps"),
    "matmul_integer": (1.3, "integers are read in rows"),
    "median": (2.5, "lines are read dense"),
    "quantile": (2.5, "as median"),
    "quantized_linear": (1.4, "integers are read in rows"),
    "repeat": (1.3, "elements are read in order"),
    "rnn_steps": (1.3, "as gru_steps"),
    "rnn_steps_backward": (1.3, "as gru_steps"),
    "searchsorted": (1.3, "what is searched is read dense"),
}

# No operand of these can be large without a result many times as large, or millions of results;
# or all of it is compared with all (nms).
NO_LARGE_CASE = {"broadcast_to", "dequantize_blocks", "nms", "unstack"}


def allowance(op: Op, strided: bool) -> float:
    """Parts of the operands' bytes that a call may take beside its results."""
    found = [ALLOWANCE, WORKS_WITH.get(op.name, (0.0, ""))[0]]
    if strided:
        found.append(REORDERS.get(op.name, (0.0, ""))[0])
    return max(found)


def taken(call: large.Large, layout: str) -> int:
    """Bytes that lived during the call beside its operands and results."""
    place = LAYOUTS[layout]
    operands = tuple(_place(operand, DEVICE, place) for operand in call.sample.operands)
    _native._reset_peak()
    out = call_by_signature(call.op, operands, dict(call.sample.attributes))
    memory = DEVICE.memory()
    del out
    return memory.peak - memory.current


@pytest.mark.parametrize("op", OPS, ids=[op.name for op in OPS])
def test_no_op_hides_a_copy_of_a_large_operand(op: Op) -> None:
    none = op.name in NO_LARGE_CASE
    calls = [] if none else list(large.large_calls(op, DEVICE, most=2))
    assert calls or none, f"no case of {op.name} grows"
    for call in calls:
        size = sum(array.nbytes for operand in call.arrays() for array in operand)
        for layout in ("contiguous", "sliced", "transposed"):
            extra = taken(call, layout) / size
            allowed = allowance(op, layout != "contiguous")
            assert extra <= allowed, (
                f"{call} {layout}: {extra:.2f} of its operands, {allowed} allowed"
            )


@pytest.mark.parametrize("op", WINDOWS, ids=[op.name for op in WINDOWS])
def test_no_window_widens_a_large_operand_or_result(op: Op) -> None:
    """Narrow floats are computed in float32, some images at a time."""
    for call in large.large_calls(op, DEVICE, most=2, float_dtype=bfloat16):
        size = sum(array.nbytes for operand in call.arrays() for array in operand)
        for layout in ("contiguous", "sliced", "transposed"):
            extra = taken(call, layout) / size
            allowed = max(ALLOWANCE, WORKS_WITH.get(op.name, (0.0, ""))[0])
            assert extra <= allowed, (
                f"{call} {layout}: {extra:.2f} of its operands, {allowed} allowed"
            )


@pytest.mark.parametrize("name", ["conv2d", "conv2d_input_grad", "conv2d_weight_grad"])
@pytest.mark.parametrize("dtype", [bfloat16, float32], ids=str)
def test_convolutions_make_some_rows_of_one_large_image_ready(name: str, dtype: DType) -> None:
    """Channels last, so that no operand is read where it lies."""
    data = np.zeros((1, 1024, 1024, 4), dtype.numpy)
    image = _native.permute_dims(DEVICE.upload(data, dtype), (0, 3, 1, 2))
    weight = DEVICE.upload(np.zeros((4, 4, 3, 3), dtype.numpy), dtype)
    operands: dict[str, tuple[object, ...]] = {
        "conv2d": (image, weight, None),
        "conv2d_input_grad": (image, weight, (1, 4, 1024, 1024)),
        "conv2d_weight_grad": (image, image, (4, 4, 3, 3)),
    }
    _native._reset_peak()
    out = getattr(_native, name)(*operands[name], (1, 1), ((1, 1), (1, 1)), (1, 1), 1)
    memory = DEVICE.memory()
    del out
    # Rows of the result lie beside those of the image until they are moved to their places.
    extra = (memory.peak - memory.current) / data.nbytes
    assert extra <= 1.5 * ALLOWANCE, f"{extra:.2f} of the image"


@pytest.mark.parametrize("name", ["cumsum", "index_add", "scatter"])
def test_sums_of_narrow_floats_widen_some_columns_at_a_time(name: str) -> None:
    data = np.zeros((65536, 256), bfloat16.numpy)
    x = DEVICE.upload(data, bfloat16)
    few = DEVICE.upload(data[:4], bfloat16)
    rows = DEVICE.upload(np.arange(4), int64)
    each = DEVICE.upload(np.zeros((4, 256), np.int64), int64)
    operands: dict[str, tuple[object, ...]] = {
        "cumsum": (x, 0, bfloat16),
        "index_add": (x, rows, few, 0),
        "scatter": (x, each, few, 0, "add"),
    }
    _native._reset_peak()
    out = getattr(_native, name)(*operands[name])
    memory = DEVICE.memory()
    del out
    assert memory.peak - memory.current < 0.75 * data.nbytes


@pytest.mark.parametrize("axis", [None, 0, 1], ids=str)
@pytest.mark.parametrize("layout", ["broadcast", "contiguous"])
@pytest.mark.parametrize("name", ["all", "any", "count_nonzero"])
def test_truths_of_narrow_integers_are_made_of_a_part(
    name: str, layout: str, axis: int | None
) -> None:
    """A byte for each element is all of an operand of bytes."""
    values = np.zeros((2048, 4096), np.int8)
    if layout == "broadcast":
        values[:] = 1
        x = Tensor(DEVICE.upload(values[:1, :1], int8), DEVICE).broadcast_to(values.shape)
    else:
        values[3, :7], values[:, 5] = 1, 2
        x = Tensor(DEVICE.upload(values, int8), DEVICE)
    _native._reset_peak()
    before = DEVICE.memory().current
    out = getattr(pt, name)(x, axis=axis)
    assert DEVICE.memory().peak - before < ALLOWANCE * x.size
    want = getattr(np, name)(values, axis=axis)
    assert out.shape == np.shape(want)
    assert out.dtype is (int64 if name == "count_nonzero" else bool_)
    assert np.array_equal(out.numpy(), want)


def test_the_gradient_of_a_broadcast_bias_holds_few_scores() -> None:
    rng = np.random.default_rng(0)
    shapes = [(8, 4, 512, 16)] * 4 + [(512, 512)]
    g, query, key, value, bias = (
        DEVICE.upload(rng.standard_normal(shape).astype(np.float32), float32) for shape in shapes
    )
    _native._reset_peak()
    out = _native.attention_backward(g, query, key, value, None, bias, 0.25, None, False)
    memory = DEVICE.memory()
    del out
    scores = 8 * 4 * 512 * 512 * 4
    assert memory.peak - memory.current < 0.7 * scores


def test_a_hidden_copy_would_be_seen() -> None:
    """The measure itself: a copy that dies inside the call counts."""
    x = DEVICE.upload(np.zeros((1024, 1024), np.float32), float32)
    turned = _native.permute_dims(x, (1, 0))
    _native._reset_peak()
    before = DEVICE.memory()
    _native.sum(_native.reshape(turned, (1 << 20,)), (0,), False, float32)
    assert DEVICE.memory().peak - before.current >= 4 << 20
    _native._reset_peak()
    assert DEVICE.memory().peak < before.current + (1 << 20)


def test_exceptions_are_about_ops() -> None:
    names = {op.name for op in OPS}
    assert set(WORKS_WITH) | set(REORDERS) | NO_LARGE_CASE <= names
