"""Weights that stay in the blocks of a file of llama.cpp, in the place of parameters."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from phlox_tensor import (
    DType,
    Float,
    Int,
    Tensor,
    blocks_linear,
    dequantize_blocks,
    int32,
    linear,
    take,
    uint8,
    zeros,
)
from phlox_tensor.ops.blocks import dequantize_words, words_linear

from ..module.module import Module
from ..param.param import Param
from .computed import ComputedWeight
from .swap import inputs_first, map_fields

M = TypeVar("M", bound=Module)


class BlockWeight(ComputedWeight):
    """A matrix in the bytes of its file; ``value`` is made from them whenever it is asked for.

    Products take the rows that are multiplied as integers of 8 bits, as llama.cpp does, but for F16
    and BF16: see ``px.blocks_linear``. On a device without uint8, such as ``Wgpu``, they stay
    floats. The weight is not trained; with adapters beside it (``nn.apply_lora``) the model is.
    ``nn.dequantize_weights`` makes a parameter of it.

    Attributes:
        blocks: uint8, a row for each output; where there is no uint8, int32 of four bytes.
        form: of the blocks, such as ``"Q4_K"``.
        sizes: the shape of the weight.
        axis: that of the inputs.
    """

    hint_for_pytorch: ClassVar = "nn.dequantize_weights(model)"

    blocks: Param
    form: str
    sizes: tuple[int, ...]
    axis: int

    @property
    def source(self) -> Param:
        """The blocks."""
        return self.blocks

    @property
    def value(self) -> Tensor[Float]:
        """The weight."""
        found = self._floats(self._bytes)
        return found if self.axis else found.mT

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``value``."""
        return self.sizes

    @property
    def dtype(self) -> DType:
        """The element type of ``value``."""
        return self.device.default_float

    def rows(self, indices: Tensor[Int]) -> Tensor[Float]:
        """Return rows of a matrix by index, without making the others."""
        if not self.axis:
            return take(self.value, indices, axis=0)
        return self._floats(take(self._bytes, indices, axis=0))

    def linear(self, x: Tensor[Float], bias: Tensor[Float] | None) -> Tensor[Float]:
        """Return ``x @ value + bias``."""
        if self.axis:
            return linear(x, self.value, bias)
        return self._product(x, bias)

    def transposed_linear(self, x: Tensor[Float]) -> Tensor[Float]:
        """Return ``x @ value.mT``."""
        if not self.axis:
            return x @ self.value.mT
        return self._product(x, None)

    def _floats(self, rows: Tensor[Int]) -> Tensor[Float]:
        made = dequantize_words if rows.dtype == int32 else dequantize_blocks
        return made(rows, self.form, dtype=self.dtype)

    def _product(self, x: Tensor[Float], bias: Tensor[Float] | None) -> Tensor[Float]:
        if self.blocks.dtype == int32:
            return words_linear(x, self._bytes, bias, self.form)
        return blocks_linear(x, self._bytes, bias, self.form, rounded=True)

    @property
    def _bytes(self) -> Tensor[Int]:
        value: Tensor[Any] = self.blocks.value
        return value

    def into_param(self) -> Param:
        """Return a parameter of the same identity with the value, to be trained."""
        return Param(self.value.detach(), id=self.blocks.id)


def with_blocks(model: M, forms: dict[str, tuple[str, int]]) -> M:
    """Return the model with matrices in blocks in the place of lazy parameters.

    Args:
        model: any module.
        forms: form of the blocks and bytes of a row, by path.
    """

    def held(path: str, leaf: Any, owner: Module) -> Any:
        if path not in forms or not isinstance(leaf, Param):
            return leaf
        (form, nbytes), axis = forms[path], int(not inputs_first(path, owner))
        device = leaf.device
        kind = uint8 if uint8 in device.dtypes else int32
        place = leaf.shape[1 - axis], nbytes // kind.itemsize
        empty = Param.lazy(
            lambda: zeros(place, dtype=kind, device=device),
            place,
            kind,
            device,
            id=leaf.id,
            trainable=False,
        )
        return BlockWeight(empty, form, leaf.shape, axis)

    return map_fields(model, held)
