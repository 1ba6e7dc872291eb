"""Products of matrices, convolutions, pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._dtype import float32
from .._op import IndexSample, case
from .._rules import attention as attention_rules
from .._rules import linear as rules
from ..reference import attention as attention_ref
from ..reference import window as ref
from . import _attention
from ._families import contraction, window

if TYPE_CHECKING:
    from .._kinds import Int
    from .._tensor import Tensor

_CONV = "stride: Pair = 1, padding: Sides = 0, dilation: Pair = 1, groups: int = 1"

matmul = contraction(
    "matmul",
    "x1: Num, x2: Num -> Num",
    numpy=ref.matmul,
    shape=rules.matmul,
    ulp=8,
    atol=16,
    cases=(
        case((3, 4), (4, 5)),
        case((4,), (4,)),
        case((2, 3, 4), (4,)),
        case((4,), (2, 4, 3)),
        case((2, 1, 3, 4), (5, 4, 2)),
        case((3, 0), (0, 2)),
        case((17, 33), (33, 9)),
    ),
    doc="Product of matrices, over batches that broadcast; a vector is a row on the left and a "
    "column on the right. Narrow floats accumulate in float32.",
)


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    out = x @ weight
    return out if bias is None else out + bias


def _fused_linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    residual: Tensor | None,
    activation: str,
    scale: float,
) -> Tensor:
    wide = x.dtype if x.dtype.itemsize >= float32.itemsize else float32
    out = x.astype(wide) @ weight.astype(wide)
    if scale != 1:
        out = out * scale
    for addend in (bias, residual):
        if addend is not None:
            out = out + addend.astype(wide)
    if activation == "relu":
        out = out.relu()
    elif activation == "gelu":
        out = out.gelu()
    return out.astype(x.dtype)


fused_linear = contraction(
    "fused_linear",
    "x: Float, weight: Float, bias: Float?, residual: Float?; activation: str = 'none', "
    "scale: float = 1.0 -> Float",
    expand=_fused_linear,
    numpy=ref.fused_linear,
    shape=rules.fused_linear,
    ulp=16,
    atol=32,
    cases=(
        case((3, 4), (4, 5), (5,), (3, 5)),
        case((2, 3, 4), (4, 2), None, (2, 3, 2), activation="relu"),
        case((4,), (4, 3), (3,), None, activation="gelu"),
        case((17, 33), (33, 40), (40,), (17, 40), activation="gelu", scale=0.25),
        case((5, 7), (7, 3), None, None, scale=-2.0),
        case((3, 0), (0, 2), (2,), (3, 2), activation="relu"),
    ),
    method=False,
    doc="``activation(scale·(x @ weight) + bias + residual)`` with weight of shape (in, out), bias "
    "(out,) and a residual of the shape of the result; activation is none, relu or gelu. The "
    "product of narrow floats is rounded once, at the end.",
)


linear = contraction(
    "linear",
    "x: Float, weight: Float, bias: Float? -> Float",
    expand=_linear,
    numpy=ref.linear,
    shape=rules.linear,
    ulp=8,
    atol=16,
    cases=(case((3, 4), (4, 5), (5,)), case((2, 3, 4), (4, 2), None), case((4,), (4, 3), (3,))),
    method=False,
    doc="``x @ weight + bias`` with weight of shape (in, out).",
)
_HEADS = "query: Float, key: Float, value: Float, mask: Bool?, bias: Float?"
_SCORES = "scale: float? = None, softcap: float? = None, is_causal: bool = False"
_HEADS_CASES = (
    case((2, 3, 2), (2, 4, 2), (2, 4, 3), None, None),
    case((1, 3, 2), (1, 3, 2), (1, 3, 2), None, (3, 1), is_causal=True),
    case((4, 2, 3), (2, 3, 3), (2, 3, 2), (3,), None, is_causal=True, softcap=2.0),
    case((1, 4, 2), (1, 2, 2), (1, 2, 2), None, (1, 4, 2), is_causal=True, scale=0.3),
    case((2, 2, 3, 2), (2, 1, 4, 2), (2, 1, 4, 1), (2, 1, 3, 4), (2, 1, 4), softcap=5.0),
    case((2, 0, 3), (2, 4, 3), (2, 4, 2), None, None),
    case((2, 3, 3), (2, 0, 3), (2, 0, 2), None, None),
    case((2, 4, 37, 20), (2, 2, 70, 20), (2, 2, 70, 33), (37, 70), (4, 1, 70), is_causal=True),
    case((1, 1, 9, 8), (1, 1, 600, 8), (1, 1, 600, 8), None, None),
)
attention = contraction(
    "attention",
    f"{_HEADS}; {_SCORES} -> Float",
    expand=_attention.attention,
    numpy=attention_ref.attention,
    shape=attention_rules.attention,
    prepare=attention_rules.prepare,
    ulp=64,
    atol=64,
    cases=_HEADS_CASES,
    method=False,
    doc="Scaled dot-product attention: ``softmax(scale · query @ keyᵀ) @ value`` of query (…, H, "
    "Q, D), key (…, Hkv, K, D) and value (…, Hkv, K, V). H is a multiple of Hkv: neighboring query "
    "heads share a head of key and value. Scores are scaled (1 / √D by default), capped "
    "(``softcap · tanh(s / softcap)``), hidden where mask is True or, if causal, where the key "
    "comes later than the query (the last query sees all keys), and shifted by bias; mask and bias "
    "broadcast to (…, H, Q, K). A query that sees nothing gives zeros. Vaswani et al., 2017.",
)
attention_backward = contraction(
    "attention_backward",
    f"g: Float, {_HEADS}; {_SCORES} -> dquery: Float, dkey: Float, dvalue: Float, dbias: Float",
    expand=_attention.attention_backward,
    numpy=attention_ref.attention_backward,
    shape=attention_rules.attention_backward,
    prepare=attention_rules.prepare_backward,
    ulp=256,
    atol=512,
    cases=tuple(
        case((*q[:-1], v[-1]), q, k, v, *rest, **attributes)
        for (q, k, v, *rest), attributes in _HEADS_CASES
    ),
    method=False,
    doc="Cotangents of ``attention`` for query, key, value and bias, from scores computed again; "
    "that of an absent bias is empty.",
)
conv2d = window(
    "conv2d",
    f"x: Float, weight: Float, bias: Float?; {_CONV} -> Float",
    numpy=ref.conv2d,
    shape=rules.conv2d,
    ulp=16,
    atol=32,
    cases=(
        case((2, 3, 7, 6), (4, 3, 3, 3), (4,), padding=1),
        case((1, 4, 8, 8), (6, 2, 3, 2), None, stride=2, padding=((1, 0), (0, 2)), groups=2),
        case((2, 3, 9, 9), (2, 3, 3, 3), (2,), dilation=2),
        case((2, 4, 5, 5), (4, 1, 3, 3), None, padding=1, groups=4),
        case((2, 5, 4, 4), (3, 5, 1, 1), (3,)),
        case((0, 3, 5, 5), (2, 3, 3, 3), (2,)),
    ),
    method=False,
    doc="Cross-correlation of images (N, C, H, W) with weight (out, C / groups, kh, kw).",
)
conv2d_input_grad = window(
    "conv2d_input_grad",
    f"g: Float, weight: Float; input_shape: Shape, {_CONV} -> Float",
    numpy=ref.conv2d_input_grad,
    shape=rules.conv2d_input_grad,
    ulp=16,
    atol=32,
    cases=(
        case((2, 4, 7, 6), (4, 3, 3, 3), input_shape=(2, 3, 7, 6), padding=1),
        case(
            (1, 6, 4, 4),
            (6, 2, 3, 2),
            input_shape=(1, 4, 8, 8),
            stride=2,
            padding=((1, 0), (0, 1)),
            groups=2,
        ),
        case((2, 4, 5, 5), (4, 1, 3, 3), input_shape=(2, 4, 5, 5), padding=1, groups=4),
        case((2, 2, 5, 5), (2, 3, 3, 3), input_shape=(2, 3, 9, 9), dilation=2),
        case((2, 3, 4, 4), (3, 5, 1, 1), input_shape=(2, 5, 4, 4)),
    ),
    method=False,
    doc="Cotangent of ``conv2d`` for its input: the transposed convolution.",
)
conv2d_weight_grad = window(
    "conv2d_weight_grad",
    f"g: Float, x: Float; weight_shape: Shape, {_CONV} -> Float",
    numpy=ref.conv2d_weight_grad,
    shape=rules.conv2d_weight_grad,
    ulp=32,
    atol=64,
    cases=(
        case((2, 4, 7, 6), (2, 3, 7, 6), weight_shape=(4, 3, 3, 3), padding=1),
        case(
            (1, 6, 4, 4),
            (1, 4, 8, 8),
            weight_shape=(6, 2, 3, 2),
            stride=2,
            padding=((1, 0), (0, 1)),
            groups=2,
        ),
        case((2, 4, 5, 5), (2, 4, 5, 5), weight_shape=(4, 1, 3, 3), padding=1, groups=4),
        case((2, 2, 5, 5), (2, 3, 9, 9), weight_shape=(2, 3, 3, 3), dilation=2),
        case((2, 3, 4, 4), (2, 5, 4, 4), weight_shape=(3, 5, 1, 1)),
    ),
    method=False,
    doc="Cotangent of ``conv2d`` for its weight.",
)


def _conv_transpose2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    """The adjoint of a convolution whose padding at the end is cut by the output padding."""
    sides, size, missing = [], [], []
    for n, k, s, (low, high), extra, d in zip(
        x.shape[2:], weight.shape[2:], stride, padding, output_padding, dilation, strict=True
    ):
        cut = min(extra, high)
        sides.append((low, high - cut))
        size.append((n - 1) * s + d * (k - 1) + 1 - low - high + cut)
        missing.append((0, extra - cut))
    shape = (x.shape[0], weight.shape[1] * groups, *size)
    out = conv2d_input_grad(x, weight, shape, stride, tuple(sides), dilation, groups)
    if any(after for _, after in missing):
        out = out.pad(tuple(missing), 0.0)
    return out if bias is None else out + bias.reshape((-1, 1, 1))


conv_transpose2d = window(
    "conv_transpose2d",
    "x: Float, weight: Float, bias: Float?; stride: Pair = 1, padding: Sides = 0, "
    "output_padding: Extra = 0, dilation: Pair = 1, groups: int = 1 -> Float",
    expand=_conv_transpose2d,
    numpy=ref.conv_transpose2d,
    shape=rules.conv_transpose2d,
    ulp=16,
    atol=32,
    cases=(
        case((2, 3, 4, 5), (3, 4, 3, 3), (4,), stride=2, padding=1, output_padding=1),
        case((1, 4, 3, 4), (4, 3, 2, 3), None, stride=(3, 2), output_padding=(2, 0), groups=2),
        case((2, 3, 5, 5), (3, 2, 3, 3), (2,), padding=((1, 0), (2, 1)), dilation=2),
        case((2, 3, 3, 3), (3, 2, 2, 2), (2,), padding=2, output_padding=1, dilation=3),
        case((1, 4, 4, 4), (4, 1, 3, 3), (4,), stride=2, groups=4),
        case((2, 5, 3, 3), (5, 2, 1, 1), None),
        case((0, 3, 2, 2), (3, 2, 2, 2), (2,)),
    ),
    method=False,
    doc="Transposed convolution of images (N, C, H, W) with weight (C, out / groups, kh, kw): each "
    "element adds its weighted kernel to the result, which has height ``(H - 1)·stride - top - "
    "bottom + dilation·(kh - 1) + output_padding + 1``.",
)
_POOL = "kernel: Pair, stride: Pair? = None, padding: Sides = 0"
_MAX = f"{_POOL}, dilation: Pair = 1, ceil_mode: bool = False"
_MAX_CASES = (
    case((2, 3, 8, 6), kernel=2),
    case((2, 3, 7, 9), kernel=3, stride=2, padding=1),
    case((1, 2, 9, 9), kernel=(2, 3), stride=1, dilation=2),
    case((1, 2, 7, 7), kernel=3, stride=2, ceil_mode=True),
)
max_pool2d_with_indices = window(
    "max_pool2d_with_indices",
    f"x: Num; {_MAX} -> values: Num, indices: Int",
    numpy=ref.max_pool2d_with_indices,
    shape=rules.max_pool2d,
    prepare=rules.prepare_pool,
    cases=_MAX_CASES,
    method=False,
    doc="Largest element of each window of (N, C, H, W) and its place in the plane, ``row·W + "
    "column``; nan wins, the first of equals wins.",
)


def _max_pool2d(x: Tensor, *attributes: Any) -> Tensor:
    return max_pool2d_with_indices(x, *attributes)[0]


max_pool2d = window(
    "max_pool2d",
    f"x: Num; {_MAX} -> Num",
    expand=_max_pool2d,
    shape=rules.max_pool2d,
    prepare=rules.prepare_pool,
    cases=_MAX_CASES,
    method=False,
    doc="Largest element of each window of (N, C, H, W); nan wins. The stride is the kernel where "
    "none is given.",
)


def _max_pool2d_backward(g: Tensor, indices: Tensor[Int], input_shape: tuple[int, ...]) -> Tensor:
    n, c, h, w = input_shape
    empty = g.zeros((n, c, h * w))
    flat = empty.scatter(indices.reshape(n, c, -1), g.reshape(n, c, -1), axis=2, update="add")
    return flat.reshape(input_shape)


max_pool2d_backward = window(
    "max_pool2d_backward",
    "g: Float, indices: Int; input_shape: Shape -> Float",
    expand=_max_pool2d_backward,
    numpy=ref.max_pool2d_backward,
    shape=rules.max_pool2d_backward,
    ulp=4,
    atol=8,
    cases=(
        case((2, 3, 2, 4), IndexSample((2, 3, 2, 4), -12), input_shape=(2, 3, 3, 4)),
        case((1, 1, 1, 1), IndexSample((1, 1, 1, 1), -9), input_shape=(1, 1, 3, 3)),
    ),
    method=False,
    doc="Cotangent of ``max_pool2d``: each g goes to the place that won.",
)
_AVERAGE = f"{_POOL}, ceil_mode: bool = False, count_include_pad: bool = True"
avg_pool2d = window(
    "avg_pool2d",
    f"x: Float; {_AVERAGE} -> Float",
    numpy=ref.avg_pool2d,
    shape=rules.avg_pool2d,
    prepare=rules.prepare_pool,
    ulp=4,
    atol=4,
    cases=(
        case((2, 3, 8, 6), kernel=2),
        case((2, 3, 7, 9), kernel=3, stride=2, padding=1),
        case((2, 3, 7, 9), kernel=3, stride=2, padding=1, count_include_pad=False),
        case((1, 2, 7, 7), kernel=3, stride=2, ceil_mode=True),
    ),
    method=False,
    doc="Mean of each window of (N, C, H, W). The stride is the kernel where none is given.",
)
avg_pool2d_backward = window(
    "avg_pool2d_backward",
    f"g: Float; input_shape: Shape, {_AVERAGE} -> Float",
    numpy=ref.avg_pool2d_backward,
    shape=rules.avg_pool2d_backward,
    prepare=lambda metas, attributes, backend: (
        attributes[0],
        *rules.prepare_pool(metas, attributes[1:], backend),
    ),
    ulp=4,
    atol=8,
    cases=(
        case((2, 3, 4, 3), input_shape=(2, 3, 8, 6), kernel=2),
        case((2, 3, 4, 5), input_shape=(2, 3, 7, 9), kernel=3, stride=2, padding=1),
        case(
            (2, 3, 4, 5),
            input_shape=(2, 3, 7, 9),
            kernel=3,
            stride=2,
            padding=1,
            count_include_pad=False,
        ),
        case((1, 2, 3, 3), input_shape=(1, 2, 7, 7), kernel=3, stride=2, ceil_mode=True),
    ),
    method=False,
    doc="Cotangent of ``avg_pool2d``: each g is shared out over its window.",
)
