"""Shape rules of contractions and windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._errors import ArgumentError, ShapeError
from .general import broadcast_shapes

if TYPE_CHECKING:
    from .._backend import Backend
    from .._op import Attributes, Metas, Op, Shape

IMAGE_RANK = 4


def matmul(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """NumPy's rule: vectors lose their axis, batches broadcast."""
    del attributes
    a, b = metas[0].shape, metas[1].shape
    if not a or not b:
        raise ShapeError(op.name, "a 0-d operand", got=f"{a} @ {b}", hint="x * y")
    rows = a if len(a) > 1 else (1, *a)
    columns = b if len(b) > 1 else (*b, 1)
    if rows[-1] != columns[-2]:
        hint = None
        if len(b) > 1 and rows[-1] == b[-1]:
            hint = "x @ y.T" if len(b) == 2 else "x @ y.mT"
        elif len(a) > 1 and a[-2] == columns[-2]:
            hint = "x.T @ y" if len(a) == 2 else "x.mT @ y"
        raise ShapeError(
            op.name,
            "inner sizes differ",
            got=f"{a} @ {b}",
            expected="(…, n, k) @ (…, k, m)",
            hint=hint,
        )
    batch = broadcast_shapes((rows[:-2], columns[:-2]), op.name)
    return [batch + a[-2:-1] * (len(a) > 1) + b[-1:] * (len(b) > 1)]


