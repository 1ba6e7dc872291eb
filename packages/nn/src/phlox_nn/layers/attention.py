"""Attention with heads: over a sequence itself, over another one, and with what was seen before."""

from __future__ import annotations

from math import inf, prod
from typing import Any, ClassVar, NamedTuple

from phlox_tensor import (
    ArgumentError,
    Backend,
    Bool,
    Float,
    Int,
    ShapeError,
    Tensor,
    append,
    arange,
    attention,
    logical_or,
    where,
)

from .. import _signatures as takes
from .. import initializers as init
from ..module.layer import Layer, LayerConfig
from .dropout import Dropout
from .inputs import check_hidden
from .linear import Linear, LinearConfig
from .position import RotaryEncoding, RotaryEncodingConfig


class KeyValues(NamedTuple):
    """Keys and values of all heads: what attention looks at, and the cache of a decoder.

    Attributes:
        keys: (…, heads, length, d_head).
        values: the same.
    """

    keys: Tensor[Float]
    values: Tensor[Float]

    @property
    def length(self) -> int:
        """The number of positions."""
        return self.keys.shape[-2]

    def extended(self, new: KeyValues) -> KeyValues:
        """Return these positions followed by new ones.

        These stay as they are. Where nothing is recorded for a gradient the result has room behind
        it, into which the next call writes in place of a copy (``px.append``).
        """
        keys = append(self.keys, new.keys, axis=-2)
        return KeyValues(keys, append(self.values, new.values, axis=-2))


def causal_mask(
    queries: int, keys: int | None = None, *, device: Backend | str | None = None
) -> Tensor[Bool]:
    """Return (queries, keys), True where a key comes later than the query; the last sees all.

    >>> import phlox_nn as nn
    >>> nn.causal_mask(2).tolist()
    [[False, True], [False, False]]
    """
    keys = queries if keys is None else keys
    return arange(keys, device=device) > arange(keys - queries, keys, device=device)[:, None]


def padding_mask(lengths: Tensor[Int], length: int | None = None) -> Tensor[Bool]:
    """Return (…, length), True past the end of each sequence, whose lengths are given.

    Without a length it is that of the longest, which reads from the device.

    >>> import phlox_nn as nn, phlox_tensor as pt
    >>> nn.padding_mask(pt.asarray([1, 2])).tolist()
    [[False, True], [False, False]]
    """
    if length is None:
        length = int(lengths.max()) if lengths.size else 0
    places = arange(length, dtype=lengths.dtype, device=lengths.device)
    return places >= lengths[..., None]


