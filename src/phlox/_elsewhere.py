"""What PyTorch and Burn call our layers and optimizers, and where what they do differs."""

from __future__ import annotations

from typing import Final, NamedTuple

_PADS: Final = ", ".join(
    f"{kind}Pad{axes}d"
    for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero")
    for axes in (1, 2, 3)
)

# Our name: PyTorch's classes, Burn's module; "=" is our name, "" is none.
LAYERS: Final[dict[str, tuple[str, str]]] = {
    "Activation": ("ReLU, GELU, SiLU, …", "="),
    "AdaptiveAvgPool1d": ("=", "="),
    "AdaptiveAvgPool2d": ("=", "="),
    "AdaptiveAvgPool3d": ("=", "="),
    "AdaptiveMaxPool1d": ("=", ""),
    "AdaptiveMaxPool2d": ("=", ""),
    "AdaptiveMaxPool3d": ("=", ""),
    "AlphaDropout": ("=", ""),
    "AvgPool1d": ("=", "="),
    "AvgPool2d": ("=", "="),
    "AvgPool3d": ("=", ""),
    "BatchNorm": ("BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm", "="),
    "Bilinear": ("=", ""),
    "BinaryCrossEntropyLoss": ("BCEWithLogitsLoss, BCELoss", "="),
    "ChannelDropout": ("Dropout1d, Dropout2d, Dropout3d", ""),
    "ChannelShuffle": ("=", ""),
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
    "EmbeddingBag": ("=", ""),
    "FeatureAlphaDropout": ("=", ""),
    "FeedForward": ("", "PositionWiseFeedForward"),
    "Flatten": ("=", ""),
    "Fold": ("=", "Fold4d"),
    "GaussianNllLoss": ("GaussianNLLLoss", "GaussianNLLLoss"),
    "GaussianNoise": ("", "="),
    "Glu": ("GLU", "GLU"),
    "GroupNorm": ("=", "="),
    "Gru": ("GRU", "Gru, BiGru"),
    "GruCell": ("GRUCell", ""),
    "HingeEmbeddingLoss": ("=", "="),
    "HuberLoss": ("=", "="),
    "Identity": ("=", "="),
    "InstanceNorm": ("InstanceNorm1d, InstanceNorm2d, InstanceNorm3d", "="),
    "Interpolate": (
        "Upsample, UpsamplingNearest2d, UpsamplingBilinear2d",
        "Interpolate1d, Interpolate2d",
    ),
    "KlDivLoss": ("KLDivLoss", "KLDivLoss"),
    "L1Loss": ("=", "LpLoss"),
    "LayerNorm": ("=", "="),
    "LearnedEncoding": ("", ""),
    "Linear": ("=", "="),
    "LocalResponseNorm": ("LocalResponseNorm, CrossMapLRN2d", "="),
    "LogSoftmax": ("=", ""),
    "LpLoss": ("", "="),
    "LpPool1d": ("LPPool1d", ""),
    "LpPool2d": ("LPPool2d", ""),
    "LpPool3d": ("LPPool3d", ""),
    "Lstm": ("LSTM", "Lstm, BiLstm"),
    "LstmCell": ("LSTMCell", ""),
    "MarginRankingLoss": ("=", "="),
    "MaxPool1d": ("=", "="),
    "MaxPool2d": ("=", "="),
    "MaxPool3d": ("=", ""),
    "MaxUnpool1d": ("=", ""),
    "MaxUnpool2d": ("=", ""),
    "MaxUnpool3d": ("=", ""),
    "MseLoss": ("MSELoss", "="),
    "MultiHeadAttention": ("MultiheadAttention", "MultiHeadAttention, CrossAttention"),
    "MultiLabelMarginLoss": ("=", ""),
    "MultiMarginLoss": ("=", "="),
    "PRelu": ("PReLU", "="),
    "Pad": (_PADS, "PaddingConfig2d"),
    "PairwiseDistance": ("=", "="),
    "PixelShuffle": ("=", "="),
    "PixelUnshuffle": ("=", "="),
    "PoissonNllLoss": ("PoissonNLLLoss", "="),
    "RRelu": ("RReLU", "="),
    "RmsNorm": ("RMSNorm", "="),
    "Rnn": ("RNN", "Rnn, BiRnn"),
    "RnnCell": ("RNNCell", ""),
    "RnntLoss": ("", "RNNTLoss"),
    "RotaryEncoding": ("", "="),
    "SinusoidalEncoding": ("", "PositionalEncoding"),
    "SmoothL1Loss": ("=", "="),
    "SoftMarginLoss": ("=", "="),
    "Softmax": ("Softmax, Softmax2d", "="),
    "Softmin": ("=", ""),
    "SwiGlu": ("", "="),
    "TransformerDecoder": ("=", "="),
    "TransformerDecoderLayer": ("=", "="),
    "TransformerEncoder": ("=", "="),
    "TransformerEncoderLayer": ("=", "="),
    "TripletMarginLoss": ("=", "="),
    "Unflatten": ("=", ""),
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
    Difference("AdaptiveMaxPool2d", "slope at ties", "shared", "of the first", "of the first"),
    Difference("BatchNorm", "num_batches_tracked", "with momentum=None", "always", "none"),
    Difference("BatchNorm", "running variance", "unbiased", _SAME, "biased"),
    Difference("BinaryCrossEntropyLoss", "from_logits", "", "a class for each", "logits = False"),
    Difference(
        "Conv2d", "padding", "", "0; 'same' with a stride of 1 alone; no uneven sides", _SAME
    ),
    Difference("Conv2d", "padding of other kinds", "nn.Pad before it", "padding_mode", "none"),
    Difference("CrossEntropyLoss", "axis of the classes", "the last", "1", "1 of (N, classes)"),
    Difference("CrossEntropyLoss", "targets", "class indices", "or probabilities", _SAME),
    Difference("CrossEntropyLoss", "pad_tokens", "", "ignore_index = -100, one", _SAME),
    Difference("Dropout", "prob", "", _SAME, "no default"),
    Difference("Embedding", "an index of -1", "the last row", "refused", "refused"),
    Difference("EmbeddingBag", "bags", "(bags, length)", "or a line and offsets", "none"),
    Difference("EmbeddingBag", "slope of max at ties", "shared", "of the first", "none"),
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
    Difference("LogSoftmax", "axis", "", "None: 0 or 1 by the number of axes", "none"),
    Difference(
        "LpPool1d", "windows cut off", "the sum of what is there", "scaled up to whole", "none"
    ),
    Difference(
        "LpPool2d", "windows cut off", "the sum of what is there", "scaled up to whole", "none"
    ),
    Difference(
        "LpPool3d", "windows cut off", "the sum of what is there", "scaled up to whole", "none"
    ),
    Difference("Lstm", "first values", "uniform, ±1 / √d_hidden", _SAME, "XavierNormal"),
    Difference("Lstm", "axes", "(batch, length, size)", "(length, batch, size)", _SAME),
    Difference("MaxPool1d", "places", "pool.with_indices(x)", "return_indices=True", "none"),
    Difference("MaxPool2d", "places", "pool.with_indices(x)", "return_indices=True", "none"),
    Difference("MaxPool3d", "places", "pool.with_indices(x)", "return_indices=True", "none"),
    Difference("MultiHeadAttention", "dropout", "", _SAME, "0.1"),
    Difference(
        "MultiHeadAttention",
        "a mask of three axes",
        "(N · n_heads, Q, K) or (1, Q, K)",
        "(N · num_heads, Q, K)",
        "(N, Q, K)",
    ),
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
    Difference("Softmax", "axis", "", "None: 0 or 1 by the number of axes", "no default"),
    Difference("Softmin", "axis", "", "None: 0 or 1 by the number of axes", "none"),
    Difference("TransformerDecoderLayer", "activation", "", _SAME, "gelu"),
    Difference("TransformerEncoderLayer", "activation", "", _SAME, "gelu"),
)
