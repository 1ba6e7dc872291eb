"""What PyTorch and Burn call our layers and optimizers, and where what they do differs."""

from __future__ import annotations

from typing import Final, NamedTuple

# Our name: PyTorch's classes, Burn's module; "=" is our name, "" is none.
LAYERS: Final[dict[str, tuple[str, str]]] = {
    "Activation": ("ReLU, GELU, SiLU, …", "="),
    "AdaptiveAvgPool1d": ("=", "="),
    "AdaptiveAvgPool2d": ("=", "="),
    "AdaptiveAvgPool3d": ("=", "="),
    "AdaptiveMaxPool1d": ("=", ""),
    "AdaptiveMaxPool2d": ("=", ""),
    "AdaptiveMaxPool3d": ("=", ""),
    "AvgPool1d": ("=", "="),
    "AvgPool2d": ("=", "="),
    "AvgPool3d": ("=", ""),
    "BatchNorm": ("BatchNorm1d, BatchNorm2d, BatchNorm3d", "="),
    "Bilinear": ("=", ""),
    "BinaryCrossEntropyLoss": ("BCEWithLogitsLoss, BCELoss", "="),
    "ChannelDropout": ("Dropout1d, Dropout2d, Dropout3d", ""),
    "Conv1d": ("=", "="),
    "Conv2d": ("=", "="),
    "Conv3d": ("=", "="),
    "ConvTranspose1d": ("=", "="),
    "ConvTranspose2d": ("=", "="),
    "ConvTranspose3d": ("=", "="),
    "CosineEmbeddingLoss": ("=", "="),
    "CosineSimilarity": ("=", "="),
    "CrossEntropyLoss": ("=", "="),
    "CtcLoss": ("CTCLoss", "CTCLoss"),
    "DeformConv2d": ("", "="),
    "Dropout": ("=", "="),
    "Embedding": ("=", "="),
    "FeedForward": ("", "PositionWiseFeedForward"),
    "Fold": ("=", "Fold4d"),
    "GaussianNllLoss": ("GaussianNLLLoss", "GaussianNLLLoss"),
    "GaussianNoise": ("", "="),
    "Glu": ("GLU", "GLU"),
    "GroupNorm": ("=", "="),
    "Gru": ("GRU", "Gru, BiGru"),
    "HingeEmbeddingLoss": ("=", "="),
    "HuberLoss": ("=", "="),
    "Identity": ("=", "="),
    "InstanceNorm": ("InstanceNorm1d, InstanceNorm2d, InstanceNorm3d", "="),
    "Interpolate": ("Upsample", "Interpolate1d, Interpolate2d"),
    "KlDivLoss": ("KLDivLoss", "KLDivLoss"),
    "L1Loss": ("=", "LpLoss"),
    "LayerNorm": ("=", "="),
    "LearnedEncoding": ("", ""),
    "Linear": ("=", "="),
    "LocalResponseNorm": ("=", "="),
    "LpLoss": ("", "="),
    "Lstm": ("LSTM", "Lstm, BiLstm"),
    "MarginRankingLoss": ("=", "="),
    "MaxPool1d": ("=", "="),
    "MaxPool2d": ("=", "="),
    "MaxPool3d": ("=", ""),
    "MseLoss": ("MSELoss", "="),
    "MultiHeadAttention": ("MultiheadAttention", "MultiHeadAttention, CrossAttention"),
    "MultiMarginLoss": ("=", "="),
    "PRelu": ("PReLU", "="),
    "Pad": ("ZeroPad2d, ReflectionPad2d, ReplicationPad2d, CircularPad2d", "PaddingConfig2d"),
    "PairwiseDistance": ("=", "="),
    "PixelShuffle": ("=", "="),
    "PixelUnshuffle": ("=", "="),
    "PoissonNllLoss": ("PoissonNLLLoss", "="),
    "RRelu": ("RReLU", "="),
    "RmsNorm": ("RMSNorm", "="),
    "Rnn": ("RNN", "Rnn, BiRnn"),
    "RnntLoss": ("", "RNNTLoss"),
    "RotaryEncoding": ("", "="),
    "SinusoidalEncoding": ("", "PositionalEncoding"),
    "SmoothL1Loss": ("=", "="),
    "SoftMarginLoss": ("=", "="),
    "SwiGlu": ("", "="),
    "TransformerDecoder": ("=", "="),
    "TransformerDecoderLayer": ("=", "="),
    "TransformerEncoder": ("=", "="),
    "TransformerEncoderLayer": ("=", "="),
    "TripletMarginLoss": ("=", "="),
    "Unfold": ("=", "Unfold4d"),
}