class MultiHeadAttentionConfig(LayerConfig["MultiHeadAttention"]):
    """Settings of ``MultiHeadAttention``.

    Attributes:
        d_model: size of queries and of the result.
        n_heads: number of heads.
        dropout: probability that a weight of attention is dropped in training.
        bias: whether the linear maps have one.
        n_heads_kv: heads of keys and values, a divisor of ``n_heads``: neighboring query heads
            share one. None for as many as query heads. Ainslie et al., 2023.
        d_head: size of a head; None for d_model / n_heads.
        d_key: size of what keys are made from; None for d_model.
        d_value: size of what values are made from; None for that of keys.
        rotary: turns queries and keys by their position, if given.
        initializer: first values of the weights of queries, keys and values; biases are 0.
        output_bias: whether the map of what is found has one; None for ``bias``.
    """

    d_model: int
    n_heads: int
    dropout: float = 0.0
    bias: bool = True
    n_heads_kv: int | None = None
    d_head: int | None = None
    d_key: int | None = None
    d_value: int | None = None
    rotary: RotaryEncodingConfig | None = None
    initializer: init.Initializer = init.XavierUniform()
    output_bias: bool | None = None

    def validate(self) -> None:
        """Raise ConfigError unless heads divide what they must."""
        heads, shared = self.n_heads, self.n_heads_kv
        self.require("n_heads", heads > 0, "at least 1")
        self.require("dropout", 0.0 <= self.dropout < 1.0, "a probability: 0 <= dropout < 1")
        divides = self.d_head is not None or self.d_model % heads == 0
        self.require("n_heads", divides, f"a divisor of d_model {self.d_model}, or d_head=...")
        fits = shared is None or (shared > 0 and heads % shared == 0)
        self.require("n_heads_kv", fits, f"a divisor of n_heads {heads}")
        size = self.rotary.d_head if self.rotary else self.head
        self.require("rotary", size == self.head, f"RotaryEncodingConfig({self.head})")

    @property
    def head(self) -> int:
        """The size of a head."""
        return self.d_head if self.d_head is not None else self.d_model // self.n_heads

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the four linear maps, dropout and rotation."""
        d_key = self.d_model if self.d_key is None else self.d_key
        d_value = d_key if self.d_value is None else self.d_value
        inner = self.n_heads * self.head
        shared = (self.n_heads_kv or self.n_heads) * self.head
        # As one map, where all are made from the same: so PyTorch draws the first values.
        outputs = inner + 2 * shared if d_key == d_value == self.d_model else None

        def projection(d_input: int, d_output: int) -> Linear:
            fans = init.Fans(d_input, outputs or d_output)
            return Linear.from_fields(
                settings=LinearConfig(d_input, d_output, self.bias, self.initializer),
                weight=self.initializer.param((d_input, d_output), device, fans),
                bias=init.Zeros().param((d_output,), device) if self.bias else None,
            )

        shifted = self.bias if self.output_bias is None else self.output_bias
        output = LinearConfig(inner, self.d_model, shifted).init(device)
        return {
            "query": projection(self.d_model, inner),
            "key": projection(d_key, shared),
            "value": projection(d_value, shared),
            "output": output if output.bias is None else output.replace(bias=_zeros(output)),
            "dropout": Dropout(self.dropout, device=device),
            "rotary": self.rotary.init(device) if self.rotary else None,
        }


def _zeros(layer: Linear) -> Any:
    assert layer.bias is not None
    return init.Zeros().param(layer.bias.shape, layer.bias.device)


class MultiHeadAttention(takes.MultiHeadAttention, Layer[MultiHeadAttentionConfig], init=False):
    """``softmax(q @ k.T / √d) @ v`` of several heads side by side, each over d of the columns.

    ``layer(x)`` looks at the sequence itself, ``layer(x, memory)`` at another one. In pieces:
    ``keys_values`` makes what is looked at, a value that may be kept, and ``attend`` looks;
    ``extend`` does both for the next positions of a sequence.
    Vaswani et al., 2017, https://arxiv.org/abs/1706.03762
    """

    fused_in_pytorch = ("query", "key", "value")
    names_in_pytorch: ClassVar = {"output": "out_proj"}

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    dropout: Dropout
    rotary: RotaryEncoding | None

    def forward(
        self,
        x: Tensor[Float],
        memory: Tensor[Float] | None = None,
        memory_values: Tensor[Float] | None = None,
        *,
        mask: Tensor[Bool] | None = None,
        padding: Tensor[Bool] | None = None,
        bias: Tensor[Float] | None = None,
        is_causal: bool = False,
    ) -> Tensor[Float]:
        """Map queries from (…, Q, d_model) to the same shape.

        Args:
            x: what queries are made from.
            memory: what keys are made from, (…, K, d_key); None for ``x``.
            memory_values: what values are made from, (…, K, d_value); None for ``memory``.
            mask: True where a query may not look; broadcasts to (…, n_heads, Q, K). Beside a batch
                of N, three axes are (1, Q, K) or, as in PyTorch, (N · n_heads, Q, K).
            padding: (…, K), True for keys that nobody looks at.
            bias: added to the scores; of the shapes of a mask.
            is_causal: whether the last query sees all keys, the one before all but one, and so on.

        Raises:
            ShapeError: when ``padding`` does not fit the keys, and for three axes of a mask or a
                bias that could be of examples or of heads.
        """
        seen = self.keys_values(x if memory is None else memory, memory_values)
        return self.attend(x, seen, mask=mask, padding=padding, bias=bias, is_causal=is_causal)

    def keys_values(
        self, memory: Tensor[Float], values: Tensor[Float] | None = None, *, offset: int = 0
    ) -> KeyValues:
        """Return the keys and values of a sequence whose first position is ``offset``."""
        heads = self.settings.n_heads_kv or self.settings.n_heads
        keys = _split(self.key(memory), heads)
        if self.rotary is not None:
            keys = self.rotary(keys, offset)
        return KeyValues(keys, _split(self.value(memory if values is None else values), heads))

    def attend(
        self,
        x: Tensor[Float],
        seen: KeyValues,
        *,
        mask: Tensor[Bool] | None = None,
        padding: Tensor[Bool] | None = None,
        bias: Tensor[Float] | None = None,
        is_causal: bool = False,
        offset: int = 0,
    ) -> Tensor[Float]:
        """Return what queries from (…, Q, d_model), the first at position ``offset``, find."""
        queries = _split(self.query(x), self.settings.n_heads)
        if self.rotary is not None:
            queries = self.rotary(queries, offset)
        added = "bias=mask, which is added to the scores"
        check_hidden("MultiHeadAttention", "mask", mask, added)
        check_hidden("MultiHeadAttention", "padding", padding)
        mask, bias = _of_heads("mask", mask, queries), _of_heads("bias", bias, queries)
        if padding is not None:
            if padding.ndim < 1 or padding.shape[-1] != seen.length:
                raise ShapeError(
                    "MultiHeadAttention",
                    "padding does not fit the keys",
                    got=padding.shape,
                    expected=f"(…, {seen.length})",
                )
            padding = padding[..., None, None, :]
            mask = padding if mask is None else logical_or(mask, padding)
        if self.dropout.training and self.dropout.settings.prob:
            found = self._dropped(queries, seen, mask, bias, is_causal)
        else:
            found = attention(queries, seen.keys, seen.values, mask, bias, is_causal=is_causal)
        columns = found.swapaxes(-3, -2)
        return self.output(columns.reshape(*columns.shape[:-2], prod(columns.shape[-2:])))

    def extend(
        self,
        x: Tensor[Float],
        cache: KeyValues | None = None,
        *,
        mask: Tensor[Bool] | None = None,
        padding: Tensor[Bool] | None = None,
        bias: Tensor[Float] | None = None,
    ) -> tuple[Tensor[Float], KeyValues]:
        """Attend causally from the next positions to all so far; return the cache with them too.

        Masks as in ``forward``, of the next positions as queries and all so far as keys.
        """
        offset = 0 if cache is None else cache.length
        new = self.keys_values(x, offset=offset)
        seen = new if cache is None else cache.extended(new)
        found = self.attend(
            x, seen, mask=mask, padding=padding, bias=bias, is_causal=True, offset=offset
        )
        return found, seen

    def _dropped(
        self,
        queries: Tensor[Float],
        seen: KeyValues,
        mask: Tensor[Bool] | None,
        bias: Tensor[Float] | None,
        is_causal: bool,
    ) -> Tensor[Float]:
        """Attention whose weights are dropped, for which they have to be there."""
        shared = queries.shape[-3] // seen.keys.shape[-3]
        keys, values = (x if shared == 1 else x.repeat(shared, axis=-3) for x in seen)
        scores = (queries @ keys.mT) * queries.shape[-1] ** -0.5
        if is_causal:
            later = causal_mask(queries.shape[-2], keys.shape[-2], device=queries.device)
            mask = later if mask is None else logical_or(mask, later)
        if mask is not None:
            scores = where(mask, -inf, scores)
        weights = (scores if bias is None else scores + bias).softmax(axis=-1)
        return self.dropout(weights) @ values


def _of_heads(what: str, given: Any, queries: Tensor[Float]) -> Any:
    """Give what has three axes beside a batch an axis of heads; PyTorch has both in one."""
    if given is None or given.ndim != 3 or queries.ndim != 4 or given.shape[0] == 1:
        return given
    count, heads = queries.shape[:2]
    if given.shape[0] == count * heads:
        return given.reshape(count, heads, *given.shape[1:])
    raise ShapeError(
        "MultiHeadAttention",
        f"the first axis of the {what} could be that of examples or of heads",
        got=given.shape,
        expected=f"({count}, 1, Q, K), (1, {heads}, Q, K) or ({count * heads}, Q, K)",
        hint=f"{what}[:, None] for one of each example, {what}[None] for one of each head",
    )


def check_caches(stack: Any, caches: Any, kind: type, source: str) -> None:
    """Refuse what is not one cache for each layer of a stack."""
    count = len(stack.layers)
    each = caches if type(caches) in (tuple, list) else ()
    if len(each) == count and all(isinstance(one, kind) for one in each):
        return
    raise ArgumentError(
        type(stack).__name__,
        "these are not the caches of its layers",
        got=f"{len(each)} of {kind.__name__}" if each else type(caches).__name__,
        expected=f"{count} of {kind.__name__}, a tuple",
        hint=f"cache = {source}",
    )


def _split(x: Tensor[Float], heads: int) -> Tensor[Float]:
    """(…, length, heads · d_head) as (…, heads, length, d_head)."""
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads).swapaxes(-3, -2)
