"""Transformer encoders, whole or a few positions at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from phlox_tensor import Backend, Bool, Float, Tensor

from .. import _signatures as takes
from ..module.layer import L, Layer, LayerConfig
from .activation import Activation, ActivationConfig, Name
from .affine import Norm
from .attention import KeyValues, MultiHeadAttention, MultiHeadAttentionConfig, check_caches
from .dropout import Dropout
from .linear import Linear, LinearConfig
from .norm import LayerNorm, LayerNormConfig, RmsNorm, RmsNormConfig
from .position import RotaryEncodingConfig

B = TypeVar("B", bound="BlockConfig[Any]")


class FeedForwardConfig(LayerConfig["FeedForward"]):
    """Settings of ``FeedForward``.

    Attributes:
        d_model: size of the last axis.
        d_ff: size in between.
        dropout: probability that a value in between is dropped in training.
        activation: what stands in between.
        bias: whether the linear maps have one.
        gated: whether what the activation gives is multiplied with a third map of the row; with
            ``"silu"`` as in Llama. Shazeer, 2020.
    """

    d_model: int
    d_ff: int = 2048
    dropout: float = 0.1
    activation: Name = "relu"
    bias: bool = True
    gated: bool = False

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the linear maps and what is between them."""
        inner = LinearConfig(self.d_model, self.d_ff, self.bias)
        return {
            "linear1": inner.init(device),
            "activation": ActivationConfig(self.activation).init(device),
            "dropout": Dropout(self.dropout, device=device),
            "linear2": LinearConfig(self.d_ff, self.d_model, self.bias).init(device),
            "factor": inner.init(device) if self.gated else None,
        }


class FeedForward(takes.FeedForward, Layer[FeedForwardConfig], init=False):
    """Two linear maps of each row with an activation between: ``linear2(f(linear1(x)))``.

    Vaswani et al., 2017, https://arxiv.org/abs/1706.03762
    """

    linear1: Linear
    activation: Activation
    dropout: Dropout
    linear2: Linear
    factor: Linear | None

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d_model) to the same shape."""
        inner = self.activation(self.linear1(x))
        if self.factor is not None:
            inner = inner * self.factor(x)
        return self.linear2(self.dropout(inner))


class BlockConfig(LayerConfig[L]):
    """What the configs of encoder and decoder layers have in common.

    Attributes:
        d_model: size of the last axis.
        n_heads: number of heads.
        d_ff: size between the two linear maps.
        dropout: probability of dropping, in attention, between the maps and after each part.
        activation: what stands between the maps.
        norm_first: whether norms stand before attention and maps instead of after the sums.
        epsilon: of the norms.
        bias: whether linear maps and norms have one.
        n_heads_kv: heads that keys and values of the sequence itself have; None for ``n_heads``.
        rotary: turns queries and keys of the sequence itself by their position, if given.
        norm: which norm; ``"rms"`` has no shift.
        gated: whether the maps have a third one as a factor, as in ``FeedForward``.
    """

    d_model: int
    n_heads: int
    d_ff: int = 2048
    dropout: float = 0.1
    activation: Name = "relu"
    norm_first: bool = False
    epsilon: float = 1e-5
    bias: bool = True


class StackConfig(LayerConfig[L], Generic[L, B]):
    """What the configs of encoders and decoders have in common.

    Attributes:
        layer: settings of each layer.
        n_layers: number of layers.
        final_norm: whether a norm follows the last layer, as ``norm_first`` wants it.
    """

    layer: B
    n_layers: int
    final_norm: bool = False

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return layers and norm."""
        *_, norm = inside_of(self.layer)
        return {
            "layers": tuple(self.layer.init(device) for _ in range(self.n_layers)),
            "norm": norm.init(device) if self.final_norm else None,
        }


