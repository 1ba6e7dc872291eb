"""Decoders in the manner of Llama: Llama, Mistral, Qwen, SmolLM, Phi-3, Gemma, by settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phlox_tensor import Backend, Bool, Float, Int, Tensor, rms_norm

from .. import initializers as init
from ..layers.attention import KeyValues
from ..layers.embedding import Embedding
from ..layers.inputs import check_hidden
from ..layers.linear import Linear
from ..layers.position import RotaryEncodingConfig, RotaryScalingConfig
from ..module.module import Module
from ..param.param import Param
from ._causal import Caches, CausalModel, check_length
from ._experts import Gate, LlamaExperts, LlamaMlp
from ._parts import SMALL, ModelConfig, by_table, small_linear, without_heads
from ._views import AnyView, Call, Looks, Rotaries, each_view, turned, view


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
                embed_tokens=Embedding(self.words, d, initializer=SMALL, device=device),
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
        return small_linear(d_input, d_output, device, bias=bias)

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
        self, x: Tensor[Float], cosines: Tensor[Float], sines: Tensor[Float]
    ) -> tuple[Tensor[Float], Tensor[Float], Tensor[Float]]:
        """Map (N, length, d) to queries, keys and values, (N, heads, length, d_head)."""
        query, key, value = self._heads(x)
        if self.q_norm is not None and self.k_norm is not None:
            query, key = self.q_norm(query), self.k_norm(key)
        return turned(query, cosines, sines), turned(key, cosines, sines), value

    def _heads(self, x: Tensor[Float]) -> list[Tensor[Float]]:
        """The same before positions turn them."""
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

    def forward(self, x: Tensor[Float], cache: Any, view: AnyView) -> tuple[Tensor[Float], Any]:
        """Map (N, length, d) to the same shape, and to keys and values of all so far."""
        query, key, value = self.asks(x, view.cosines, view.sines)
        found, seen = self.finds(query, KeyValues(key, value), cache, view)
        return self.gives(x, found), seen

    def asks(
        self, x: Tensor[Float], cosines: Tensor[Float], sines: Tensor[Float]
    ) -> tuple[Tensor[Float], Tensor[Float], Tensor[Float]]:
        """Return queries, keys and values."""
        return self.self_attn(self.input_layernorm(x), cosines, sines)

    def finds(
        self, query: Tensor[Float], new: KeyValues, cache: Any, view: AnyView
    ) -> tuple[Tensor[Float], Any]:
        """Return what queries find, and keys and values of all so far."""
        s = self.self_attn.settings
        return view.found(query, new, cache, {"scale": s.query_scale, "softcap": s.score_cap})

    def gives(self, x: Tensor[Float], found: Tensor[Float]) -> Tensor[Float]:
        """Map x to the same shape by what was found."""
        before, after = self.pre_feedforward_layernorm, self.post_feedforward_layernorm
        found = self.self_attn.o_proj(without_heads(found))
        if before is None or after is None:
            x = x + found
            return x + self.mlp(self.post_attention_layernorm(x))
        x = x + self.post_attention_layernorm(found)
        return x + after(self.mlp(before(x)))


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
        known = 0 if cache is None else cache[0].length
        call = Call(known, known + tokens.shape[-1], padding, positions)
        return self._through(tokens, cache, lambda x, of: view(of, call, x))

    def each(self, tokens: Tensor[Int], caches: Sequence[Caches]) -> tuple[Tensor[Float], Any]:
        """Map a token (N, 1) of each text beside a cache of its own; return the caches too."""
        by_layer = tuple(zip(*caches, strict=True))
        x, kept = self._through(tokens, by_layer, lambda x, of: each_view(of, by_layer[0], x))
        return x, list(zip(*kept, strict=True))

    def _through(self, tokens: Tensor[Int], cache: Any, made: Any) -> tuple[Tensor[Float], Any]:
        """All layers, beside what each is given of the cache and looks at."""
        s = self.settings
        x = self.embed_tokens(tokens)
        x = x if s.embedding_scale == 1.0 else x * s.embedding_scale
        views = {sliding: made(x, self._looks(sliding)) for sliding in set(s.windows)}
        kept = []
        for i, (layer, sliding) in enumerate(zip(self.layers, s.windows, strict=True)):
            x, seen = layer(x, None if cache is None else cache[i], views[sliding])
            kept.append(seen)
        return self.norm(x), tuple(kept)

    def _looks(self, sliding: bool) -> Looks:
        """How layers with a window, or those without, look."""
        s, turned = self.settings, self.rotaries
        if sliding and s.local_theta is not None:
            return Looks(s.window, turned.local, turned.local, None)
        long = s.long_scaling
        limit = None if long is None else long.original_length or 0
        return Looks(s.window if sliding else None, turned.usual, turned.long, limit)


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

    @property
    def windows(self) -> tuple[int | None, ...]:
        """How many positions each layer looks at, the latest; None for all."""
        s = self.settings
        return tuple(s.window if sliding else None for sliding in s.windows)

    @property
    def turn(self) -> int | None:
        """The longest text whose keys are turned as of short ones."""
        long = self.settings.long_scaling
        return None if long is None else long.original_length

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
        return self._logits(x[:, -1:] if last else x), kept

    def extend_each(
        self, tokens: Tensor[Int], caches: Sequence[Caches]
    ) -> tuple[Tensor[Float], list[Caches]]:
        """Map the next token of each text, as ``CausalModel.extend_each``; maps are of all at once.

        Raises:
            ShapeError: for a text longer than the positions.
        """
        check_length(self, 1 + max(cache[0].length for cache in caches))
        x, kept = self.model.each(tokens, caches)
        return self._logits(x), kept

    def _logits(self, x: Tensor[Float]) -> Tensor[Float]:
        logits = by_table(x, self.model.embed_tokens) if self.lm_head is None else self.lm_head(x)
        cap = self.settings.logit_cap
        return logits if cap is None else (logits / cap).tanh() * cap
