"""Weights that published folders hold in few bits beside scales, widened when they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from phlox_record import TensorEntry
from phlox_tensor import RecordError, float32
from phlox_tensor.names import some

from ._published import Json, word

Array = np.ndarray[Any, Any]
# The numbers of two bits of exponent and one of mantissa; OCP Microscaling Formats, 2023.
_E2M1: Final = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
_FOUR_BITS: Final = np.concatenate((_E2M1, -_E2M1))
_BIAS: Final = 127  # of a byte that is a power of 2


class _Form(NamedTuple):
    """How the weights of a method are stored.

    Attributes:
        weight: what their names end with, in place of ``weight``.
        scale: what those of their scales end with.
        widened: makes float32 numbers of what is stored, by the bits of one.
        many: how many numbers an element holds, by the bits of one.
        blocks: sizes of what shares a scale; None where they follow from the shapes.
    """

    weight: str
    scale: str
    widened: Callable[[Array, int], Array]
    many: Callable[[int], int]
    blocks: tuple[int, ...] | None = None


def _as_they_are(stored: Array, bits: int) -> Array:
    return stored.astype(np.float32)


def _integers(stored: Array, bits: int) -> Array:
    """Words of 32 bits hold unsigned integers, the first in the lowest bits."""
    words = stored.view(np.uint32)[..., None] >> np.arange(0, 32, bits, dtype=np.uint32)
    numbers = (words & (2**bits - 1)).astype(np.float32) - 2.0 ** (bits - 1)
    return numbers.reshape(*stored.shape[:-1], -1)


def _halves(stored: Array, bits: int) -> Array:
    """Bytes hold two numbers, the first in the lower half."""
    pairs = np.stack((stored & 15, stored >> 4), axis=-1)
    return _FOUR_BITS[pairs].reshape(*stored.shape[:-1], -1)


_FLOATS: Final = _Form("weight", "weight_scale", _as_they_are, lambda bits: 1)
# The words of compressed-tensors for its formats.
_FORMATS: Final[Mapping[str, _Form]] = {
    "float-quantized": _FLOATS,
    "mxfp4-pack-quantized": _Form("weight_packed", "weight_scale", _halves, lambda bits: 2),
    "int-quantized": _FLOATS,
    "naive-quantized": _FLOATS,
    "pack-quantized": _Form("weight_packed", "weight_scale", _integers, lambda bits: 32 // bits),
}
_METHODS: Final = {"compressed-tensors": False, "fp8": True}
# Orders in which columns were made that left them where they were.
_ORDERS: Final = {None: True, "static": True, "weight": True}
# Of activations, which stay as they are here.
_UNUSED: Final = ("input_scale", "output_scale", ".k_scale", ".v_scale", "weight_shape")


def widened(found: dict[str, Any], given: Json) -> dict[str, Any]:
    """Return entries by name, of which those with scales are float32 numbers when they are read.

    Args:
        found: what a folder holds, by its names.
        given: its ``config.json``.

    Raises:
        RecordError: for a method or a format that is not built, and scales that do not fit.
    """
    said = given.get("quantization_config")
    if not said:
        return found
    form, bits = _form(said)
    result = {k: v for k, v in found.items() if not k.endswith(_UNUSED)}
    for name in [name for name in result if name.endswith(f".{form.weight}")]:
        stem = name.removesuffix(form.weight)
        scale = result.pop(f"{stem}{form.scale}", None)
        if scale is not None:
            entry = _entry(name, result.pop(name), scale, form, bits)
            result[f"{stem}weight"] = entry
    return result


def _form(said: Json) -> tuple[_Form, int]:
    """How weights are stored, and the bits of one."""
    if word("quant_method", said.get("quant_method"), _METHODS):
        blocks = said.get("weight_block_size")
        together = tuple(map(int, blocks)) if blocks else None
        return _FLOATS._replace(scale="weight_scale_inv", blocks=together), 8
    form = word("format", said.get("format"), _FORMATS)
    groups = list((said.get("config_groups") or {}).values())
    weights = [group.get("weights") or {} for group in groups]
    for each in weights:
        word("symmetric", each.get("symmetric", True), {True: True})
        word("actorder", each.get("actorder"), _ORDERS)
    kinds = {each.get("num_bits", 8) for each in weights} or {8}
    if len(kinds) > 1:
        got = some(sorted(map(str, kinds)))
        raise RecordError("load", "weights of several bits are not built", got=got)
    return form, word("num_bits", kinds.pop(), {4: 4, 8: 8})


def _entry(name: str, stored: Any, scale: Any, form: _Form, bits: int) -> TensorEntry:
    """The numbers of a weight, times the scales of its blocks."""
    shape = (*stored.shape[:-1], stored.shape[-1] * form.many(bits))
    grid = (1,) * (len(shape) - len(scale.shape)) + tuple(scale.shape)
    blocks = form.blocks or tuple(a // max(b, 1) for a, b in zip(shape, grid, strict=False))
    parts = tuple(-(-a // b) if b > 0 else 0 for a, b in zip(shape, blocks, strict=False))
    if len(grid) != len(shape) or parts != grid:
        expected = f"parts of {shape}"
        raise RecordError(
            "load", f"scales of {name} do not fit", got=scale.shape, expected=expected
        )

    def read() -> Array:
        scales = np.asarray(scale.numpy())
        if scales.dtype == np.uint8:
            scales = np.ldexp(np.float32(1), scales.astype(np.int32) - _BIAS)
        factors = scales.astype(np.float32).reshape(grid)
        for axis, size in enumerate(blocks):
            factors = factors if grid[axis] == 1 else np.repeat(factors, size, axis=axis)
        return form.widened(stored.numpy(), bits) * factors[tuple(map(slice, shape))]

    return TensorEntry(shape, float32, read)
