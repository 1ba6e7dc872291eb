"""Decoders in the manner of Llama: Llama, Mistral, Qwen, SmolLM, Phi-3, Gemma, by settings."""

from __future__ import annotations

from typing import Any, NamedTuple

from phlox_tensor import (
    Backend,
    Bool,
    Float,
    Int,
    Tensor,
    arange,
    attention,
    concat,
    rms_norm,
    take,
)

from .. import initializers as init
from ..layers.attention import KeyValues
from ..layers.embedding import Embedding
from ..layers.inputs import check_hidden
from ..layers.linear import Linear, LinearConfig
from ..layers.position import RotaryEncodingConfig, RotaryScalingConfig, turns
from ..module.module import Module
from ..param.param import Param
from ._causal import Caches, CausalModel, check_length
from ._experts import Gate, LlamaExperts, LlamaMlp
from ._parts import ModelConfig, by_table, without_heads

_SMALL = init.Normal(std=0.02)


class LlamaConfig(ModelConfig):
    """Settings of ``Llama``; the defaults are those of Llama 2 with 7 billion parameters.

    Attributes:
        words: number of tokens.
        positions: the longest text.
        d_model: size of a vector.
        n_layers: number of layers.
        n_heads: heads of queries.
        n_heads_kv: heads of keys and values, a divisor; None for as many as of queries.
        d_head: size of a head; None for d_model / n_heads.
        d_ff: size between the maps of a layer.
        epsilon: of the norms.
        theta: base of the rates by which queries and keys are turned.
        scaling: slows the rates down for long texts.
        long_scaling: the same, in the place of ``scaling``, for texts longer than its
            ``original_length``: Phi-3.
        rotary_share: share of the columns of a head that are turned.
        bias: whether the maps of queries, keys and values have one: Qwen 2.
        output_bias: whether the map of what is found has one.
        d_ff_bias: whether the maps after attention have one.
        head_norms: whether queries and keys are normalized: Qwen 3, Gemma 3.
        fused: whether queries, keys and values come from one map, and both of the gate: Phi-3.
        activation: of the gate.
        window: how many tokens a layer looks at, the last one included; None for all: Mistral.
        sliding: which layers have that window; None for all of them: Gemma 2 and 3.
        local_theta: the base in the layers with a window, without scaling: Gemma 3.
        tied: whether the table of tokens is the last map too.
        from_one: whether norms multiply by 1 + weight: Gemma.
        both_norms: whether there are norms after attention and after the maps too: Gemma 2 and 3.
        embedding_scale: what vectors of tokens are multiplied by: √d_model in Gemma.
        query_scale: what scores are multiplied by; None for 1 / √d_head.
        score_cap: scores s become cap · tanh(s / cap): Gemma 2.
        logit_cap: the same for logits.
        experts: how many maps there are of which a token takes some: Mixtral, Qwen-MoE.
        chosen: how many it takes.
        normalized: whether the shares of those are divided by their sum.
        expert_layers: which layers have experts; None for all.
        d_expert: size between the maps of an expert; None for d_ff.
        d_shared: the same of one that all tokens take; None for none.
    """

    words: int = 32000
    positions: int = 4096
    d_model: int = 4096
    n_layers: int = 32
    n_heads: int = 32
    n_heads_kv: int | None = None
    d_head: int | None = None
    d_ff: int = 11008
    epsilon: float = 1e-5
    theta: float = 10000.0
    scaling: RotaryScalingConfig | None = None
    long_scaling: RotaryScalingConfig | None = None
    rotary_share: float = 1.0
    bias: bool = False
    output_bias: bool = False
    d_ff_bias: bool = False
    head_norms: bool = False
    fused: bool = False
    activation: Gate = "silu"
    window: int | None = None
    sliding: tuple[bool, ...] | None = None
    local_theta: float | None = None
    tied: bool = False
    from_one: bool = False
    both_norms: bool = False
    embedding_scale: float = 1.0
    query_scale: float | None = None
    score_cap: float | None = None
    logit_cap: float | None = None
    experts: int = 0
    chosen: int = 2
    normalized: bool = True
    expert_layers: tuple[bool, ...] | None = None
    d_expert: int | None = None
    d_shared: int | None = None

    def validate(self) -> None:
        """Raise ConfigError for heads that divide nothing, and windows of other layers."""
        heads, shared = self.n_heads, self.n_heads_kv
        divides = heads > 0 and (self.d_head is not None or self.d_model % heads == 0)
        self.require("n_heads", divides, f"a divisor of d_model {self.d_model}, or d_head=...")
        fits = shared is None or (shared > 0 and heads % shared == 0)
        self.require("n_heads_kv", fits, f"a divisor of n_heads {heads}")
        turned = self.head * self.rotary_share
        even = 0 < self.rotary_share <= 1 and int(turned) % 2 == 0
        self.require("rotary_share", even, "a share of an even number of columns")
        self.require("window", self.window is None or self.window > 0, "at least 1, or None")
        known = self.sliding is None or len(self.sliding) == self.n_layers
        self.require("sliding", known, f"one for each of {self.n_layers} layers")
        known = self.expert_layers is None or len(self.expert_layers) == self.n_layers
        self.require("expert_layers", known, f"one for each of {self.n_layers} layers")
        few = 0 < self.chosen <= (self.experts or self.chosen)
        self.require("chosen", few, f"1 to {self.experts}")
        limit = self.long_scaling is None or self.long_scaling.original_length is not None
        self.require("long_scaling", limit, "one with original_length")

    @property
    def head(self) -> int:
        """The size of a head."""
        return self.d_head if self.d_head is not None else self.d_model // self.n_heads

    @property
    def windows(self) -> tuple[bool, ...]:
        """Which layers have a window."""
        if self.window is None:
            return (False,) * self.n_layers
        return self.sliding or (True,) * self.n_layers

    def init(self, device: Backend | str | None = None) -> Llama:
        """Return the decoder with lazy parameters."""
        d = self.d_model
        return Llama(
            model=LlamaBody(
                embed_tokens=Embedding(self.words, d, initializer=_SMALL, device=device),
                layers=tuple(self._layer(i, device) for i in range(self.n_layers)),
                norm=self._norm(d, device),
                rotaries=self._rotaries(),
                settings=self,
            ),
            lm_head=None if self.tied else self._linear(d, self.words, False, device),
            settings=self,
        )

    def _rotaries(self) -> Rotaries:
        """How layers turn queries and keys: those that see all, in long texts, with a window."""
        theta, local = self.theta, self.local_theta
        size = int(self.head * self.rotary_share)
        usual = RotaryEncodingConfig(size, theta, False, self.scaling)
        return Rotaries(
            usual,
            usual if self.long_scaling is None else usual.replace(scaling=self.long_scaling),
            usual if local is None else RotaryEncodingConfig(size, local, False),
        )

    def _linear(
        self, d_input: int, d_output: int, bias: bool, device: Backend | str | None
    ) -> Linear:
        made = LinearConfig(d_input, d_output, bias, initializer=_SMALL).init(device)
        return made.replace(bias=init.Zeros().param((d_output,), device)) if bias else made

    def _norm(self, size: int, device: Backend | str | None) -> LlamaNorm:
        start = init.Zeros() if self.from_one else init.Ones()
        return LlamaNorm(start.param((size,), device), self.epsilon, self.from_one)

    def _layer(self, layer: int, device: Backend | str | None) -> LlamaLayer:
        d, after = self.d_model, self.both_norms
        return LlamaLayer(
            self_attn=self._attention(device),
            mlp=self._maps(layer, device),
            input_layernorm=self._norm(d, device),
            post_attention_layernorm=self._norm(d, device),
            pre_feedforward_layernorm=self._norm(d, device) if after else None,
            post_feedforward_layernorm=self._norm(d, device) if after else None,
        )

    def _attention(self, device: Backend | str | None) -> LlamaAttention:
        d, head, bias = self.d_model, self.head, self.bias
        inner, shared = self.n_heads * head, (self.n_heads_kv or self.n_heads) * head
        all_three = inner + 2 * shared

        def one_of_three(size: int) -> Linear | None:
            return None if self.fused else self._linear(d, size, bias, device)

        return LlamaAttention(
            q_proj=one_of_three(inner),
            k_proj=one_of_three(shared),
            v_proj=one_of_three(shared),
            qkv_proj=self._linear(d, all_three, bias, device) if self.fused else None,
            o_proj=self._linear(inner, d, self.output_bias, device),
            q_norm=self._norm(head, device) if self.head_norms else None,
            k_norm=self._norm(head, device) if self.head_norms else None,
            settings=self,
        )

    def _maps(self, layer: int, device: Backend | str | None) -> LlamaMlp | LlamaExperts:
        if self.experts and (self.expert_layers is None or self.expert_layers[layer]):
            return self._experts(device)
        return self._mlp(self.d_ff, device)

    def _mlp(self, wide: int, device: Backend | str | None) -> LlamaMlp:
        d, bias = self.d_model, self.d_ff_bias
        return LlamaMlp(
            gate_proj=None if self.fused else self._linear(d, wide, bias, device),
            up_proj=None if self.fused else self._linear(d, wide, bias, device),
            gate_up_proj=self._linear(d, 2 * wide, bias, device) if self.fused else None,
            down_proj=self._linear(wide, d, bias, device),
            activation=self.activation,
        )

    def _experts(self, device: Backend | str | None) -> LlamaExperts:
        d, wide, shared = self.d_model, self.d_expert or self.d_ff, self.d_shared
        return LlamaExperts(
            gate=self._linear(d, self.experts, False, device),
            experts=tuple(self._mlp(wide, device) for _ in range(self.experts)),
            shared_expert=self._mlp(shared, device) if shared else None,
            shared_expert_gate=self._linear(d, 1, False, device) if shared else None,
            chosen=self.chosen,
            normalized=self.normalized,
        )


