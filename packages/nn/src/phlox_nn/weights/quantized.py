"""Weights stored as integers of 8 or 4 bits, in the place of parameters of any layer."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any, ClassVar, Final, Literal, TypeVar

from phlox_tensor import (
    ArgumentError,
    DType,
    Float,
    Int,
    Tensor,
    dequantize,
    int8,
    pack_int4,
    quantized_linear,
    take,
    unpack_int4,
)

from ..module.module import Module
from ..module.visit import modules
from ..param.param import Param
from ..param.quantize import on_grid
from ..parts import walk as _walk
from ..parts.dropped import kept
from ..where import Where, chosen, no_weight
from .blocks import BlockWeight
from .computed import ComputedWeight
from .swap import inputs_first, map_fields, plain_again

M = TypeVar("M", bound=Module)

Bits = Literal[4, 8]
_WIDTHS: Final = (4, 8)
# What makes parameters again of weights that are made of others.
_PLAIN: Final = {
    "LoraWeight": "nn.merge_lora(model)",
    "NormedWeight": "nn.remove_weight_norm(model)",
    "SpectralWeight": "nn.remove_spectral_norm(model)",
}
_OWN: Final = "layer.replace(weight=layer.weight.into_param())"


class QuantizedWeight(ComputedWeight):
    """A weight as integers and scales; ``value`` is made from them whenever it is asked for.

    It stands where a layer has a parameter, which is not trained. The weight is seen as a matrix:
    the first axis is its rows, all others are one.

    integers: that matrix, int8 where the device has it; of 4 bits two are one along ``axis``, and
    count as one; scales: one for each group.

    Attributes:
        bits: of each integer.
        sizes: the shape of the weight.
        axis: along which neighbors of a group lie, the inputs: 0 where they come first, else 1.
        was_frozen: whether the parameter was, which it is again afterwards.
    """

    hint_for_pytorch: ClassVar = "nn.dequantize_weights(model)"

    integers: Param
    scales: Param
    bits: int
    sizes: tuple[int, ...]
    axis: int
    was_frozen: bool = False

    @property
    def source(self) -> Param:
        """The integers."""
        return self.integers

    @property
    def value(self) -> Tensor[Float]:
        """The weight, which is near the one that was quantized."""
        return self._floats(self._whole, self.scales.value).reshape(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``value``."""
        return self.sizes

    @property
    def dtype(self) -> DType:
        """The element type of ``value``."""
        return self.scales.dtype

    def rows(self, indices: Tensor[Int]) -> Tensor[Float]:
        """Return rows of a matrix by index, without making the others."""
        flat = indices.reshape(-1)
        integers = take(self._whole, flat, axis=0)
        found = self._floats(integers, take(self.scales.value, flat, axis=0))
        return found.reshape(*indices.shape, self.shape[-1])

    def linear(self, x: Tensor[Float], bias: Tensor[Float] | None) -> Tensor[Float]:
        """Return ``x @ value + bias``; of what is recorded, only integers are kept."""
        return quantized_linear(x, self._whole, self.scales.value, bias, bits=self.bits)

    @property
    def _whole(self) -> Tensor[Int]:
        value: Tensor[Any] = self.integers.value
        return value

    def _floats(self, integers: Tensor[Int], scales: Tensor[Float]) -> Tensor[Float]:
        return dequantize(unpack_int4(integers, self.axis) if self.bits == 4 else integers, scales)

    def into_param(self) -> Param:
        """Return a parameter of the same identity with the value, trained if it was before."""
        return Param(self.value.detach(), id=self.integers.id, trainable=not self.was_frozen)


@kept("model = nn.quantize_weights(model)")
def quantize_weights(model: M, *where: Where, bits: Bits = 8, group: int | None = None) -> M:
    """Return the model with weights stored as integers: a quarter of the bytes, or an eighth.

    Each group of neighbors has a scale, such that the largest is 127, or 7 with 4 bits. Vectors,
    such as biases and norms, stay as they are. What was lazy stays lazy. Records of the model hold
    the integers; load them into a model that was quantized in the same way. With adapters beside
    it (``apply_lora``) the model is trained as in QLoRA. Dettmers et al., 2023
    (https://arxiv.org/abs/2305.14314). What reads another format, such as ONNX, is given
    ``dequantize_weights(model)``.

    Args:
        model: any module.
        where: paths of weights or layers, in which ``*`` stands for anything, or functions of path
            and parameter; none for all.
        bits: 8, or 4 for two in a byte.
        group: how many inputs of an output share a scale; None for all: a scale per channel.

    Raises:
        ArgumentError: when a path is that of no weight, or groups do not divide what one output is
            computed from.

    Example:
        >>> import phlox_nn as nn
        >>> model = nn.quantize_weights(nn.Linear(64, 8), bits=4, group=32)
        >>> model.weight.integers
        Param(int8[32, 8], frozen)
        >>> nn.dequantize_weights(model).weight
        Param(float32[64, 8])
    """
    _check_widths(bits, group)
    paths = _chosen(model, where)
    made: dict[int, QuantizedWeight] = {}

    def stored(path: str, leaf: Any, owner: Module) -> Any:
        if not isinstance(leaf, Param) or path not in paths:
            return leaf
        if id(leaf) not in made:
            axis = int(not inputs_first(path, owner))
            made[id(leaf)] = _quantized(leaf, path, bits, group, axis=axis)
        return made[id(leaf)]

    return map_fields(model, stored)


