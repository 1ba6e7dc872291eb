"""Models into folders such as other programs read: ``config.json`` beside the weights."""

from __future__ import annotations

import json
from dataclasses import fields
from math import isclose
from pathlib import Path
from typing import Any, Final

from phlox_record import KeepPrecision, PrecisionSettings, SafetensorsRecorder
from phlox_tensor import RecordError

from ._clip import Clip
from ._convnext import ConvNext
from ._efficientnet import EfficientNetLite
from ._llama import Llama, LlamaConfig
from ._load import named
from ._media import described
from ._parts import ModelConfig
from ._public import published
from ._whisper import Whisper

_ACTIVATIONS: Final = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "silu": "silu"}


def save(
    model: Llama | Clip | ConvNext | EfficientNetLite | Whisper,
    folder: str | Path,
    *,
    precision: PrecisionSettings = KeepPrecision,
    max_shard_size: int | None = None,
) -> Path:
    """Write a model as published ones are, and return the folder.

    Names and settings are those of the architecture in ``transformers``, which reads the folder; so
    does ``load``. The tokenizer is not the model's: its files are copied beside it.

    Args:
        model: a decoder of the Llama family, ``Clip``, ``ConvNext``, ``EfficientNetLite`` or
            ``Whisper``; weights that are stored as integers become floats by
            ``nn.dequantize_weights`` first.
        folder: made when it is not there.
        precision: the element type of the weights, such as ``px.record.BFloat16Precision``.
        max_shard_size: most bytes of a file; then there are several beside an index.

    Raises:
        RecordError: for settings that no architecture has.
        OSError: the folder cannot be written.

    Example:
        >>> import tempfile
        >>> from phlox_nn import models
        >>> model = models.LlamaConfig(9, 32, 16, 1, 2, d_ff=32).init()
        >>> models.load_report(models.save(model, tempfile.mkdtemp())).complete
        True
    """
    config, place = model.settings, Path(folder)
    given = _settings(config) if isinstance(config, LlamaConfig) else described(config)
    read = published(given)
    again: Any = read.config(given)
    _check_same(config, again)
    found = named(model.into_record(layout="pytorch"))
    tensors = {f"{read.prefix}{name}": entry for name, entry in found}
    for theirs, here in reversed(list(read.words.items())):
        tensors = {_theirs(name, here, theirs): entry for name, entry in tensors.items()}
    place.mkdir(parents=True, exist_ok=True)
    recorder = SafetensorsRecorder(precision)
    recorder.record(tensors, place / "model.safetensors", max_shard_size=max_shard_size)
    (place / "config.json").write_text(json.dumps(given, indent=2) + "\n")
    return place


def _theirs(name: str, here: str, theirs: str) -> str:
    return name.replace(here, theirs) if ".experts." in name or ".mlp.gate." in name else name


def _architecture(s: LlamaConfig) -> str:
    """The published name of a decoder with such settings."""
    if s.from_one:
        return f"Gemma{'3' if s.head_norms else '2' if s.both_norms else ''}"
    if s.experts:
        return "Qwen2Moe" if s.d_shared else "Qwen3Moe" if s.head_norms else "Mixtral"
    if s.fused:
        return "Phi3"
    if s.head_norms:
        return "Qwen3"
    if s.bias and not s.output_bias:
        return "Qwen2"
    return "Llama" if s.window is None else "Mistral"


def _settings(s: LlamaConfig) -> dict[str, Any]:
    """The settings in the words of ``config.json``; None for what is left out."""
    kinds = ["sliding_attention" if each else "full_attention" for each in s.windows]
    layers = range(s.n_layers)
    rows = {
        "architectures": [f"{_architecture(s)}ForCausalLM"],
        "model_type": _TYPES.get(_architecture(s), _architecture(s).lower()),
        "attention_bias": s.bias and s.output_bias,
        "attn_logit_softcapping": s.score_cap,
        "decoder_sparse_step": 1 if s.d_expert else None,
        "final_logit_softcapping": s.logit_cap,
        "head_dim": s.head,
        "hidden_act": _ACTIVATIONS[s.activation],
        "hidden_activation": _ACTIVATIONS[s.activation] if s.from_one else None,
        "hidden_size": s.d_model,
        "intermediate_size": s.d_ff,
        "layer_types": kinds if s.sliding is not None and s.window else None,
        "max_position_embeddings": s.positions,
        "max_window_layers": next((i for i in layers if s.windows[i]), s.n_layers),
        "mlp_bias": s.d_ff_bias,
        "mlp_only_layers": [i for i in layers if s.expert_layers and not s.expert_layers[i]],
        "moe_intermediate_size": s.d_expert,
        "norm_topk_prob": s.normalized,
        "num_attention_heads": s.n_heads,
        "num_experts": s.experts or None,
        "num_experts_per_tok": s.chosen if s.experts else None,
        "num_hidden_layers": s.n_layers,
        "num_key_value_heads": s.n_heads_kv or s.n_heads,
        "num_local_experts": s.experts or None,
        "partial_rotary_factor": s.rotary_share,
        "qkv_bias": s.bias,
        "query_pre_attn_scalar": s.query_scale and round(s.query_scale**-2),
        "rms_norm_eps": s.epsilon,
        "rope_local_base_freq": s.local_theta,
        "rope_theta": s.theta,
        "shared_expert_intermediate_size": s.d_shared,
        "tie_word_embeddings": s.tied,
        "use_sliding_window": s.window is not None,
        "vocab_size": s.words,
    }
    said = {name: value for name, value in rows.items() if value is not None}
    caps = {name: rows[name] for name in ("attn_logit_softcapping", "final_logit_softcapping")}
    own = {"pad_token_id": None, "sliding_window": s.window}  # null where there is none
    return {**said, **caps, **own, **_rotary(s)}


_TYPES: Final = {"Gemma3": "gemma3_text", "Qwen2Moe": "qwen2_moe", "Qwen3Moe": "qwen3_moe"}


def _rotary(s: LlamaConfig) -> dict[str, Any]:
    """How rates are slowed down, in those words."""
    short, long = s.scaling, s.long_scaling
    if short is None:
        return {}
    if long is not None:
        factors = {"short_factor": short.factors, "long_factor": long.factors}
        before = {"original_max_position_embeddings": long.original_length}
        kind = {"rope_type": "longrope", "attention_factor": long.amplitude}
        return {**before, "rope_scaling": {**kind, **factors, **before}}
    if short.original_length is None:
        return {"rope_scaling": {"rope_type": "linear", "factor": short.factor}}
    bounds = {"low_freq_factor": short.low, "high_freq_factor": short.high}
    before = {"original_max_position_embeddings": short.original_length}
    return {"rope_scaling": {"rope_type": "llama3", "factor": short.factor, **bounds, **before}}


def _check_same(config: ModelConfig, again: ModelConfig) -> None:
    """Refuse settings that would be others when the folder is read."""
    same = {"d_head": "head", "sliding": "windows"}
    for field in fields(config):
        name = same.get(field.name, field.name)
        ours, theirs = getattr(config, name), getattr(again, name)
        near = type(ours) is type(theirs) is float and isclose(ours, theirs, rel_tol=1e-9)
        if ours != theirs and not near and (name != "n_heads_kv" or ours is not None):
            what = f"no published architecture has this {name}"
            raise RecordError("save", what, got=ours, expected=theirs)