class Rotaries(NamedTuple):
    """How queries and keys are turned: in layers that see all, in long texts, with a window."""

    usual: RotaryEncodingConfig
    long: RotaryEncodingConfig
    local: RotaryEncodingConfig


class View(NamedTuple):
    """What the layers of one kind look at in a call.

    Attributes:
        cosines: (length, columns), by which queries and keys are multiplied.
        sines: the same, of the other half of the columns, negative in the first.
        first: the first key that a query may look at.
        hidden: which keys from there on are hidden; None for those that come later alone.
        is_causal: whether the last query sees all keys, the one before all but one, and so on.
    """

    cosines: Tensor[Float]
    sines: Tensor[Float]
    first: int
    hidden: Tensor[Bool] | None
    is_causal: bool

    def turned(self, x: Tensor[Float]) -> Tensor[Float]:
        """Turn column i with column i + half, and leave those behind as they are."""
        size = self.cosines.shape[-1]
        half = size // 2
        pairs = x if size == x.shape[-1] else x[..., :size]
        swapped = concat((pairs[..., half:], pairs[..., :half]), axis=-1)
        found = pairs * self.cosines + swapped * self.sines
        return found if size == x.shape[-1] else concat((found, x[..., size:]), axis=-1)


class LlamaNorm(Module):
    """Division of rows by their root mean square, times a weight."""

    weight: Param
    epsilon: float
    from_one: bool

    def forward(self, x: Tensor[Float]) -> Tensor[Float]:
        """Map (…, d) to the same shape."""
        weight = self.weight.value
        return rms_norm(x, weight + 1.0 if self.from_one else weight, self.epsilon)


