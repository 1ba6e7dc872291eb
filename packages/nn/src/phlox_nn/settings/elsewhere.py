"""What other libraries call settings of layers and their values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

# PyTorch's words for settings -> ours, of which a config has one.
SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "decoder_layer": ("layer",),
    "dilation_rate": ("dilation",),
    "dim": ("axis",),
    "dim_feedforward": ("d_ff",),
    "downscale_factor": ("factor",),
    "dropout_rate": ("dropout", "prob"),
    "elementwise_affine": ("affine",),
    "embed_dim": ("d_model",),
    "embedding_dim": ("d_model",),
    "embeddings_initializer": ("initializer",),
    "encoder_layer": ("layer",),
    "end_dim": ("end_axis",),
    "eps": ("epsilon",),
    "feature_group_count": ("groups",),
    "features": ("d_output", "d_model", "channels_out"),
    "filters": ("channels_out",),
    "go_backwards": ("reverse",),
    "groups": ("num_groups",),
    "head_dim": ("d_head",),
    "hidden_dropout_prob": ("dropout",),
    "hidden_size": ("d_hidden", "d_model"),
    "ignore_class": ("pad_tokens",),
    "ignore_index": ("pad_tokens",),
    "in1_features": ("d_first",),
    "in2_features": ("d_second",),
    "in_channels": ("channels_in",),
    "in_features": ("d_input",),
    "init": ("initial",),
    "input_dim": ("d_input", "n_embedding"),
    "input_size": ("d_input",),
    "intermediate_dim": ("d_ff",),
    "intermediate_size": ("d_ff",),
    "kdim": ("d_key",),
    "keepdim": ("keepdims",),
    "kernel_dilation": ("dilation",),
    "kernel_init": ("initializer",),
    "kernel_initializer": ("initializer",),
    "label_smoothing": ("smoothing",),
    "layer_norm_eps": ("epsilon",),
    "lower": ("low",),
    "max_position_embeddings": ("positions",),
    "n_embd": ("d_model",),
    "n_head": ("n_heads",),
    "n_layer": ("n_layers",),
    "n_positions": ("positions",),
    "nhead": ("n_heads",),
    "nonlinearity": ("activation",),
    "norm": ("final_norm",),
    "norm_type": ("p",),
    "normalized_shape": ("d_model",),
    "num_attention_heads": ("n_heads",),
    "num_channels": ("num_features",),
    "num_classes": ("classes",),
    "num_embeddings": ("n_embedding",),
    "num_features": ("num_channels",),
    "num_heads": ("n_heads",),
    "num_hidden_layers": ("n_layers",),
    "num_key_value_heads": ("n_heads_kv",),
    "num_layers": ("n_layers",),
    "out_channels": ("channels_out",),
    "out_features": ("d_output",),
    "output_dim": ("d_output", "d_model"),
    "output_padding": ("padding_out",),
    "p": ("prob",),
    "pool_size": ("kernel_size",),
    "pos_weight": ("weights",),
    "qkv_features": ("d_model",),
    "rate": ("prob",),
    "recurrent_activation": ("gate_activation",),
    "resid_pdrop": ("dropout",),
    "rms_norm_eps": ("epsilon",),
    "rope_theta": ("theta",),
    "sliding_window": ("window",),
    "start_dim": ("start_axis",),
    "strides": ("stride",),
    "tie_word_embeddings": ("tied",),
    "type_vocab_size": ("kinds",),
    "unflattened_size": ("sizes",),
    "units": ("d_output", "d_hidden"),
    "upper": ("high",),
    "upscale_factor": ("factor",),
    "use_bias": ("bias",),
    "use_scale": ("affine",),
    "vdim": ("d_value",),
    "vocab_size": ("words",),
    "weight": ("weights",),
    "weight_init": ("initializer",),
    "window_shape": ("kernel_size",),
}

# PyTorch's settings that are no settings here, or not of all layers -> what to do.
NO_SETTINGS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("weight", "weights"),
        'layer = layer.replace(weight=nn.Param(x)); of a loss, reduction="none", then a weighted '
        "mean",
    ),
    **dict.fromkeys(
        ("process_group", "sync"), "synchronized=True, on a device px.Distributed(device, group)"
    ),
    **dict.fromkeys(("key", "rngs", "seed"), "px.seed(0) before it: layers draw from one stream"),
    **dict.fromkeys(
        ("kernel_init", "kernel_initializer"),
        'layer = nn.initialize(layer, nn.initializers.XavierUniform(), "*weight*")',
    ),
    **dict.fromkeys(("fused", "implementation", "unroll"), "leave it out"),
    **dict.fromkeys(
        ("dtype", "param_dtype"), 'the device says: nn.Linear(4, 2, device=px.Cpu(float="float64"))'
    ),
    **dict.fromkeys(("deterministic", "use_running_average"), "model.valid() is for inference"),
    **dict.fromkeys(
        ("broadcast_dims", "noise_shape"), "nn.ChannelDropout(0.5) drops whole channels"
    ),
    **dict.fromkeys(
        ("bias_init", "bias_initializer"),
        'layer = nn.initialize(layer, nn.initializers.Constant(0.5), "*bias*")',
    ),
    **dict.fromkeys(("batch_first", "time_major"), "axes are (batch, length, size) here"),
    "ActivationConfig.alpha": 'nn.Activation("elu", {"alpha": 1.0})',
    "ActivationConfig.negative_slope": 'nn.Activation("leaky_relu", {"slope": 0.01})',
    "GruConfig.activation": 'hidden_activation="relu"; gate_activation= is that of gates',
    "LstmConfig.activation": 'cell_activation="relu", hidden_activation="relu"; gate_activation= '
    "is that of gates",
    "MultiHeadAttentionConfig.key_dim": "d_head=...",
    "_freeze": "layer = layer.freeze()",
    "_weight": "layer = layer.replace(weight=nn.Param(table))",
    "activation": 'nn.Sequential(layer, nn.Activation("relu"))',
    "activity_regularizer": "a term of the loss",
    "add_bias_kv": "layer.attend(x, layer.keys_values(x).extended(row)), nn.KeyValues of your own",
    "add_zero_attn": "layer.attend(x, layer.keys_values(x).extended(zeros)), nn.KeyValues of zeros",
    "approximate": 'nn.Activation("gelu_tanh")',
    "axis": "x.moveaxis(-1, 1) before it, for channels on the last axis",
    "beta_initializer": 'layer = nn.initialize(layer, nn.initializers.Zeros(), "bias")',
    "bias_regularizer": 'optim.SgdConfig(weight_decay=0.01, decayed="all")',
    "center": "bias=False for False",
    "class_weight": "nn.CrossEntropyLoss(weights=(1.0, 2.0)), which are of classes",
    "data_format": "channels are axis 1: x.moveaxis(-1, 1) before it",
    "depth_multiplier": "nn.Conv2d(3, 3 * depth_multiplier, 3, groups=3) for three channels",
    "divisor_override": "pool(x) * (elements / divisor), where elements are those of a window",
    "enable_nested_tensor": "leave it out: encoder(x, padding=...) computes what is filled up too",
    "gamma_initializer": 'layer = nn.initialize(layer, nn.initializers.Ones(), "weight")',
    "include_last_offset": "bags are (bags, length) here, filled up with shares of 0",
    "inplace": "nothing changes in place here",
    "input_length": "leave it out: any length fits",
    "input_shape": "leave it out: the layer has its sizes",
    "kernel_constraint": "model.map(lambda path, p: p.with_value(...)) after a step",
    "kernel_regularizer": "optim.SgdConfig(weight_decay=0.01), or a term of the loss",
    "lora_rank": "nn.apply_lora(model, 4)",
    "mask_check": "leave it out: masks are checked at each call",
    "mask_zero": "attention(x, padding=tokens == 0), recurrent(x, lengths=lengths)",
    "max_norm": "model.map(lambda path, p: p.with_value(...)) after a step shortens rows",
    "momentum": "nn.BatchNorm(channels) keeps running statistics; these are of each example",
    "name": "self.name = layer in __init__: fields are names",
    "norm_type": "leave it out: it belongs to max_norm",
    "padding_idx": 'shares of 0 fill bags up: nn.EmbeddingBag(5, 2, "sum")(indices, shares)',
    "padding_mode": 'nn.Pad(((1, 1), (1, 1)), mode="reflect") before it, and padding=0',
    "proj_size": "nn.Linear(d_hidden, size) after it",
    "recompute_scale_factor": "leave it out: places go by the sizes, as with True",
    "recurrent_dropout": "nn.Dropout(0.5) before it; none acts between steps",
    "recurrent_initializer": "layer = nn.initialize(layer, nn.initializers.Orthogonal(), "
    '"*weight_hidden")',
    "reduce": 'reduction="none" for False',
    "return_indices": "y, indices = pool.with_indices(x)",
    "return_sequences": "y, state = layer(x): y has all steps, y[:, -1] is the last",
    "return_state": "y, state = layer(x)",
    "scale": "affine=False for False, which leaves the bias out too",
    "scale_grad_by_freq": "weigh the loss: a gradient is that of the loss as it is",
    "size_average": 'reduction="sum" for False',
    "sparse": "leave it out: gradients of tables are dense here",
    "stateful": "y, state = layer(x, state): states are values, which the next call takes",
    "track_running_stats": "nn.BatchNorm(channels) keeps statistics; these are of each example",
    "trainable": "layer = layer.freeze() for False",
    "unit_forget_bias": "leave it out: biases start as weights do",
    "value_dim": "d_head=..., one for keys and values",
}

# Other libraries' words for values of settings -> ours, where a setting takes it; both compared
# by ``squeezed``.
VALUES: Final[Mapping[str, str]] = {
    "batchmean": "batch_mean",
    "bicubic": "cubic",
    "bilinear": "linear",
    "elementwisemean": "mean",
    "geluapproximate": "gelu_tanh",
    "gelunew": "gelu_tanh",
    "gelupytorchtanh": "gelu_tanh",
    "hardsilu": "hard_swish",
    "logsigmoid": "log_sigmoid",
    "replicate": "edge",
    "swish": "silu",
    "trilinear": "linear",
    "wrap": "circular",
    "zeros": "constant",
}

# Settings with a value that has no word here -> what to type.
NO_VALUES: Final[Mapping[str, str]] = {
    "mode.area": "nn.AdaptiveAvgPool2d(size)",
    "name.identity": "nn.Identity()",
    "name.linear": "nn.Identity()",
    "name.softmax": "nn.Softmax(-1)",
    "padding.causal": "padding=(dilation * (kernel_size - 1), 0)",
    "padding.same": "padding=1, padding_out=1 for a kernel of 3 and a stride of 2",
}


def squeezed(word: str) -> str:
    """Return a word without what spellings differ in: capitals, ``_`` and ``-``."""
    return word.replace("_", "").replace("-", "").lower()


# Initializers of others in their many spellings, as ``squeezed`` has them.
MADE: Final[Mapping[str, str]] = {
    "constant": "nn.initializers.Constant(0.5)",
    "glorotnormal": "nn.initializers.XavierNormal()",
    "glorotuniform": "nn.initializers.XavierUniform()",
    "henormal": "nn.initializers.KaimingNormal()",
    "heuniform": "nn.initializers.KaimingUniform()",
    "kaiming": "nn.initializers.KaimingUniform()",
    "kaimingnormal": "nn.initializers.KaimingNormal()",
    "kaiminguniform": "nn.initializers.KaimingUniform()",
    "lecunnormal": "nn.initializers.KaimingNormal(gain=1.0)",
    "lecununiform": "nn.initializers.KaimingUniform(gain=1.0)",
    "normal": "nn.initializers.Normal(std=0.02)",
    "ones": "nn.initializers.Ones()",
    "orthogonal": "nn.initializers.Orthogonal()",
    "randomnormal": "nn.initializers.Normal(std=0.05)",
    "randomuniform": "nn.initializers.Uniform(-0.05, 0.05)",
    "truncatednormal": "nn.initializers.TruncatedNormal(std=0.05)",
    "truncnormal": "nn.initializers.TruncatedNormal(std=0.02)",
    "uniform": "nn.initializers.Uniform(-0.1, 0.1)",
    "variancescaling": "nn.initializers.KaimingNormal(gain=1.0)",
    "xavier": "nn.initializers.XavierUniform()",
    "xaviernormal": "nn.initializers.XavierNormal()",
    "xavieruniform": "nn.initializers.XavierUniform()",
    "zeros": "nn.initializers.Zeros()",
}

_MEANS: Final[Mapping[str, str]] = {"mean": ".mean()", "none": "", "sum": ".sum()"}


def advice_for(config: str, given: Mapping[str, Any], known: Sequence[str]) -> dict[str, str]:
    """Return what to do instead of settings that depends on the others.

    Args:
        config: the name of the class.
        given: all settings by name.
        known: those that it has.
    """
    if config == "BinaryCrossEntropyLossConfig":
        own = [f"{n}={v!r}, " for n, v in given.items() if n in known and n != "reduction"]
        loss = f'nn.BinaryCrossEntropyLoss({"".join(own)}reduction="none")(x, y)'
        end = _MEANS.get(given.get("reduction", "mean"), ".mean()")
        product = f"({loss} * px.asarray(weight, device=x.device)){end}"
        return {f"{config}.weight": f"loss = {product}; weights= is what PyTorch calls pos_weight"}
    axes = re.fullmatch(r"Conv(\d)dConfig", config)
    mode = given.get("padding_mode")
    mode = VALUES.get(mode, mode) if isinstance(mode, str) else "reflect"
    if axes and mode == "constant":
        return {"padding_mode": "leave it out: a padding is of zeros"}
    sizes = given.get("padding", 1)
    if not axes or not isinstance(sizes, int | tuple):
        return {}
    each = sizes if isinstance(sizes, tuple) else (sizes,) * int(axes[1])
    margins = tuple((n, n) for n in each)
    return {"padding_mode": f'nn.Pad({margins}, mode="{mode}") before it, and padding=0'}