class TransformerEncoderLayerConfig(BlockConfig["TransformerEncoderLayer"]):
    """Settings of ``TransformerEncoderLayer``."""

    n_heads_kv: int | None = None
    rotary: RotaryEncodingConfig | None = None
    norm: Norm = "layer"
    gated: bool = False

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return attention, maps, norms and dropout."""
        attention, maps, norm = inside_of(self)
        return {
            "self_attention": to_itself(self, attention).init(device),
            "norm1": norm.init(device),
            "feed_forward": maps.init(device),
            "norm2": norm.init(device),
            "dropout": Dropout(self.dropout, device=device),
        }


class TransformerEncoderLayer(
    takes.TransformerEncoderLayer, Layer[TransformerEncoderLayerConfig], init=False
):
    """Attention to the sequence itself, then a map of each row; both are added to their input.

    Vaswani et al., 2017 (https://arxiv.org/abs/1706.03762); with ``norm_first`` Xiong et al., 2020.
    """

    names_in_pytorch: ClassVar = {
        "feed_forward.linear1": "linear1",
        "feed_forward.linear2": "linear2",
        "self_attention": "self_attn",
    }

    self_attention: MultiHeadAttention
    norm1: LayerNorm | RmsNorm
    feed_forward: FeedForward
    norm2: LayerNorm | RmsNorm
    dropout: Dropout

    def forward(
        self,
        x: Tensor[Float],
        *,
        mask: Tensor[Bool] | None = None,
        padding: Tensor[Bool] | None = None,
        bias: Tensor[Float] | None = None,
        is_causal: bool = False,
    ) -> Tensor[Float]:
        """Map (…, length, d_model) to the same shape; masks as in ``MultiHeadAttention``."""
        inside = self.norm1(x) if self.settings.norm_first else x
        found = self.self_attention(
            inside, mask=mask, padding=padding, bias=bias, is_causal=is_causal
        )
        return self._rest(x, found)

    def extend(
        self,
        x: Tensor[Float],
        cache: KeyValues | None = None,
        *,
        mask: Tensor[Bool] | None = None,
        padding: Tensor[Bool] | None = None,
        bias: Tensor[Float] | None = None,
    ) -> tuple[Tensor[Float], KeyValues]:
        """Map the next positions, which see all so far; return the cache with them too.

        Masks as in ``MultiHeadAttention.extend``.
        """
        inside = self.norm1(x) if self.settings.norm_first else x
        found, cache = self.self_attention.extend(
            inside, cache, mask=mask, padding=padding, bias=bias
        )
        return self._rest(x, found), cache

    def _rest(self, x: Tensor[Float], found: Tensor[Float]) -> Tensor[Float]:
        """All that follows attention."""
        x = x + self.dropout(found)
        if self.settings.norm_first:
            return x + self.dropout(self.feed_forward(self.norm2(x)))
        x = self.norm1(x)
        return self.norm2(x + self.dropout(self.feed_forward(x)))


class TransformerEncoderConfig(StackConfig["TransformerEncoder", TransformerEncoderLayerConfig]):
    """Settings of ``TransformerEncoder``."""


class TransformerEncoder(Layer[TransformerEncoderConfig]):
    """Encoder layers one after the other; causal, it is a decoder without memory, as in GPT."""

    layers: tuple[TransformerEncoderLayer, ...]
    norm: LayerNorm | RmsNorm | None

    # The constructor, generated by tools/gen.py from TransformerEncoderConfig; do not edit.
    if TYPE_CHECKING:

        def __init__(
            self,
            layer: TransformerEncoderLayerConfig,
            n_layers: int,
            final_norm: bool = False,
            *,
            device: Backend | str | None = None,
        ) -> None: ...

    def forward(
        self,
        x: Tensor[Float],
        *,
        mask: Tensor[Bool] | None = None,
        padding: Tensor[Bool] | None = None,
        bias: Tensor[Float] | None = None,
        is_causal: bool = False,
    ) -> Tensor[Float]:
        """Map (…, length, d_model) to the same shape; masks as in ``MultiHeadAttention``."""
        for layer in self.layers:
            x = layer(x, mask=mask, padding=padding, bias=bias, is_causal=is_causal)
        return x if self.norm is None else self.norm(x)

    def extend(
        self,
        x: Tensor[Float],
        cache: tuple[KeyValues, ...] | None = None,
        *,
        mask: Tensor[Bool] | None = None,
        padding: Tensor[Bool] | None = None,
        bias: Tensor[Float] | None = None,
    ) -> tuple[Tensor[Float], tuple[KeyValues, ...]]:
        """Map the next positions, which see all so far; return the caches of all layers.

        Masks as in ``MultiHeadAttention.extend``.
        """
        if cache is not None:
            check_caches(self, cache, KeyValues, "None, or what extend gave before")
        kept: list[KeyValues] = []
        for i, layer in enumerate(self.layers):
            known = None if cache is None else cache[i]
            x, seen = layer.extend(x, known, mask=mask, padding=padding, bias=bias)
            kept.append(seen)
        return (x if self.norm is None else self.norm(x)), tuple(kept)


def inside_of(
    layer: Any,
) -> tuple[MultiHeadAttentionConfig, FeedForwardConfig, LayerNormConfig | RmsNormConfig]:
    """What layers of both kinds are made of: attention, maps, norms."""
    size, bias = layer.d_model, layer.bias
    rms = layer.norm == "rms"
    return (
        MultiHeadAttentionConfig(size, layer.n_heads, layer.dropout, bias),
        FeedForwardConfig(size, layer.d_ff, layer.dropout, layer.activation, bias, layer.gated),
        RmsNormConfig(size, layer.epsilon)
        if rms
        else LayerNormConfig(size, layer.epsilon, bias=bias),
    )


def to_itself(layer: Any, attention: MultiHeadAttentionConfig) -> MultiHeadAttentionConfig:
    """Attention of a layer to the sequence that it maps."""
    return attention.replace(n_heads_kv=layer.n_heads_kv, rotary=layer.rotary)