class LlamaAttention(Module):
    """Heads that look at what came before; neighboring heads of queries may share keys."""

    q_proj: Linear | None
    k_proj: Linear | None
    v_proj: Linear | None
    qkv_proj: Linear | None
    o_proj: Linear
    q_norm: LlamaNorm | None
    k_norm: LlamaNorm | None
    settings: LlamaConfig

    def forward(
        self, x: Tensor[Float], cache: KeyValues | None, view: View
    ) -> tuple[Tensor[Float], KeyValues]:
        """Map (N, length, d) to the same shape, and to keys and values of all so far."""
        s = self.settings
        query, key, value = self._heads(x)
        if self.q_norm is not None and self.k_norm is not None:
            query, key = self.q_norm(query), self.k_norm(key)
        new = KeyValues(view.turned(key), value)
        seen = new if cache is None else cache.extended(new)
        keys, values = seen.keys, seen.values
        if view.first:
            keys, values = keys[..., view.first :, :], values[..., view.first :, :]
        found = attention(
            view.turned(query),
            keys,
            values,
            view.hidden,
            scale=s.query_scale,
            softcap=s.score_cap,
            is_causal=view.is_causal,
        )
        return self.o_proj(without_heads(found)), seen

    def _heads(self, x: Tensor[Float]) -> list[Tensor[Float]]:
        """Queries, keys and values, (N, heads, length, d_head)."""
        s = self.settings
        heads = (s.n_heads, s.n_heads_kv or s.n_heads, s.n_heads_kv or s.n_heads)
        if self.qkv_proj is None:
            maps: Any = self.q_proj, self.k_proj, self.v_proj
            parts = [each(x) for each in maps]
        else:
            together, parts, at = self.qkv_proj(x), [], 0
            for count in heads:
                parts.append(together[..., at : at + count * s.head])
                at += count * s.head
        n, length = x.shape[:2]
        return [
            part.reshape(n, length, count, s.head).swapaxes(1, 2)
            for part, count in zip(parts, heads, strict=True)
        ]


