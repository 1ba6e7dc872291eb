"""How ops of phlox are spelled in ONNX: one row for each."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from onnx import numpy_helper

from ._elements import ROWS as ELEMENTS
from ._elements import Row, plain
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
    refuse_followed,
    reshaped,
    rms_norm,
)
from ._recurrent import recurrent
from ._sizes import Followed
from ._writer import Call, Writer


def _reshape(w: Writer, c: Call) -> Any:
    return reshaped(w, c.inputs[0], c.outs[0][0])


def _broadcast(w: Writer, c: Call) -> Any:
    """Where an open size is there already, 1 keeps it."""
    shape = c.outs[0][0]
    own = (1,) * (len(shape) - len(c.shapes[0])) + tuple(c.shapes[0])
    there = [
        1 if isinstance(n, Followed) and n == m else n for n, m in zip(shape, own, strict=True)
    ]
    return w.add("Expand", [c.inputs[0], w.sizes(there)])


def _matrix_transpose(w: Writer, c: Call) -> Any:
    rank = len(c.shapes[0])
    return w.add("Transpose", [c.inputs[0]], perm=[*range(rank - 2), rank - 1, rank - 2])


def _stack(w: Writer, c: Call) -> Any:
    axis = c.attributes[0] % len(c.outs[0][0])
    parts = [w.add("Unsqueeze", [n, w.ints(axis)]) for n in c.inputs[0]]
    return w.add("Concat", parts, axis=axis)


def _unstack(w: Writer, c: Call) -> Any:
    axis = c.attributes[0] % len(c.shapes[0])
    at = [w.array(np.array(i, np.int64)) for i in range(len(c.outs))]
    return [w.add("Gather", [c.inputs[0], i], axis=axis) for i in at]


def _split(w: Writer, c: Call) -> Any:
    axis = c.attributes[1]
    names = [c.inputs[0], w.sizes([shape[axis] for shape, _ in c.outs])]
    if len(c.outs) == 1:
        return w.add("Split", names, axis=axis)
    return w.add("Split", names, len(c.outs), axis=axis)


_FAR: Final = 1 << 62


def _slice(w: Writer, c: Call) -> Any:
    start, size, step = c.attributes
    starts, ends, axes, steps = [], [], [], []
    for axis, (a, n, s, whole) in enumerate(zip(start, size, step, c.shapes[0], strict=True)):
        if n == whole and a == 0 and s == 1:
            continue
        end = a + n * s + (0 if s > 0 else -s - 1)
        if isinstance(end, Followed) and end.plus < 0 and s < 0:
            raise c.refuse_followed("a place that has to be a number follows from a size")
        ends.append(end if isinstance(end, Followed) or end >= 0 else -_FAR)
        starts.append(a)
        axes.append(axis)
        steps.append(s)
    if not axes:
        return w.add("Identity", [c.inputs[0]])
    return w.add("Slice", [c.inputs[0], *(w.sizes(v) for v in (starts, ends, axes, steps))])


def _slice_scatter(w: Writer, c: Call) -> Any:
    """What is put there, spread along each axis that it covers in part, where it lies."""
    x, values = c.inputs
    shape, covered = c.shapes[0], np.ones((1,) * len(c.shapes[0]), bool)
    for axis, (first, n, step, whole) in enumerate(zip(*c.attributes, shape, strict=True)):
        if n == whole and (first, step) == (0, 1):
            continue
        refuse_followed(c, (first, n, whole))
        if not n:
            return w.add("Identity", [x])
        source, there = np.zeros(whole, np.int64), np.zeros(whole, bool)
        at = first + step * np.arange(n)
        source[at], there[at] = np.arange(n), True
        values = w.add("Gather", [values, w.array(source)], axis=axis)
        covered = covered & there.reshape(-1, *(1,) * (len(shape) - 1 - axis))
    return w.add("Where", [w.array(covered), values, x])


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


def _scatter(w: Writer, c: Call) -> Any:
    axis, update = c.attributes
    names = {"set": "none", "add": "add", "mul": "mul", "max": "max", "min": "min"}
    if update not in names:
        raise c.refuse("no such update")
    return w.add("ScatterElements", list(c.inputs), axis=axis, reduction=names[update])


def _full(w: Writer, c: Call) -> Any:
    shape, dtype = c.outs[0]
    if isinstance(c.attributes[1], Followed):
        return w.add("Expand", [w.number(c.attributes[1], dtype), w.sizes(shape)])
    value = np.array([c.attributes[1]], dtype.numpy)
    return w.add("ConstantOfShape", [w.sizes(shape)], value=numpy_helper.from_array(value))


def _arange(w: Writer, c: Call) -> Any:
    start, step, count = c.attributes[:3]
    dtype = c.outs[0][1]
    followed = [n for n in (start, step, count) if isinstance(n, Followed)]
    if not followed:
        return w.array((start + np.arange(count) * step).astype(dtype.numpy))
    if not all(isinstance(n, int) or (n in followed and n.whole) for n in (start, step, count)):
        raise c.refuse_followed("a place that has to be a number follows from a size")
    places = w.add("Range", [w.count(0), w.count(count), w.count(1)])
    places = w.add("Add", [w.add("Mul", [places, w.count(step)]), w.count(start)])
    return w.cast(places, dtype)


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
    refuse_followed(c, sizes)
    count = math.prod(sizes)
    return w.add("Mul", [found, w.number(count / (count - correction), dtype)])


def places(op: str) -> Row:
    """Where the largest or smallest element is."""

    def run(w: Writer, c: Call) -> Any:
        axis, keepdims = c.attributes
        x = c.inputs[0] if axis is not None else w.add("Reshape", [c.inputs[0], w.ints(-1)])
        found = w.add(op, [x], axis=axis or 0, keepdims=int(keepdims and axis is not None))
        if axis is None and keepdims:
            found = reshaped(w, found, c.outs[0][0])
        return found if c.outs[0][1].name == "int64" else w.cast(found, c.outs[0][1])

    return run


def _argsort(w: Writer, c: Call) -> Any:
    """By TopK of all, which of equal ones takes the first first."""
    axis, descending = c.attributes
    whole = w.sizes([c.shapes[0][axis]])
    at = w.add("TopK", [c.inputs[0], whole], 2, axis=axis, largest=int(descending))[1]
    return at if c.outs[0][1].name == "int64" else w.cast(at, c.outs[0][1])


def _topk(w: Writer, c: Call) -> Any:
    k, axis, largest = c.attributes
    values, at = w.add("TopK", [c.inputs[0], w.sizes([k])], 2, axis=axis, largest=int(largest))
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


ROWS: Final[dict[str, Row]] = {
    **ELEMENTS,
    "arange": _arange,
    "argmax": places("ArgMax"),
    "argmin": places("ArgMin"),
    "argsort": _argsort,
    "attention": attention,
    "avg_pool1d": avg_pool,
    "avg_pool2d": avg_pool,
    "avg_pool3d": avg_pool,
    "batch_norm": batch_norm,
    "broadcast_to": _broadcast,
    "cast": lambda w, c: w.cast(c.inputs[0], c.outs[0][1]),
    "concat": lambda w, c: w.add("Concat", list(c.inputs[0]), axis=c.attributes[0]),
    "contiguous": plain("Identity"),
    "conv1d": conv,
    "conv2d": conv,
    "conv3d": conv,
    "conv_transpose1d": conv_transpose,
    "conv_transpose2d": conv_transpose,
    "conv_transpose3d": conv_transpose,
    "cumsum": _cumsum,
    "det": plain("Det"),
    "expand_dims": _reshape,
    "flatten": _reshape,
    "flip": _flip,
    "full": _full,
    "gru": recurrent,
    "interpolate2d": interpolate,
    "layer_norm": layer_norm,
    "linear": _linear,
    "log_softmax": along("LogSoftmax"),
    "logsumexp": reduction("ReduceLogSumExp"),
    "lstm": recurrent,
    "matmul": plain("MatMul"),
    "matrix_transpose": _matrix_transpose,
    "max": reduction("ReduceMax"),
    "max_pool1d": max_pool,
    "max_pool2d": max_pool,
    "max_pool2d_with_indices": max_pool_with,
    "max_pool3d": max_pool,
    "mean": reduction("ReduceMean"),
    "min": reduction("ReduceMin"),
    "pad": _pad,
    "permute_dims": lambda w, c: w.add("Transpose", [c.inputs[0]], perm=list(c.attributes[0])),
    "prelu": prelu,
    "prod": reduction("ReduceProd"),
    "reshape": _reshape,
    "rms_norm": rms_norm,
    "rnn": recurrent,
    "scatter": _scatter,
    "slice": _slice,
    "slice_scatter": _slice_scatter,
    "softmax": along("Softmax"),
    "split": _split,
    "squeeze": _reshape,
    "stack": _stack,
    "sum": reduction("ReduceSum"),
    "take": lambda w, c: w.add("Gather", list(c.inputs), axis=c.attributes[0]),
    "take_along_axis": lambda w, c: w.add("GatherElements", list(c.inputs), axis=c.attributes[0]),
    "tile": lambda w, c: w.add("Tile", [c.inputs[0], w.sizes(c.attributes[0])]),
    "topk": _topk,
    "unflatten": _reshape,
    "unstack": _unstack,
    "var": _var,
}

# Ops whose attributes may follow from open sizes, since the row says how or reads the shapes.
FOLLOWING: Final = frozenset(
    {"arange", "broadcast_to", "full", "reshape", "slice", "slice_scatter", "split", "tile", "topk"}
)