def linear(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """(…, in) times (in, out), plus (out,)."""
    del attributes
    x, weight, bias = metas
    if not x.shape or len(weight.shape) != 2 or x.shape[-1] != weight.shape[0]:
        raise ShapeError(
            op.name,
            "inner sizes differ",
            got=f"x {x.shape}, weight {weight.shape}",
            expected="x (…, in), weight (in, out)",
        )
    out = weight.shape[1]
    if bias is not None and bias.shape != (out,):
        raise ShapeError(op.name, "bias does not fit", got=bias.shape, expected=(out,))
    return [(*x.shape[:-1], out)]


ACTIVATIONS = ("gelu", "none", "relu")


def fused_linear(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """That of ``linear``; the residual has it too."""
    activation = attributes[0]
    if activation not in ACTIVATIONS:
        expected = ", ".join(ACTIVATIONS)
        raise ArgumentError(op.name, "unknown activation", got=activation, expected=expected)
    *operands, residual = metas
    (shape,) = linear(op, operands, attributes)
    if residual is not None and residual.shape != shape:
        raise ShapeError(op.name, "residual does not fit", got=residual.shape, expected=shape)
    return [shape]


def _image(op: Op, meta: Any, name: str = "x") -> None:
    if len(meta.shape) != IMAGE_RANK:
        raise ShapeError(
            op.name,
            f"{name} is not a batch of images",
            got=meta.shape,
            expected="(batch, channels, height, width)",
            hint="x[None] for a single image",
        )


def window_sizes(
    op: str,
    size: Shape,
    kernel: Shape,
    stride: Shape,
    padding: tuple[tuple[int, int], ...],
    dilation: Shape,
    ceil_mode: bool = False,
) -> tuple[int, int]:
    """Number of window positions along height and width.

    Raises:
        ShapeError: when the window is larger than the padded image.
    """
    out = []
    for n, k, s, (before, after), d in zip(size, kernel, stride, padding, dilation, strict=True):
        room = n + before + after - d * (k - 1) - 1
        if room < 0:
            raise ShapeError(
                op,
                "window larger than the padded image",
                got=f"window {d * (k - 1) + 1}, image {n + before + after}",
            )
        count = room // s + 1
        # A last, partial window counts in ceil mode when it starts inside image or left padding.
        if ceil_mode and room % s and count * s < n + before:
            count += 1
        out.append(count)
    return out[0], out[1]


def conv2d(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """(N, O, H', W')."""
    x, weight, bias = metas
    stride, padding, dilation, groups = attributes
    _image(op, x)
    _image(op, weight, "weight")
    channels, out = x.shape[1], weight.shape[0]
    if groups < 1 or channels % groups or out % groups or weight.shape[1] != channels // groups:
        raise ShapeError(
            op.name,
            "channels do not fit",
            got=f"x {x.shape}, weight {weight.shape}, groups {groups}",
            expected="weight (out, in / groups, kh, kw), both divisible by groups",
        )
    if bias is not None and bias.shape != (out,):
        raise ShapeError(op.name, "bias does not fit", got=bias.shape, expected=(out,))
    size = window_sizes(op.name, x.shape[2:], weight.shape[2:], stride, padding, dilation)
    return [(x.shape[0], out, *size)]


def cotangent(op: Op, got: Shape, expected: Shape) -> None:
    """Raise ShapeError unless a cotangent has the shape of the result."""
    if got != expected:
        raise ShapeError(
            op.name,
            "the cotangent does not have the shape of the result",
            got=got,
            expected=expected,
        )


def conv2d_input_grad(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """The shape of the input, from which ``conv2d`` makes a result of g's shape."""
    g, weight = metas
    shape, *rest = attributes
    (result,) = conv2d(op, (g._replace(shape=shape), weight, None), tuple(rest))
    cotangent(op, g.shape, result)
    return [shape]


def _unwindowed(op: Op, size: Shape, kernel: Shape, attributes: Attributes) -> tuple[int, int]:
    """Height and width from which a convolution makes ``size``, plus the output padding."""
    stride, padding, output_padding, dilation, _ = attributes
    out = []
    for n, k, s, sides, extra, d in zip(
        size, kernel, stride, padding, output_padding, dilation, strict=True
    ):
        if extra >= max(s, d):
            raise ArgumentError(
                op.name,
                "output_padding too large",
                got=extra,
                expected=f"less than the stride {s} or the dilation {d}",
            )
        length = (n - 1) * s + d * (k - 1) + 1 - sum(sides)
        if length + min(extra, sides[1]) < 0:
            raise ShapeError(
                op.name,
                "padding larger than the result",
                got=f"padding {sides}, result {length + extra + sum(sides)} before it is cut",
            )
        out.append(length + extra)
    return out[0], out[1]


def conv_transpose2d(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """(N, O, H', W')."""
    x, weight, bias = metas
    groups = attributes[4]
    _image(op, x)
    _image(op, weight, "weight")
    channels = x.shape[1]
    if groups < 1 or channels % groups or weight.shape[0] != channels:
        raise ShapeError(
            op.name,
            "channels do not fit",
            got=f"x {x.shape}, weight {weight.shape}, groups {groups}",
            expected="weight (in, out / groups, kh, kw), in divisible by groups",
        )
    if min(*x.shape[2:], *weight.shape[2:]) < 1:
        raise ShapeError(
            op.name, "an empty window or image", got=f"x {x.shape}, weight {weight.shape}"
        )
    out = weight.shape[1] * groups
    if bias is not None and bias.shape != (out,):
        raise ShapeError(op.name, "bias does not fit", got=bias.shape, expected=(out,))
    return [(x.shape[0], out, *_unwindowed(op, x.shape[2:], weight.shape[2:], attributes))]


def conv2d_weight_grad(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """The shape of the weight, with which ``conv2d`` makes a result of g's shape."""
    g, x = metas
    shape, *rest = attributes
    (result,) = conv2d(op, (x, g._replace(shape=shape), None), tuple(rest))
    cotangent(op, g.shape, result)
    return [shape]


def prepare_pool(metas: Metas, attributes: Attributes, backend: Backend) -> Attributes:
    """The stride is the kernel where none is given."""
    del metas, backend
    kernel, stride, padding, *rest = attributes
    for (before, after), k in zip(padding, kernel, strict=True):
        if max(before, after) > k // 2:
            raise ArgumentError(
                "pool2d", "padding too large", got=(before, after), expected=f"at most {k // 2}"
            )
    return (kernel, kernel if stride is None else stride, padding, *rest)


def max_pool2d(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """(N, C, H', W'), once for each result."""
    kernel, stride, padding, dilation, ceil_mode = attributes
    _image(op, metas[0])
    shape = metas[0].shape
    size = window_sizes(op.name, shape[2:], kernel, stride, padding, dilation, ceil_mode)
    return [(*shape[:2], *size)] * len(op.signature.results)


def avg_pool2d(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """(N, C, H', W')."""
    kernel, stride, padding, ceil_mode, _ = attributes
    _image(op, metas[0])
    shape = metas[0].shape
    size = window_sizes(op.name, shape[2:], kernel, stride, padding, (1, 1), ceil_mode)
    return [(*shape[:2], *size)]


def max_pool2d_backward(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """The shape of the input; each element of g has an index."""
    g, indices = metas
    (shape,) = attributes
    _image(op, g, "g")
    _image(op, g._replace(shape=shape), "input_shape")
    cotangent(op, g.shape, (*shape[:2], *g.shape[2:]))
    cotangent(op, indices.shape, g.shape)
    return [shape]


def avg_pool2d_backward(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """The shape of the input, from which ``avg_pool2d`` makes a result of g's shape."""
    shape, *rest = attributes
    (result,) = avg_pool2d(op, (metas[0]._replace(shape=shape),), tuple(rest))
    cotangent(op, metas[0].shape, result)
    return [shape]


def row_norm(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """X's shape; weight and bias have the size of the last axis."""
    del attributes
    shape = metas[0].shape
    if not shape:
        raise ShapeError(op.name, "a 0-d tensor has no last axis", got=shape)
    _vectors(op, metas[1:], shape[-1])
    return [shape]


def row_norm_backward(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """X's shape, then a vector per further result."""
    (shape,) = row_norm(op, metas[1:], attributes)
    cotangent(op, metas[0].shape, shape)
    return [shape, *([shape[-1:]] * (len(op.signature.results) - 1))]


def cross_entropy(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """X's shape without the last axis, which is that of target."""
    del attributes
    shape, target = metas[0].shape, metas[1].shape
    if not shape or target != shape[:-1]:
        raise ShapeError(
            op.name,
            "targets do not fit x",
            got=f"x {shape}, target {target}",
            expected="x (…, C), target (…)",
        )
    return [target]


def cross_entropy_backward(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """The shape of x, from which ``cross_entropy`` makes a result of g's shape."""
    (result,) = cross_entropy(op, metas[1:], attributes)
    cotangent(op, metas[0].shape, result)
    return [metas[1].shape]


def _vectors(op: Op, metas: Metas, size: int) -> None:
    for meta in metas:
        if meta is not None and meta.shape != (size,):
            raise ShapeError(op.name, "a vector does not fit", got=meta.shape, expected=(size,))


def _channels(op: Op, shape: Shape) -> int:
    if len(shape) < 2:
        raise ShapeError(op.name, "no channel axis", got=shape, expected="(batch, channels, …)")
    return shape[1]


def batch_norm(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """X's shape, then a vector per further result; parameters have one value per channel."""
    del attributes
    shape = metas[0].shape
    size = _channels(op, shape)
    _vectors(op, metas[1:], size)
    return [shape, *([(size,)] * (len(op.signature.results) - 1))]


def batch_norm_backward(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """X's shape and two vectors."""
    shape = batch_norm(op, metas[1:], attributes)[0]
    cotangent(op, metas[0].shape, shape)
    return [shape, shape[1:2], shape[1:2]]