class LlamaLayer(Module):
    """Attention and maps, each after a norm and added to its input; in Gemma normalized again."""

    self_attn: LlamaAttention
    mlp: LlamaMlp | LlamaExperts
    input_layernorm: LlamaNorm
    post_attention_layernorm: LlamaNorm
    pre_feedforward_layernorm: LlamaNorm | None
    post_feedforward_layernorm: LlamaNorm | None

    def forward(
        self, x: Tensor[Float], cache: KeyValues | None, view: View
    ) -> tuple[Tensor[Float], KeyValues]:
        """Map (N, length, d) to the same shape, and to keys and values of all so far."""
        before, after = self.pre_feedforward_layernorm, self.post_feedforward_layernorm
        found, seen = self.self_attn(self.input_layernorm(x), cache, view)
        if before is None or after is None:
            x = x + found
            return x + self.mlp(self.post_attention_layernorm(x)), seen
        x = x + self.post_attention_layernorm(found)
        return x + after(self.mlp(before(x))), seen


class LlamaBody(Module):
    """Vectors of tokens, layers, and a norm."""

    embed_tokens: Embedding
    layers: tuple[LlamaLayer, ...]
    norm: LlamaNorm
    rotaries: Rotaries
    settings: LlamaConfig

    def forward(
        self,
        tokens: Tensor[Int],
        cache: Caches | None,
        padding: Tensor[Bool] | None,
        positions: Tensor[Int] | None,
    ) -> tuple[Tensor[Float], Caches]:
        """Map tokens (N, length) to vectors (N, length, d_model), and to what is kept."""
        s = self.settings
        x = self.embed_tokens(tokens)
        x = x if s.embedding_scale == 1.0 else x * s.embedding_scale
        known = 0 if cache is None else cache[0].length
        views = {
            sliding: self._view(x, known, padding, positions, sliding) for sliding in set(s.windows)
        }
        kept = []
        for i, (layer, sliding) in enumerate(zip(self.layers, s.windows, strict=True)):
            x, seen = layer(x, None if cache is None else cache[i], views[sliding])
            kept.append(seen)
        return self.norm(x), tuple(kept)

    def _view(
        self,
        x: Tensor[Float],
        known: int,
        padding: Tensor[Bool] | None,
        positions: Tensor[Int] | None,
        sliding: bool,
    ) -> View:
        """What layers with a window, or those without, look at."""
        window = self.settings.window if sliding else None
        end, first, hidden = known + x.shape[-2], 0, None
        if positions is not None:
            end = known
            keys, queries = arange(end, dtype=positions.dtype, device=x.device), positions[:, None]
            hidden = keys > queries
            if window is not None:
                hidden = hidden | (keys <= queries - window)
        elif window is not None:
            first = max(known + 1 - window, 0)
            if end - first > window:
                queries = arange(known, end, device=x.device)[:, None]
                hidden = arange(first, end, device=x.device) <= queries - window
        if padding is not None:
            filled = padding[:, None, None, first:]
            hidden = filled if hidden is None else hidden | filled
        cosines, sines = self._turns(x, known, end, positions, sliding)
        return View(cosines, sines, first, hidden, positions is None)

    def _turns(
        self, x: Tensor[Float], known: int, end: int, positions: Tensor[Int] | None, sliding: bool
    ) -> tuple[Tensor[Float], Tensor[Float]]:
        """Cosines and sines (length, columns) of the next positions."""
        long = self.settings.long_scaling
        is_long = long is not None and end > (long.original_length or 0)
        usual = self.rotaries.long if is_long else self.rotaries.usual
        rotary = self.rotaries.local if sliding and self.settings.local_theta else usual
        first, length = (known, end - known) if positions is None else (0, end)
        sines, cosines = turns(x, rotary, first, length)
        if positions is not None:
            sines, cosines = take(sines, positions, axis=0), take(cosines, positions, axis=0)
        return concat((cosines, cosines), axis=-1), concat((-sines, sines), axis=-1)


