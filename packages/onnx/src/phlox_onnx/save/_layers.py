"""How ops that layers are made of are spelled: windows, norms, attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._sizes import Followed, has
from ._writer import Call, Writer


def reshaped(w: Writer, x: str, shape: tuple[Any, ...]) -> str:
    """A value in another shape, of which one size at most is left to follow from the others."""
    free = [isinstance(n, Followed) for n in shape]
    if 0 in shape or sum(free) > 1:
        return str(w.add("Reshape", [x, w.sizes(shape)], allowzero=int(0 in shape)))
    sizes = w.ints(*(-1 if follows else n for n, follows in zip(shape, free, strict=True)))
    return str(w.add("Reshape", [x, sizes], allowzero=0))


def refuse_followed(c: Call, sizes: Any) -> None:
    """Refuse sizes that are open."""
    if has(tuple(sizes), Followed):
        raise c.refuse_followed("a size that has to be a number is open")


def _pads(sides: Any) -> list[int]:
    return [*(a for a, _ in sides), *(b for _, b in sides)]


def conv(w: Writer, c: Call) -> Any:
    stride, padding, dilation, groups = c.attributes
    names = [n for n in c.inputs if n is not None]
    words = {"strides": list(stride), "pads": _pads(padding), "dilations": list(dilation)}
    return w.add("Conv", names, group=groups, **words)


def conv_transpose(w: Writer, c: Call) -> Any:
    stride, padding, extra, dilation, groups = c.attributes
    names = [n for n in c.inputs if n is not None]
    words = {"strides": list(stride), "pads": _pads(padding), "dilations": list(dilation)}
    return w.add("ConvTranspose", names, group=groups, output_padding=list(extra), **words)


def max_pool(w: Writer, c: Call) -> Any:
    kernel, stride, padding, dilation, ceil = c.attributes
    words = {"strides": list(stride), "pads": _pads(padding), "dilations": list(dilation)}
    return w.add("MaxPool", [c.inputs[0]], kernel_shape=list(kernel), ceil_mode=int(ceil), **words)


def max_pool_with(w: Writer, c: Call) -> Any:
    if c.wanted[1]:
        raise c.refuse("places of the largest elements, which ONNX counts in another way")
    return [max_pool(w, c), ""]


def avg_pool(w: Writer, c: Call) -> Any:
    kernel, stride, padding, ceil, counts = c.attributes
    words: dict[str, Any] = {"strides": list(stride), "kernel_shape": list(kernel)}
    words |= {"pads": _pads(padding), "ceil_mode": int(ceil), "count_include_pad": int(counts)}
    return w.add("AveragePool", [c.inputs[0]], **words)


def batch_norm(w: Writer, c: Call) -> Any:
    x, weight, bias, mean, var = c.inputs
    size = (c.shapes[3] or (0,))[0]
    refuse_followed(c, (size,))
    weight = weight or w.array(np.ones(size, c.dtypes[0].numpy))
    bias = bias or w.array(np.zeros(size, c.dtypes[0].numpy))
    return w.add("BatchNormalization", [x, weight, bias, mean, var], epsilon=c.attributes[0])


def layer_norm(w: Writer, c: Call) -> Any:
    x, weight, bias = c.inputs
    refuse_followed(c, c.shapes[0][-1:])
    weight = weight or w.array(np.ones(c.shapes[0][-1], c.dtypes[0].numpy))
    names = [x, weight, *([bias] if bias else [])]
    return w.add("LayerNormalization", names, axis=-1, epsilon=c.attributes[0])


def rms_norm(w: Writer, c: Call) -> Any:
    x, weight = c.inputs
    square = w.add("ReduceMean", [w.add("Mul", [x, x]), w.ints(-1)], keepdims=1)
    root = w.add("Sqrt", [w.add("Add", [square, w.number(c.attributes[0], c.dtypes[0])])])
    found = w.add("Div", [x, root])
    return found if weight is None else w.add("Mul", [found, weight])


def prelu(w: Writer, c: Call) -> Any:
    x, slope = c.inputs
    rank, size = len(c.shapes[0]), c.shapes[1]
    refuse_followed(c, size)
    shaped = w.add("Reshape", [slope, w.ints(*size, *(1,) * max(0, rank - 2))]) if size else slope
    return w.add("PRelu", [x, shaped])


def _repeated(w: Writer, c: Call, name: str, i: int, count: int) -> str:
    """Each head as often as queries share it."""
    *lead, heads, length, size = c.shapes[i]
    many = w.ints(*(1 for _ in lead), 1, count, 1, 1)
    spread = w.add("Expand", [w.add("Unsqueeze", [name, w.ints(len(lead) + 1)]), many])
    return reshaped(w, spread, (*lead, heads * count, length, size))


def _later(w: Writer, rows: Any, columns: Any) -> str:
    """Where a key comes later than the query; the last query sees all."""
    if not has((rows, columns), Followed):
        return w.array(np.arange(columns) > np.arange(rows)[:, None] + (columns - rows))
    keys = w.add("Range", [w.count(0), w.count(columns), w.count(1)])
    queries = w.add("Range", [w.count(columns - rows), w.count(columns), w.count(1)])
    return str(w.add("Greater", [keys, w.add("Unsqueeze", [queries, w.ints(1)])]))


def attention(w: Writer, c: Call) -> Any:
    query, key, value, mask, bias = c.inputs
    scale, softcap, causal = c.attributes
    rank, dtype = len(c.shapes[0]), c.dtypes[0]
    if rank > 2 and c.shapes[0][-3] != c.shapes[1][-3]:
        refuse_followed(c, (c.shapes[0][-3], c.shapes[1][-3]))
        count = c.shapes[0][-3] // c.shapes[1][-3]
        key, value = (_repeated(w, c, n, i, count) for i, n in ((1, key), (2, value)))
    turned = w.add("Transpose", [key], perm=[*range(rank - 2), rank - 1, rank - 2])
    scores = w.add("Mul", [w.add("MatMul", [query, turned]), w.number(scale, dtype)])
    if softcap is not None:
        cap = w.number(softcap, dtype)
        scores = w.add("Mul", [w.add("Tanh", [w.add("Div", [scores, cap])]), cap])
    scores = scores if bias is None else w.add("Add", [scores, bias])
    if causal:
        hidden = _later(w, c.shapes[0][-2], c.shapes[1][-2])
        scores = w.add("Where", [hidden, w.number(-math.inf, dtype), scores])
    if mask is not None:
        scores = w.add("Where", [mask, w.number(-math.inf, dtype), scores])
    share = w.add("Softmax", [scores], axis=-1)
    if mask is not None or causal:  # a query that sees nothing gives zeros
        share = w.add("Where", [w.add("IsNaN", [share]), w.number(0, dtype), share])
    return w.add("MatMul", [share, value])


def interpolate(w: Writer, c: Call) -> Any:
    size, mode, corners = c.attributes
    modes = {"bicubic": "cubic", "bilinear": "linear", "cubic": "cubic", "linear": "linear",
             "nearest": "nearest"}  # fmt: skip
    if mode not in modes:
        raise c.refuse("no such way between the elements")
    where = "align_corners" if corners else "asymmetric" if mode == "nearest" else "half_pixel"
    axes = list(range(2, len(c.shapes[0])))
    words = {"coordinate_transformation_mode": where, "mode": modes[mode], "axes": axes}
    if mode == "nearest":
        words["nearest_mode"] = "floor"
    return w.add("Resize", [c.inputs[0], "", "", w.ints(*size)], **words)
