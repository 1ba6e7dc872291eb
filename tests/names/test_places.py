"""What is given by its place means what it means in PyTorch's layer, or is refused."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import pytest

from phlox import nn

# Settings of PyTorch's constructors in order; what is ours by another name is written as ours.
_CONV = "channels_in channels_out kernel_size stride padding dilation groups bias padding_mode"
_TURNED = (
    "channels_in channels_out kernel_size stride padding padding_out groups bias dilation "
    "padding_mode"
)
_RECURRENT = "d_input d_hidden n_layers bias batch_first:bool dropout bidirectional"
_MAX_POOL = "kernel_size stride padding dilation return_indices:bool ceil_mode"
_AVG_POOL = "kernel_size stride padding ceil_mode count_include_pad divisor_override:int"
_LOSS = "size_average:bool reduce:bool reduction"
THEIRS = {
    "AvgPool1d": _AVG_POOL,
    "AvgPool2d": _AVG_POOL,
    "AvgPool3d": _AVG_POOL,
    "BatchNorm": "num_features epsilon momentum affine track_running_stats device:str",
    "Bilinear": "d_first d_second d_output bias device:str",
    "BinaryCrossEntropyLoss": f"weight:Tensor {_LOSS} weights",
    "Conv1d": _CONV,
    "Conv2d": _CONV,
    "Conv3d": _CONV,
    "ConvTranspose1d": _TURNED,
    "ConvTranspose2d": _TURNED,
    "ConvTranspose3d": _TURNED,
    "CosineEmbeddingLoss": f"margin {_LOSS}",
    "CosineSimilarity": "axis epsilon",
    "CrossEntropyLoss": "weights size_average:bool ignore_index:int reduce:bool reduction",
    "CtcLoss": "blank reduction zero_infinity",
    "DeformConv2d": "channels_in channels_out kernel_size stride padding dilation groups bias",
    "Embedding": "n_embedding d_model padding_idx max_norm:float norm_type:float",
    "EmbeddingBag": "n_embedding d_model max_norm:float norm_type:float",
    "Flatten": "start_axis end_axis",
    "Fold": "output_size kernel_size dilation padding stride",
    "GaussianNllLoss": "full epsilon reduction",
    "GroupNorm": "num_groups num_channels epsilon affine device:str",
    "Gru": _RECURRENT,
    "GruCell": "d_input d_hidden bias device:str",
    "HingeEmbeddingLoss": f"margin {_LOSS}",
    "HuberLoss": "reduction delta",
    "InstanceNorm": "num_channels epsilon momentum:float affine track_running_stats:bool",
    "Interpolate": "size scale_factor mode align_corners recompute_scale_factor:bool",
    "KlDivLoss": f"{_LOSS} log_target",
    "L1Loss": _LOSS,
    "LayerNorm": "d_model epsilon affine bias device:str",
    "Linear": "d_input d_output bias device:str",
    "LocalResponseNorm": "size alpha beta k",
    "Lstm": _RECURRENT,
    "LstmCell": "d_input d_hidden bias device:str",
    "LpPool1d": "p kernel_size stride ceil_mode",
    "LpPool2d": "p kernel_size stride ceil_mode",
    "LpPool3d": "p kernel_size stride ceil_mode",
    "MarginRankingLoss": f"margin {_LOSS}",
    "MaxPool1d": _MAX_POOL,
    "MaxPool2d": _MAX_POOL,
    "MaxPool3d": _MAX_POOL,
    "MaxUnpool1d": "kernel_size stride padding",
    "MaxUnpool2d": "kernel_size stride padding",
    "MaxUnpool3d": "kernel_size stride padding",
    "MseLoss": _LOSS,
    "MultiHeadAttention": "d_model n_heads dropout bias add_bias_kv:bool add_zero_attn:bool",
    "MultiLabelMarginLoss": _LOSS,
    "MultiMarginLoss": f"p margin weights {_LOSS}",
    "PRelu": "num_parameters initial",
    "PairwiseDistance": "p epsilon keepdims",
    "PoissonNllLoss": "log_input full size_average:bool epsilon reduce:bool reduction",
    "RRelu": "low high inplace:bool",
    "RmsNorm": "d_model epsilon affine device:str",
    "Rnn": _RECURRENT.replace("bias ", "activation bias "),
    "RnnCell": "d_input d_hidden bias activation",
    "SmoothL1Loss": f"{_LOSS} beta",
    "SoftMarginLoss": _LOSS,
    "TransformerDecoderLayer": "d_model n_heads d_ff dropout activation epsilon batch_first:bool",
    "TransformerEncoderLayer": "d_model n_heads d_ff dropout activation epsilon batch_first:bool",
    "TripletMarginLoss": f"margin p epsilon swap {_LOSS}",
    "Unflatten": "axis sizes",
    "Unfold": "kernel_size dilation padding stride",
}
# Of the words that are no settings of ours: what users give there.
_VALUES: dict[str, Any] = {"bool": True, "float": 0.5, "int": 2, "str": "cpu", "Tensor": object()}
_OF_TYPES = {bool: True, float: 0.5, int: 2, str: "sum"}


def given(name: str, theirs: str, hints: dict[str, Any]) -> Any:
    """What a user of PyTorch would give at a place."""
    word, _, kind = theirs.partition(":")
    if kind:
        return _VALUES[kind]
    return next((v for k, v in _OF_TYPES.items() if str(k.__name__) in str(hints[word])), None)


@pytest.mark.parametrize("name", sorted(THEIRS))
def test_places_mean_what_they_mean_in_pytorch(name: str) -> None:
    config: Any = getattr(nn, f"{name}Config")
    hints = get_type_hints(config)
    places = [
        p for p in inspect.signature(config).parameters.values() if p.kind is not p.KEYWORD_ONLY
    ]
    for ours, theirs in zip(places, THEIRS[name].split(), strict=False):
        if ours.name == theirs:
            continue
        value = given(name, theirs, hints)
        needed = {p.name: 4 for p in places if p.default is p.empty}
        with pytest.raises(nn.ConfigError):
            config(**{**needed, ours.name: value})
        return  # refused here, so that later places are never looked at


def test_a_convolution_as_pytorch_writes_it() -> None:
    layer = nn.Conv2d(3, 8, 3, 1, 1)
    assert (layer.settings.padding, layer.settings.dilation) == (1, 1)
    assert nn.ConvTranspose1d(4, 4, 3, 2, 1, 1, 2, False, 3).settings.groups == 2
    assert not nn.Lstm(3, 4, 1, False).settings.bias
    assert nn.LayerNorm(8, 1e-5, False).weight is None
    assert nn.Unfold(3, 2).settings.dilation == 2
    with pytest.raises(TypeError, match=r"by name: (.|\n)*bidirectional="):
        nn.Lstm(3, 4, 1, False, True)  # type: ignore[call-arg]  # refused


@pytest.mark.long
def test_the_words_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    for name in ("Conv2d", "ConvTranspose2d", "LayerNorm", "Unfold", "MaxPool2d"):
        taken = list(inspect.signature(getattr(torch.nn, name).__init__).parameters)[1:]
        ours = [word.partition(":")[0] for word in THEIRS[name].split()]
        alike = {"channels_in": "in_channels", "channels_out": "out_channels"}
        alike |= {"padding_out": "output_padding", "d_model": "normalized_shape"}
        alike |= {"epsilon": "eps", "affine": "elementwise_affine"}
        expected = [alike.get(word, word) for word in ours]
        assert taken[: len(expected)] == expected or taken[: len(expected) - 1] == expected[:-1]
