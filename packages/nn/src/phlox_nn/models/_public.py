"""Settings of models out of ``config.json``, as published folders have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, floor, log, sqrt, tau
from typing import Any, Final

from phlox_tensor import RecordError

from ..layers.position import RotaryScalingConfig
from ._bert import BertConfig
from ._gpt import GptConfig
from ._llama import LlamaConfig
from ._published import Json, Published, need, number, word

_Own = Callable[[Json, "LlamaConfig"], dict[str, Any]]

_ACTIVATIONS: Final = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
_TANH: Final = dict.fromkeys(("gelu_new", "gelu_pytorch_tanh"), "gelu_tanh")
# What published files leave out where it is this.
_EPSILON: Final = 1e-6
_THETA: Final = 10000.0


def _common(given: Json, *, part: bool) -> LlamaConfig:
    heads, d_model = need(given, "num_attention_heads"), need(given, "hidden_size")
    act = given.get("hidden_activation") or given.get("hidden_act") or "silu"
    config = LlamaConfig(
        words=need(given, "vocab_size"),
        positions=given.get("max_position_embeddings", 2048),
        d_model=d_model,
        n_layers=need(given, "num_hidden_layers"),
        n_heads=heads,
        n_heads_kv=given.get("num_key_value_heads"),
        d_head=given.get("head_dim"),
        d_ff=need(given, "intermediate_size"),
        epsilon=given.get("rms_norm_eps", _EPSILON),
        bias=bool(given.get("attention_bias")),
        output_bias=bool(given.get("attention_bias")),
        d_ff_bias=bool(given.get("mlp_bias")),
        activation=word("hidden_act", act, _ACTIVATIONS),
        tied=bool(given.get("tie_word_embeddings", False)),
    )
    said = _turning(given)
    share = said.get("partial_rotary_factor", given.get("partial_rotary_factor"))
    share = float(share) if part and share is not None else 1.0  # others say one and turn all
    return config.replace(**_rotary(given, said, config.head, share))


def _turning(given: Json) -> Json:
    """What is said of rotation, of layers that see all where there are others."""
    said: Json = given.get("rope_parameters") or given.get("rope_scaling") or {}
    return said.get("full_attention", said)


def _rotary(given: Json, said: Json, head: int, share: float) -> dict[str, Any]:
    """Base, share and scaling of rotation."""
    theta = float(said.get("rope_theta", given.get("rope_theta", _THETA)))
    found = {"theta": theta, "rotary_share": share}
    kind = said.get("rope_type", said.get("type", "default"))
    scaled = word("rope_type", kind, _SCALED)
    return {**found, **scaled(given, said, int(head * share) // 2)}


def _llama3(given: Json, said: Json, pairs: int) -> dict[str, Any]:
    before = int(number(said, "original_max_position_embeddings"))
    low, high = number(said, "low_freq_factor"), number(said, "high_freq_factor")
    return {"scaling": RotaryScalingConfig(number(said, "factor"), before, low, high)}


def _long_rope(given: Json, said: Json, pairs: int) -> dict[str, Any]:
    """Factors of each rate, for short texts and for long ones. Ding et al., 2024."""
    most = given.get("max_position_embeddings", 4096)
    before = said.get("original_max_position_embeddings")
    before = int(before or given.get("original_max_position_embeddings") or most)
    factor = float(said.get("factor") or most / before)
    amplitude = said.get("attention_factor")
    if amplitude is None:
        amplitude = 1.0 if factor <= 1.0 else sqrt(1.0 + log(factor) / log(before))
    both = []
    for name in ("short_factor", "long_factor"):
        factors = tuple(map(float, need(said, name)))
        if len(factors) != pairs:
            raise RecordError("load", name, got=len(factors), expected=f"{pairs} factors")
        both.append(RotaryScalingConfig(1.0, before, factors=factors, amplitude=float(amplitude)))
    return {"scaling": both[0], "long_scaling": both[1]}


def _yarn(given: Json, said: Json, pairs: int) -> dict[str, Any]:
    """Rates that turn often stay, slow ones are divided. Peng et al., 2023 (arXiv 2309.00071)."""
    factor, before = number(said, "factor"), number(said, "original_max_position_embeddings")
    theta = number(said if "rope_theta" in said else given, "rope_theta")

    def bound(name: str, usual: float) -> float:
        turns = number(said, name) if said.get(name) else usual
        return pairs * log(before / (turns * tau)) / log(theta)

    def amplitude(scale: float) -> float:
        return 0.1 * scale * log(factor) + 1.0 if factor > 1.0 else 1.0

    low, high = bound("beta_fast", 32.0), bound("beta_slow", 1.0)
    if said.get("truncate", True):
        low, high = floor(low), ceil(high)
    low, high = max(low, 0), min(high, 2 * pairs - 1)
    high = high if high != low else high + 0.001
    slowed = [min(max((i - low) / (high - low), 0.0), 1.0) for i in range(pairs)]
    factors = tuple(1.0 / (part / factor + 1.0 - part) for part in slowed)
    made, one, other = (said.get(n) for n in ("attention_factor", "mscale", "mscale_all_dim"))
    if made is None:
        made = amplitude(one) / amplitude(other) if one and other else amplitude(1.0)
    return {"scaling": RotaryScalingConfig(1.0, factors=factors, amplitude=float(made))}


_SCALED: Final[Mapping[str, Callable[[Json, Json, int], dict[str, Any]]]] = {
    "default": lambda given, said, pairs: {},
    "linear": lambda given, said, pairs: {"scaling": RotaryScalingConfig(number(said, "factor"))},
    "llama3": _llama3,
    "longrope": _long_rope,
    "su": _long_rope,
    "yarn": _yarn,
}


def _mistral(given: Json, usual: LlamaConfig) -> dict[str, Any]:
    return {"window": given.get("sliding_window", 4096), **_sliding(given)}


def _qwen2(given: Json, usual: LlamaConfig) -> dict[str, Any]:
    return {"bias": True, "output_bias": False, **_qwen_windows(given, usual)}


def _qwen3(given: Json, usual: LlamaConfig) -> dict[str, Any]:
    size = given.get("head_dim", 128)
    return {"d_head": size, "head_norms": True, **_qwen_windows(given, usual)}


def _qwen_windows(given: Json, usual: LlamaConfig) -> dict[str, Any]:
    """The window, which Qwen says it does not use unless it says so, from a layer on."""
    if not given.get("use_sliding_window") or given.get("sliding_window") is None:
        return {}
    start = given.get("max_window_layers", 28)
    later = tuple(i >= start for i in range(usual.n_layers))
    return {"window": given["sliding_window"], "sliding": later, **_sliding(given)}


def _experts(given: Json) -> Any:
    """How many experts there are; newer files of Qwen have the word of Mixtral."""
    return need(given, "num_experts" if "num_experts" in given else "num_local_experts")


def _mixtral(given: Json, usual: LlamaConfig) -> dict[str, Any]:
    return {
        "chosen": given.get("num_experts_per_tok", 2),
        "experts": _experts(given),
        "window": given.get("sliding_window"),
    }


def _qwen_experts(given: Json, usual: LlamaConfig) -> dict[str, Any]:
    """Experts in every layer, every so many, or all but some."""
    step, without = given.get("decoder_sparse_step", 1), given.get("mlp_only_layers") or ()
    layers = tuple((i + 1) % step == 0 and i not in without for i in range(usual.n_layers))
    return {
        "chosen": need(given, "num_experts_per_tok"),
        "d_expert": need(given, "moe_intermediate_size"),
        "expert_layers": None if all(layers) else layers,
        "experts": _experts(given),
        "normalized": bool(given.get("norm_topk_prob", False)),
    }


def _qwen2_moe(given: Json, usual: LlamaConfig) -> dict[str, Any]:
    own = {**_qwen2(given, usual), **_qwen_experts(given, usual)}
    own |= {"bias": bool(given.get("qkv_bias", True))}
    return {**own, "d_shared": need(given, "shared_expert_intermediate_size")}


def _qwen3_moe(given: Json, usual: LlamaConfig) -> dict[str, Any]:
    own = {**_qwen_windows(given, usual), **_qwen_experts(given, usual)}
    return {**own, "d_head": given.get("head_dim"), "head_norms": True}


def _phi3(given: Json, usual: LlamaConfig) -> dict[str, Any]:
    return {"fused": True, "window": given.get("sliding_window")}


def _gemma(given: Json, usual: LlamaConfig) -> dict[str, Any]:
    act = given.get("hidden_activation") or "gelu_pytorch_tanh"  # files say "gelu" and mean it
    return {
        "activation": word("hidden_activation", act, _ACTIVATIONS),
        "d_head": given.get("head_dim", 256),
        "embedding_scale": sqrt(usual.d_model),
        "from_one": True,
        "tied": bool(given.get("tie_word_embeddings", True)),
    }


def _gemma2(given: Json, usual: LlamaConfig) -> dict[str, Any]:
    layers = range(usual.n_layers)
    return {
        **_gemma(given, usual),
        "both_norms": True,
        "logit_cap": given.get("final_logit_softcapping", 30.0),
        "query_scale": given.get("query_pre_attn_scalar", 256) ** -0.5,
        "score_cap": given.get("attn_logit_softcapping", 50.0),
        "sliding": tuple(i % 2 == 0 for i in layers),
        "window": given.get("sliding_window", 4096),
        **_sliding(given),
    }


def _gemma3(given: Json, usual: LlamaConfig) -> dict[str, Any]:
    _only(given, "use_bidirectional_attention", False)
    every = given.get("sliding_window_pattern") or given.get("_sliding_window_pattern") or 6
    said = given.get("rope_parameters") or {}
    local = said.get("sliding_attention", {}).get("rope_theta")
    wide = said.get("full_attention", {}).get("rope_theta", given.get("rope_theta", 1e6))
    return {
        **_gemma2(given, usual),
        "head_norms": True,
        "local_theta": float(local or given.get("rope_local_base_freq", _THETA)),
        "logit_cap": given.get("final_logit_softcapping"),
        "score_cap": None,  # files may say one, which is not used
        "sliding": tuple((i + 1) % every != 0 for i in range(usual.n_layers)),
        "theta": float(wide),
        **_sliding(given),
    }


def _sliding(given: Json) -> dict[str, Any]:
    """Which layers have the window, where a file says so of each."""
    kinds = given.get("layer_types")
    if not kinds:
        return {}
    words = {"full_attention": False, "sliding_attention": True}
    return {"sliding": tuple(word("layer_types", kind, words) for kind in kinds)}


def _only(given: Json, name: str, value: Any) -> None:
    """Refuse another value of a setting than the one that is built."""
    if given.get(name) is not None:
        word(name, given[name], {value: value})


def _bert(given: Json) -> BertConfig:
    _only(given, "is_decoder", False)
    _only(given, "position_embedding_type", "absolute")
    act = given.get("hidden_act", "gelu")
    word("hidden_act", act, {"gelu": "gelu"})
    return BertConfig(
        words=need(given, "vocab_size"),
        positions=need(given, "max_position_embeddings"),
        kinds=given.get("type_vocab_size", 2),
        d_model=need(given, "hidden_size"),
        n_layers=need(given, "num_hidden_layers"),
        n_heads=need(given, "num_attention_heads"),
        d_ff=need(given, "intermediate_size"),
        dropout=given.get("hidden_dropout_prob", 0.1),
        epsilon=given.get("layer_norm_eps", 1e-12),
    )


def _gpt2(given: Json) -> GptConfig:
    word("activation_function", given.get("activation_function", "gelu_new"), _TANH)
    _only(given, "scale_attn_by_inverse_layer_idx", False)
    _only(given, "scale_attn_weights", True)
    _only(given, "tie_word_embeddings", True)
    wide, d_model = given.get("n_inner"), need(given, "n_embd")
    if wide not in (None, 4 * d_model):
        raise RecordError("load", "n_inner is not built", got=wide, expected=4 * d_model)
    return GptConfig(
        words=need(given, "vocab_size"),
        positions=need(given, "n_positions"),
        d_model=d_model,
        n_layers=need(given, "n_layer"),
        n_heads=need(given, "n_head"),
        dropout=given.get("resid_pdrop", 0.1),
        epsilon=given.get("layer_norm_epsilon", 1e-5),
    )


def _llama(own: _Own | None = None, *, part: bool = False) -> Published:
    """A decoder of the family, with settings of its own; of each head a part may be turned."""

    def config(given: Json) -> LlamaConfig:
        usual = _common(given, part=part)
        return usual if own is None else usual.replace(**own(given, usual))

    return Published(config)


# Mixtral's own words for what others call as in Llama.
_MIXTRAL: Final = {
    ".block_sparse_moe.": ".mlp.",
    ".w1.": ".gate_proj.",
    ".w2.": ".down_proj.",
    ".w3.": ".up_proj.",
}
_BERT: Final = Published(_bert, prefix="bert.", unused=r"position_ids$")

_TEXTS: Final[Mapping[str, Published]] = {
    "BertModel": _BERT,
    "GPT2LMHeadModel": Published(
        _gpt2, "phlox", "transformer.", r"\.attn\.(masked_)?bias$|^lm_head\.weight$"
    ),
    "Gemma2ForCausalLM": _llama(_gemma2),
    "Gemma3ForCausalLM": _llama(_gemma3),
    "GemmaForCausalLM": _llama(_gemma),
    "LlamaForCausalLM": _llama(),
    "MistralForCausalLM": _llama(_mistral),
    "MixtralForCausalLM": _llama(_mixtral)._replace(words=_MIXTRAL),
    "Phi3ForCausalLM": _llama(_phi3, part=True),
    "Qwen2ForCausalLM": _llama(_qwen2),
    "Qwen2MoeForCausalLM": _llama(_qwen2_moe),
    "Qwen3ForCausalLM": _llama(_qwen3),
    "Qwen3MoeForCausalLM": _llama(_qwen3_moe),
}


def published(given: Json) -> Published:
    """Return how files of the architecture of a ``config.json`` are read."""
    timm = given.get("architecture")  # its word for one
    names = given.get("architectures") or ([] if timm is None else [timm])
    for name in names:
        if name in _TEXTS:
            return _TEXTS[name]
    from ._media import MEDIA  # noqa: PLC0415 - models of images and speech, which texts do not need

    known = [name for name in names if name in MEDIA]
    if not known:
        got = ", ".join(map(str, names)) or f"model_type {given.get('model_type')!r}"
        expected = ", ".join(sorted({**_TEXTS, **MEDIA}))
        raise RecordError("load", "an architecture that is not built", got=got, expected=expected)
    return MEDIA[known[0]]
