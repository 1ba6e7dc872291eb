"""Derivatives of matrix products, convolutions and pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from phlox_tensor import Tensor
from phlox_tensor.ops import contraction as ops

from .._plan import sum_to
from .._rule import Joint, Rule

if TYPE_CHECKING:
    from phlox_tensor import Bool, Int

Shape = tuple[int, ...]


def _rows(x: Tensor) -> Tensor:
    """All leading axes as one: (…, n) to (m, n)."""
    shape = x.shape
    return x if len(shape) == 2 else x.reshape((x.size // max(shape[-1], 1), shape[-1]))


def _columns_of(g: Tensor, x1: Shape, x2: Shape) -> Tensor:
    """The cotangent of a product with the axes that vectors lost put back."""
    if len(x2) == 1:
        g = g.expand_dims(-1)
    return g.expand_dims(-2) if len(x1) == 1 else g


def _matmul_x1(g: Tensor, x2: Tensor, x1_shape: Shape) -> Tensor:
    """``g @ x2ᵀ``, summed over the batches along which x1 was broadcast."""
    wide = _columns_of(g, x1_shape, x2.shape)
    out = wide @ (x2.expand_dims(0) if x2.ndim == 1 else x2.mT)
    line = (1, *x1_shape) if len(x1_shape) == 1 else x1_shape
    return sum_to(out, line).reshape(x1_shape)


def _matmul_x2(g: Tensor, x1: Tensor, x2_shape: Shape) -> Tensor:
    """``x1ᵀ @ g``, summed over the batches along which x2 was broadcast."""
    wide = _columns_of(g, x1.shape, x2_shape)
    if len(x2_shape) <= 2 < x1.ndim:
        # One product over all batches adds them up as it goes.
        return (_rows(x1).mT @ _rows(wide)).reshape(x2_shape)
    out = (x1.expand_dims(-1) if x1.ndim == 1 else x1.mT) @ wide
    line = (*x2_shape, 1) if len(x2_shape) == 1 else x2_shape
    return sum_to(out, line).reshape(x2_shape)


def _transposed(x: Tensor) -> Tensor:
    """A matrix transposed, past the checks of a call, which have nothing to find."""
    device = x.device
    return Tensor(device.ops.permute_dims(x.primitive, (1, 0)), device)


def _linear_x(g: Tensor, weight: Tensor) -> Tensor:
    return g @ _transposed(weight)


def _linear_weight(g: Tensor, x: Tensor) -> Tensor:
    if len(g.shape) != 2:
        x, g = _rows(x), _rows(g)
    return _transposed(x) @ g


def _linear_bias(g: Tensor) -> Tensor:
    rank = len(g.shape)
    if rank == 2:
        return g.sum(0)
    return g if rank == 1 else g.sum(tuple(range(rank - 1)))


def _conv2d_x(
    g: Tensor,
    weight: Tensor,
    x_shape: Shape,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    return ops.conv2d_input_grad(g, weight, x_shape, stride, padding, dilation, groups)


def _conv2d_weight(
    g: Tensor,
    x: Tensor,
    weight_shape: Shape,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    return ops.conv2d_weight_grad(g, x, weight_shape, stride, padding, dilation, groups)


def _input_grad_g(
    gg: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    return ops.conv2d(gg, weight, None, stride, padding, dilation, groups)


def _input_grad_weight(
    gg: Tensor,
    g: Tensor,
    weight_shape: Shape,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    return ops.conv2d_weight_grad(g, gg, weight_shape, stride, padding, dilation, groups)


def _weight_grad_g(
    gg: Tensor, x: Tensor, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    return ops.conv2d(x, gg, None, stride, padding, dilation, groups)


def _weight_grad_x(
    gg: Tensor,
    g: Tensor,
    x_shape: Shape,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Tensor:
    return ops.conv2d_input_grad(g, gg, x_shape, stride, padding, dilation, groups)


def _attention(
    g: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor[Bool] | None,
    bias: Tensor | None,
    scale: float,
    softcap: float | None,
    is_causal: bool,
) -> tuple[Tensor | None, ...]:
    operands = (query, key, value, mask, bias)
    *parts, dbias = ops.attention_backward(g, *operands, scale, softcap, is_causal)
    return (*parts, None, None if bias is None else dbias)


def _max_pool2d(g_values: Tensor, indices: Tensor[Int], x_shape: Shape) -> Tensor:
    return ops.max_pool2d_backward(g_values, indices, x_shape)


def _max_pool2d_backward(gg: Tensor, indices: Tensor[Int], g_shape: Shape) -> Tensor:
    """Read each place that won."""
    n, c, h, w = gg.shape
    flat = gg.reshape((n, c, h * w))
    line = (n, c, g_shape[2] * g_shape[3])
    return flat.take_along_axis(indices.reshape(line), axis=2).reshape(g_shape)


def _avg_pool2d(
    g: Tensor,
    x_shape: Shape,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Tensor:
    return ops.avg_pool2d_backward(
        g, x_shape, kernel, stride, padding, ceil_mode, count_include_pad
    )


def _avg_pool2d_backward(
    gg: Tensor, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool
) -> Tensor:
    return ops.avg_pool2d(gg, kernel, stride, padding, ceil_mode, count_include_pad)


CONTRACTION: Final[dict[str, Rule]] = {
    "attention": Joint(_attention),
    "avg_pool2d": _avg_pool2d,
    "avg_pool2d_backward": _avg_pool2d_backward,
    "conv2d": (_conv2d_x, _conv2d_weight, lambda g: g.sum(axis=(0, 2, 3))),
    "conv2d_input_grad": (_input_grad_g, _input_grad_weight),
    "conv2d_weight_grad": (_weight_grad_g, _weight_grad_x),
    "linear": (_linear_x, _linear_weight, _linear_bias),
    "matmul": (_matmul_x1, _matmul_x2),
    "max_pool2d_backward": (_max_pool2d_backward, None),
    "max_pool2d_with_indices": _max_pool2d,
}
