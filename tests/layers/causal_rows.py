"""Small decoders of each family, by the settings of their published configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

_USUAL: Final[dict[str, Any]] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "max_position_embeddings": 128,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "rms_norm_eps": 1e-6,
    "vocab_size": 60,
}
_LLAMA3: Final[dict[str, Any]] = {
    "factor": 8.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 16,
    "rope_theta": 5e5,
    "rope_type": "llama3",
}
_LONG: Final[dict[str, Any]] = {
    "long_factor": [1.5, 2.0, 3.0],
    "original_max_position_embeddings": 8,
    "partial_rotary_factor": 0.75,
    "rope_theta": 1e4,
    "rope_type": "longrope",
    "short_factor": [1.0, 1.1, 1.2],
}
_LOCAL: Final[dict[str, Any]] = {
    "full_attention": {"factor": 8.0, "rope_theta": 1e6, "rope_type": "linear"},
    "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"},
}
_PLAIN: Final = {"rope_theta": 1e6, "rope_type": "default"}
_EXPERTS: Final = {"moe_intermediate_size": 12, "num_experts": 5, "num_experts_per_tok": 3}
_GEMMA: Final[dict[str, Any]] = {"head_dim": 16, "query_pre_attn_scalar": 20, "sliding_window": 4}

# Name -> what config.json says, of the class that its first word names.
_OWN: Final[dict[str, dict[str, Any]]] = {
    "Gemma": {"head_dim": 16},
    "Gemma2": {**_GEMMA, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 1.0},
    "Gemma3": {**_GEMMA, "rope_parameters": _LOCAL, "sliding_window_pattern": 2},
    "Llama": {"attention_bias": True, "mlp_bias": True},
    "Llama-3": {"head_dim": 16, "rope_parameters": _LLAMA3, "tie_word_embeddings": True},
    "Mistral": {"head_dim": 8, "sliding_window": 5},
    "Mixtral": {"num_local_experts": 4, "rope_parameters": _PLAIN},
    "Phi3": {"sliding_window": 6},
    "Phi3-long": {"original_max_position_embeddings": 8, "rope_parameters": _LONG},
    "Qwen2": {"max_window_layers": 1, "sliding_window": 4, "use_sliding_window": True},
    "Qwen2Moe": {**_EXPERTS, "mlp_only_layers": [1], "shared_expert_intermediate_size": 8},
    "Qwen3": {"head_dim": 16},
    "Qwen3Moe": {**_EXPERTS, "decoder_sparse_step": 2, "head_dim": 8, "norm_topk_prob": True},
}
ROWS: Final[Mapping[str, dict[str, Any]]] = {
    name: {**_USUAL, **own, "architectures": [f"{name.split('-')[0]}ForCausalLM"]}
    for name, own in _OWN.items()
}
TOKENS: Final = np.random.default_rng(1).integers(3, 60, (2, 20))


def weight(place: int, shape: tuple[int, ...]) -> Array:
    """The weight at a place in the order of names, as PyTorch has it."""
    drawn = np.random.default_rng(place).standard_normal(shape) * 0.3
    return drawn.astype(np.float32)