class Llama(CausalModel):
    """A transformer that goes on with a text. Touvron et al., 2023 (arXiv 2302.13971).

    By its settings it is a Llama 1 to 3, Mistral (arXiv 2310.06825), Qwen 2 or 3, SmolLM, Phi-3 or
    Gemma 1 to 3. Parameters have the names of the published files; ``nn.models.load`` makes one
    from the folder of such files.

    Example:
        >>> from phlox_nn import models
        >>> models.LlamaConfig().init().num_params()
        6738415616
    """

    model: LlamaBody
    lm_head: Linear | None
    settings: LlamaConfig

    @property
    def context(self) -> int:
        """The most tokens that a text may have."""
        return self.settings.positions

    @property
    def words(self) -> int:
        """The number of tokens."""
        return self.settings.words

    def extend(
        self,
        tokens: Tensor[Int],
        cache: Caches | None = None,
        *,
        padding: Tensor[Bool] | None = None,
        positions: Tensor[Int] | None = None,
        last: bool = False,
    ) -> tuple[Tensor[Float], Caches]:
        """Map the next tokens to logits, as ``CausalModel.extend``.

        Raises:
            ShapeError: for a text longer than the positions.
            KindError: for a padding of numbers.
        """
        check_hidden("Llama", "padding", padding)
        known = 0 if cache is None else cache[0].length
        end = known + (tokens.shape[-1] if positions is None else 0)
        check_length(self, end)
        x, kept = self.model(tokens, cache, padding, positions)
        x = x[:, -1:] if last else x
        logits = by_table(x, self.model.embed_tokens) if self.lm_head is None else self.lm_head(x)
        cap = self.settings.logit_cap
        return logits if cap is None else (logits / cap).tanh() * cap, kept