OPTIMIZERS: Final[dict[str, tuple[str, str]]] = {
    "AdaGrad": ("Adagrad", "="),
    "Adafactor": ("=", ""),
    "Adam": ("=", "="),
    "AdamW": ("=", "="),
    "Adan": ("", "="),
    "Lbfgs": ("LBFGS", "LBFGS"),
    "Lion": ("", ""),
    "Muon": ("=", "="),
    "RmsProp": ("RMSprop", "="),
    "Sgd": ("SGD", "="),
}

# What PyTorch calls our settings, where it has another word for them.
SETTINGS: Final[dict[str, str]] = {
    "activation": "nonlinearity",
    "axis": "dim",
    "channels_in": "in_channels",
    "channels_out": "out_channels",
    "d_ff": "dim_feedforward",
    "decay": "beta2_decay",
    "epsilon": "eps",
    "factor": "upscale_factor",
    "high": "upper",
    "history": "history_size",
    "initial": "init",
    "initial_sum": "initial_accumulator_value",
    "keepdims": "keepdim",
    "line_search": "line_search_fn",
    "low": "lower",
    "max_evaluations": "max_eval",
    "max_iterations": "max_iter",
    "n_layers": "num_layers",
    "padding_out": "output_padding",
    "prob": "p",
    "smoothing": "label_smoothing",
    "weights": "weight",
}


class Difference(NamedTuple):
    """Where a setting, or what is done, is not the same everywhere."""

    name: str  # a layer or an optimizer
    what: str  # a setting, whose default is meant, or a word for what is done
    ours: str  # "" for the default of the setting
    pytorch: str
    burn: str


_SAME = "as here"
DIFFERENCES: Final[tuple[Difference, ...]] = (
    Difference("Activation", "slope of hard_sigmoid", "1 / 6", _SAME, "0.2"),
    Difference("AdaGrad", "epsilon", "", _SAME, "1e-5"),
    Difference("Adafactor", "epsilon", "", "(None, 1e-3), with least_scale", "none"),
    Difference("Adam", "epsilon", "", _SAME, "1e-5"),
    Difference("AdamW", "epsilon", "", _SAME, "1e-5"),
    Difference("AdamW", "weight_decay", "", _SAME, "1e-4"),
    Difference("Adan", "proximal", "", "none", "no_prox = False, the same"),
    Difference("BatchNorm", "running variance", "unbiased", _SAME, "biased"),
    Difference("BinaryCrossEntropyLoss", "from_logits", "", "a class for each", "logits = False"),
    Difference(
        "Conv2d", "padding", "", "0; 'same' with a stride of 1 alone; no uneven sides", _SAME
    ),
    Difference("Conv2d", "padding of other kinds", "nn.Pad before it", "padding_mode", "none"),
    Difference("CrossEntropyLoss", "pad_tokens", "", "ignore_index = -100, one", _SAME),
    Difference("Dropout", "prob", "", _SAME, "no default"),
    Difference("InstanceNorm", "affine", "", _SAME, "True"),
    Difference("Interpolate", "align_corners", "", _SAME, "True"),
    Difference(
        "Interpolate",
        "places with scale_factor",
        "by the sizes",
        "by the factor, unless recompute_scale_factor=True",
        "by the sizes",
    ),
    Difference("Lbfgs", "rate", "argument of step", "lr = 1", "argument of step"),
    Difference("Linear", "layout of the weight", "(in, out)", "(out, in)", "(in, out), Row"),
    Difference("Lstm", "first values", "uniform, ±1 / √d_hidden", _SAME, "XavierNormal"),
    Difference("Lstm", "axes", "(batch, length, size)", "(length, batch, size)", _SAME),
    Difference("MultiHeadAttention", "dropout", "", _SAME, "0.1"),
    Difference("MultiHeadAttention", "what is masked", "-inf", _SAME, "-1e4"),
    Difference(
        "MultiHeadAttention", "axes", "(batch, length, size)", "(length, batch, size)", _SAME
    ),
    Difference("Muon", "weight_decay", "", _SAME, "none"),
    Difference("RmsNorm", "epsilon", "", "that of the element type", _SAME),
    Difference("RmsProp", "momentum", "", _SAME, "0.9"),
    Difference("RmsProp", "epsilon", "", _SAME, "1e-5"),
    Difference("RnntLoss", "where it is", "here", "in torchaudio", "here"),
    Difference("Sgd", "momentum", "", _SAME, "none; 0.9 with MomentumConfig"),
    Difference("Sgd", "dampening", "", _SAME, "0.1"),
    Difference("TransformerDecoderLayer", "activation", "", _SAME, "gelu"),
    Difference("TransformerEncoderLayer", "activation", "", _SAME, "gelu"),
)