def dequantize_weights(model: M) -> M:
    """Return the model with parameters in the place of quantized weights.

    They are trained again, but for those that were frozen before. Weights in blocks of a file
    (``BlockWeight``) become parameters too.

    Raises:
        ArgumentError: when the model has none.

    Example:
        >>> import phlox_nn as nn
        >>> nn.dequantize_weights(nn.quantize_weights(nn.Linear(4, 4))).weight
        Param(float32[4, 4])
    """
    kinds = (BlockWeight, QuantizedWeight)
    return plain_again(model, kinds, "dequantize_weights", "quantized", "quantize_weights")


def _check_widths(bits: object, group: object) -> None:
    if type(bits) is not int or bits not in _WIDTHS:
        what = "a width that is not stored"
        raise ArgumentError("quantize_weights", what, got=repr(bits), expected="bits 4 or 8")
    if group is not None and (type(group) is not int or group < 1):
        what, expected = "a group that is no number of weights", "an int, at least 1, or None"
        raise ArgumentError("quantize_weights", what, got=repr(group), expected=expected)


def _chosen(model: Module, where: tuple[Where, ...]) -> set[str]:
    """The paths of the weights that are meant."""
    able = {
        path: param
        for path, param in _walk.params(model)
        if param.role == "weight" and len(param.shape) > 1 and param.dtype.kind == "Float"
    }
    lacking = "a model with matrices that are no integers yet"
    found = chosen("quantize_weights", where, able, lacking)
    if not found:
        raise no_weight("quantize_weights", "none", able, lacking)
    for path, inner in modules(model):
        if isinstance(inner, ComputedWeight) and any(at.startswith(f"{path}.") for at in found):
            raise ArgumentError(
                "quantize_weights",
                f"{path} is made of other weights",
                got=type(inner).__name__,
                expected="a parameter",
                hint=f"{_PLAIN.get(type(inner).__name__, _OWN)}, before it",
            )
    shared = {id(able[path]) for path in found}
    return {path for path, param in able.items() if id(param) in shared}


def _quantized(
    param: Param, path: str, bits: Bits, group: int | None, *, axis: int
) -> QuantizedWeight:
    """The stored form of a parameter."""
    first, *rest = param.shape
    sizes = (first, prod(rest))
    inner = sizes[axis]
    width = inner if group is None else group
    if not inner or inner % width or (bits == 4 and inner % 2):
        raise ArgumentError(
            "quantize_weights",
            f"{path} does not come apart",
            got=f"{inner} values per output in groups of {width}{', in pairs' * (bits == 4)}",
            expected="a multiple",
            hint=f"nn.quantize_weights(model, lambda path, param: path != {path!r}, ...)",
        )
    held = tuple(n * bits // 8 if i == axis else n for i, n in enumerate(sizes))
    groups = tuple(n // width if i == axis else n for i, n in enumerate(sizes))

    @cache
    def both() -> tuple[Tensor[Int], Tensor[Float]]:
        return _integers(param.value.detach().reshape(sizes), bits, width, axis)

    device, rest_of = param.device, (bits, param.shape, axis, param.frozen)
    if param.is_initialized:
        integers, scales = both()
        whole = Param(integers, id=param.id, trainable=False)
        return QuantizedWeight(whole, Param(scales, role="state"), *rest_of)
    return QuantizedWeight(
        Param.lazy(lambda: both()[0], held, int8, device, id=param.id, trainable=False),
        Param.lazy(lambda: both()[1], groups, param.dtype, device, role="state"),
        *rest_of,
    )


def _integers(
    x: Tensor[Float], bits: Bits, width: int, axis: int
) -> tuple[Tensor[Int], Tensor[Float]]:
    """Integers of a matrix, packed along an axis, and scales of groups of neighbors along it."""
    rows, columns = x.shape
    cut = (rows // width, width, columns) if axis == 0 else (rows, columns // width, width)
    parts = x.reshape(cut)
    place = axis + 1
    whole, scales = on_grid(parts, bits, place)
    integers = whole.reshape(rows, columns).astype(int8)
    return (pack_int4(integers, axis) if bits == 4 else integers), scales.squeeze(place)
