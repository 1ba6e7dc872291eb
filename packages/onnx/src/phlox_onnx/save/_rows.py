"""How ops of phlox are spelled in ONNX: one row for each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from onnx import numpy_helper

from ._layers import (
    attention,
    avg_pool,
    batch_norm,
    conv,
    conv_transpose,
    interpolate,
    layer_norm,
    max_pool,
    max_pool_with,
    prelu,
    rms_norm,
    written_shape,
)
from ._writer import FREE, Call, Writer

Row = Callable[[Writer, Call], Any]


def plain(op: str, **words: Any) -> Row:
    """The same op under another name."""
    return lambda w, c: w.add(op, operands(w, c), **words)


def operands(w: Writer, c: Call) -> list[str]:
    """The inputs, numbers as constants of the type of the others."""
    dtype = next((d for d in c.dtypes if d is not None and d.kind != "Bool"), None)
    dtype = dtype or next(d for d in c.dtypes if d is not None)
    return [i if isinstance(i, str) else w.number(i, dtype) for i in c.inputs]


def logical(op: str, bitwise: str) -> Row:
    """An op of truths, and one of bits."""
    return lambda w, c: w.add(op if c.dtypes[0].kind == "Bool" else bitwise, operands(w, c))


def _log_sigmoid(w: Writer, c: Call) -> Any:
    return w.add("Neg", [w.add("Softplus", [w.add("Neg", [c.inputs[0]])])])


def _logaddexp(w: Writer, c: Call) -> Any:
    names = operands(w, c)
    off = w.add("Neg", [w.add("Abs", [w.add("Sub", names)])])
    rest = w.add("Log", [w.add("Add", [w.add("Exp", [off]), w.number(1, c.outs[0][1])])])
    return w.add("Add", [w.add("Max", names), rest])


def _where(w: Writer, c: Call) -> Any:
    condition, *rest = c.inputs
    dtype = c.outs[0][1]
    return w.add(
        "Where", [condition, *(v if isinstance(v, str) else w.number(v, dtype) for v in rest)]
    )


def _not_equal(w: Writer, c: Call) -> Any:
    return w.add("Not", [w.add("Equal", operands(w, c))])


def _square(w: Writer, c: Call) -> Any:
    return w.add("Mul", [c.inputs[0], c.inputs[0]])


def _rsqrt(w: Writer, c: Call) -> Any:
    return w.add("Reciprocal", [w.add("Sqrt", [c.inputs[0]])])


def _expm1(w: Writer, c: Call) -> Any:
    return w.add("Sub", [w.add("Exp", [c.inputs[0]]), w.number(1, c.dtypes[0])])


def _log1p(w: Writer, c: Call) -> Any:
    return w.add("Log", [w.add("Add", [c.inputs[0], w.number(1, c.dtypes[0])])])


def _silu(w: Writer, c: Call) -> Any:
    return w.add("Mul", [c.inputs[0], w.add("Sigmoid", [c.inputs[0]])])


def _hard_sigmoid(w: Writer, c: Call) -> Any:
    slope = c.attributes[0] if c.attributes else 1 / 6
    return w.add("HardSigmoid", [c.inputs[0]], alpha=float(slope), beta=0.5)


def _floor_divide(w: Writer, c: Call) -> Any:
    if c.outs[0][1].kind != "Float":
        raise c.refuse("whole numbers are divided downward, which ONNX does not")
    return w.add("Floor", [w.add("Div", operands(w, c))])


def _remainder(w: Writer, c: Call) -> Any:
    names = operands(w, c)
    if c.outs[0][1].kind == "Int":
        return w.add("Mod", names)
    below = w.add("Floor", [w.add("Div", names)])
    return w.add("Sub", [names[0], w.add("Mul", [below, names[1]])])


def _clip(w: Writer, c: Call) -> Any:
    given = [*c.inputs[1:], *c.attributes]
    bounds = [v if isinstance(v, str) or v is None else w.number(v, c.dtypes[0]) for v in given]
    return w.add("Clip", [c.inputs[0], *(b or "" for b in bounds)])


def _cast(w: Writer, c: Call) -> Any:
    return w.cast(c.inputs[0], c.outs[0][1])


def _reshape(w: Writer, c: Call) -> Any:
    return w.add("Reshape", [c.inputs[0], written_shape(w, c, c.outs[0][0])], allowzero=0)


def _broadcast(w: Writer, c: Call) -> Any:
    shape = c.outs[0][0]
    own = (1,) * (len(shape) - len(c.shapes[0])) + tuple(c.shapes[0])
    if all(n is not None or m is None for m, n in zip(own, shape, strict=True)):
        return w.add("Expand", [c.inputs[0], w.ints(*(1 if n is None else n for n in shape))])
    if not c.batches:
        raise c.refuse("a size follows from the batch")
    return w.add("Expand", [c.inputs[0], w.sizes(shape)])


def _permute(w: Writer, c: Call) -> Any:
    return w.add("Transpose", [c.inputs[0]], perm=list(c.attributes[0]))


def _matrix_transpose(w: Writer, c: Call) -> Any:
    rank = len(c.shapes[0])
    return w.add("Transpose", [c.inputs[0]], perm=[*range(rank - 2), rank - 1, rank - 2])


def _concat(w: Writer, c: Call) -> Any:
    return w.add("Concat", list(c.inputs[0]), axis=c.attributes[0])


def _stack(w: Writer, c: Call) -> Any:
    axis = c.attributes[0] % len(c.outs[0][0])
    parts = [w.add("Unsqueeze", [n, w.ints(axis)]) for n in c.inputs[0]]
    return w.add("Concat", parts, axis=axis)


def _unstack(w: Writer, c: Call) -> Any:
    axis = c.attributes[0] % len(c.shapes[0])
    at = [w.array(np.array(i, np.int64)) for i in range(len(c.outs))]
    return [w.add("Gather", [c.inputs[0], i], axis=axis) for i in at]


def _getitem(w: Writer, c: Call) -> Any:
    """Slices of the axes that are named, and the shape of the result."""
    index = c.attributes[0] if isinstance(c.attributes[0], tuple) else (c.attributes[0],)
    named = [i for i in index if i is not None and i is not Ellipsis]
    rank = len(c.shapes[0])
    axis = 0
    bounds: list[tuple[int, int, int, int]] = []
    for item in index:
        if item is Ellipsis:
            axis = rank - len(named) + len(bounds)
        elif item is not None:
            bounds.append((axis, *_bounds(c, item, c.shapes[0][axis])))
            axis += 1
    kept = [b for b in bounds if b[1:] != (0, _FAR, 1)]
    x = c.inputs[0]
    if kept:
        columns = ([b[i] for b in kept] for i in (1, 2, 0, 3))
        x = w.add("Slice", [x, *(w.ints(*v) for v in columns)])
    same = len(named) == len(index) and not any(isinstance(i, int) for i in named)
    return x if same and kept else w.add("Reshape", [x, written_shape(w, c, c.outs[0][0])])


_FAR: Final = 1 << 62


def _bounds(c: Call, item: Any, size: int | None) -> tuple[int, int, int]:
    """First, last and step of what an index takes of an axis."""
    if isinstance(item, int):
        return item, item + 1 if item != -1 else _FAR, 1
    if not isinstance(item, slice):
        raise c.refuse("an index of another kind")
    step = 1 if item.step is None else item.step
    if size is None:
        first = item.start if item.start is not None else (0 if step > 0 else -1)
        return first, item.stop if item.stop is not None else int(math.copysign(_FAR, step)), step
    first, last, step = item.indices(size)
    whole = first == 0 and last == size and step == 1
    return first, _FAR if whole else last if last >= 0 else -_FAR, step


def _split(w: Writer, c: Call) -> Any:
    sections, axis = c.attributes
    if isinstance(sections, int) or FREE in sections:
        raise c.refuse("the parts follow from the batch")
    names = [c.inputs[0], w.ints(*sections)]
    if len(sections) == 1:
        return w.add("Split", names, axis=axis)
    return w.add("Split", names, len(sections), axis=axis)


def _slice(w: Writer, c: Call) -> Any:
    start, size, step = c.attributes
    starts, ends, axes, steps = [], [], [], []
    for axis, (a, n, s, whole) in enumerate(zip(start, size, step, c.shapes[0], strict=True)):
        if n == whole and a == 0 and s == 1:
            continue
        if a is None or (n is None and (a != 0 or s != 1)):
            raise c.refuse("a place follows from the batch")
        last = None if n is None else a + (n - 1) * s + (1 if s > 0 else -1)
        ends.append((1 << 62) if last is None else last if last >= 0 else -(1 << 62))
        starts.append(a)
        axes.append(axis)
        steps.append(s)
    if not axes:
        return w.add("Identity", [c.inputs[0]])
    return w.add("Slice", [c.inputs[0], *(w.ints(*v) for v in (starts, ends, axes, steps))])


def _pad(w: Writer, c: Call) -> Any:
    sides, value = c.attributes
    pads = [*(a for a, _ in sides), *(b for _, b in sides)]
    return w.add("Pad", [c.inputs[0], w.ints(*pads), w.number(value, c.dtypes[0])])


def _flip(w: Writer, c: Call) -> Any:
    axes = c.attributes[0]
    axes = (axes,) if isinstance(axes, int) else axes or tuple(range(len(c.shapes[0])))
    n, end = len(axes), -(1 << 62)
    places = [w.ints(*v) for v in ([-1] * n, [end] * n, list(axes), [-1] * n)]
    return w.add("Slice", [c.inputs[0], *places])


def _tile(w: Writer, c: Call) -> Any:
    return w.add("Tile", [c.inputs[0], w.ints(*c.attributes[0])])


def _take(w: Writer, c: Call) -> Any:
    return w.add("Gather", list(c.inputs), axis=c.attributes[0])


def _take_along(w: Writer, c: Call) -> Any:
    return w.add("GatherElements", list(c.inputs), axis=c.attributes[0])


def _scatter(w: Writer, c: Call) -> Any:
    axis, update = c.attributes
    names = {"set": "none", "add": "add", "mul": "mul", "max": "max", "min": "min"}
    if update not in names:
        raise c.refuse("no such update")
    return w.add("ScatterElements", list(c.inputs), axis=axis, reduction=names[update])


def _full(w: Writer, c: Call) -> Any:
    shape, dtype = c.outs[0]
    if not c.batches:
        raise c.refuse("a size follows from the batch")
    value = np.array([c.attributes[1]], dtype.numpy)
    return w.add("ConstantOfShape", [w.sizes(shape)], value=numpy_helper.from_array(value))


def _arange(w: Writer, c: Call) -> Any:
    start, step, count = c.attributes[:3]
    if FREE in (start, step, count):
        raise c.refuse("a size follows from the batch")
    return w.array((start + np.arange(count) * step).astype(c.outs[0][1].numpy))


def reduction(op: str) -> Row:
    """A reduction with its axes as an input."""

    def run(w: Writer, c: Call) -> Any:
        axes, keepdims = c.attributes[0], c.attributes[1]
        x, dtype = c.inputs[0], c.outs[0][1]
        if c.dtypes[0] is not dtype:
            x = w.cast(x, dtype)
        chosen = (axes,) if isinstance(axes, int) else axes
        if chosen is None:
            chosen = tuple(range(len(c.shapes[0])))
        if not chosen:
            return w.add("Identity", [x])
        return w.add(op, [x, w.ints(*chosen)], keepdims=int(keepdims))

    return run


def _var(w: Writer, c: Call) -> Any:
    axes, correction, keepdims = c.attributes
    x, dtype = c.inputs[0], c.dtypes[0]
    off = w.add("Sub", [x, w.add("ReduceMean", [x, w.ints(*axes)], keepdims=1)])
    found = w.add("ReduceMean", [w.add("Mul", [off, off]), w.ints(*axes)], keepdims=int(keepdims))
    if not correction:
        return found
    sizes = [c.shapes[0][a] for a in axes]
    if FREE in sizes:
        raise c.refuse("a size follows from the batch")
    count = math.prod(sizes)
    return w.add("Mul", [found, w.number(count / (count - correction), dtype)])


def places(op: str) -> Row:
    """Where the largest or smallest element is."""

    def run(w: Writer, c: Call) -> Any:
        axis, keepdims = c.attributes
        if axis is None:
            raise c.refuse("no axis")
        found = w.add(op, [c.inputs[0]], axis=axis, keepdims=int(keepdims))
        return found if c.outs[0][1].name == "int64" else w.cast(found, c.outs[0][1])

    return run


def _topk(w: Writer, c: Call) -> Any:
    k, axis, largest = c.attributes
    values, at = w.add("TopK", [c.inputs[0], w.ints(k)], 2, axis=axis, largest=int(largest))
    return [values, at if c.outs[1][1].name == "int64" else w.cast(at, c.outs[1][1])]


def _cumsum(w: Writer, c: Call) -> Any:
    x = c.inputs[0] if c.dtypes[0] is c.outs[0][1] else w.cast(c.inputs[0], c.outs[0][1])
    return w.add("CumSum", [x, w.ints(c.attributes[0])])


def along(op: str) -> Row:
    """An op along one axis."""
    return lambda w, c: w.add(op, [c.inputs[0]], axis=c.attributes[0])


def _linear(w: Writer, c: Call) -> Any:
    x, weight, bias = c.inputs
    found = w.add("MatMul", [x, weight])
    return found if bias is None else w.add("Add", [found, bias])


def _gelu(approximate: str) -> Row:
    return lambda w, c: w.add("Gelu", [c.inputs[0]], approximate=approximate)


def _leaky(w: Writer, c: Call) -> Any:
    return w.add("LeakyRelu", [c.inputs[0]], alpha=float(c.attributes[0]))


def _elu(w: Writer, c: Call) -> Any:
    return w.add("Elu", [c.inputs[0]], alpha=float(c.attributes[0]) if c.attributes else 1.0)


def _isfinite(w: Writer, c: Call) -> Any:
    odd = w.add("Or", [w.add("IsNaN", [c.inputs[0]]), w.add("IsInf", [c.inputs[0]])])
    return w.add("Not", [odd])


_NAMES: Final = """abs Abs, acos Acos, acosh Acosh, add Add, asin Asin, asinh Asinh, atan Atan,
atanh Atanh, bitwise_invert BitwiseNot, ceil Ceil, contiguous Identity, cos Cos, cosh Cosh,
bitwise_invert BitwiseNot, divide Div, equal Equal, erf Erf, exp Exp, floor Floor,
greater Greater, greater_equal GreaterOrEqual,
hard_swish HardSwish, isinf IsInf, isnan IsNaN, less Less, less_equal LessOrEqual, log Log,
logical_and And, logical_not Not, logical_or Or, logical_xor Xor, matmul MatMul, maximum Max,
minimum Min, mish Mish, multiply Mul, negative Neg, positive Identity, pow Pow,
reciprocal Reciprocal, relu Relu, round Round, selu Selu, sigmoid Sigmoid, sign Sign, sin Sin,
sinh Sinh, softplus Softplus, softsign Softsign, sqrt Sqrt, subtract Sub, tan Tan, tanh Tanh"""

ROWS: Final[dict[str, Row]] = {
    **{a: plain(b) for a, b in (pair.split() for pair in _NAMES.replace("\n", " ").split(","))},
    "arange": _arange,
    "argmax": places("ArgMax"),
    "argmin": places("ArgMin"),
    "attention": attention,
    "avg_pool1d": avg_pool,
    "avg_pool2d": avg_pool,
    "avg_pool3d": avg_pool,
    "batch_norm": batch_norm,
    "bitwise_and": logical("And", "BitwiseAnd"),
    "bitwise_or": logical("Or", "BitwiseOr"),
    "bitwise_xor": logical("Xor", "BitwiseXor"),
    "broadcast_to": _broadcast,
    "cast": _cast,
    "clip": _clip,
    "concat": _concat,
    "conv1d": conv,
    "conv2d": conv,
    "conv3d": conv,
    "conv_transpose1d": conv_transpose,
    "conv_transpose2d": conv_transpose,
    "conv_transpose3d": conv_transpose,
    "cumsum": _cumsum,
    "elu": _elu,
    "expand_dims": _reshape,
    "expm1": _expm1,
    "flatten": _reshape,
    "flip": _flip,
    "floor_divide": _floor_divide,
    "full": _full,
    "gelu": _gelu("none"),
    "gelu_tanh": _gelu("tanh"),
    "getitem": _getitem,
    "hard_sigmoid": _hard_sigmoid,
    "interpolate": interpolate,
    "interpolate2d": interpolate,
    "isfinite": _isfinite,
    "layer_norm": layer_norm,
    "leaky_relu": _leaky,
    "linear": _linear,
    "log1p": _log1p,
    "log_sigmoid": _log_sigmoid,
    "log_softmax": along("LogSoftmax"),
    "logaddexp": _logaddexp,
    "logsumexp": reduction("ReduceLogSumExp"),
    "matrix_transpose": _matrix_transpose,
    "max": reduction("ReduceMax"),
    "max_pool1d": max_pool,
    "max_pool2d": max_pool,
    "max_pool2d_with_indices": max_pool_with,
    "max_pool3d": max_pool,
    "mean": reduction("ReduceMean"),
    "min": reduction("ReduceMin"),
    "not_equal": _not_equal,
    "pad": _pad,
    "permute_dims": _permute,
    "prelu": prelu,
    "prod": reduction("ReduceProd"),
    "remainder": _remainder,
    "reshape": _reshape,
    "rms_norm": rms_norm,
    "rsqrt": _rsqrt,
    "scatter": _scatter,
    "silu": _silu,
    "slice": _slice,
    "softmax": along("Softmax"),
    "split": _split,
    "square": _square,
    "squeeze": _reshape,
    "stack": _stack,
    "sum": reduction("ReduceSum"),
    "take": _take,
    "take_along_axis": _take_along,
    "tile": _tile,
    "topk": _topk,
    "unflatten": _reshape,
    "unstack": _unstack,
    "var": _var,
    "where": _where,
}
