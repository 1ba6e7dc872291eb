"""What PyTorch and Burn call our layers and optimizers, and where what they do differs."""

from __future__ import annotations

from csv import DictReader
from pathlib import Path
from typing import Final, NamedTuple

_PADS: Final = ", ".join(
    f"{kind}Pad{axes}d"
    for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero")
    for axes in (1, 2, 3)
)

# Layers that both call by our name.
_EVERYWHERE: Final = """
    AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AvgPool1d AvgPool2d Conv1d Conv2d
    Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d CosineEmbeddingLoss
    CosineSimilarity CrossEntropyLoss Dropout Embedding GroupNorm HingeEmbeddingLoss HuberLoss
    Identity LayerNorm Linear MarginRankingLoss MaxPool1d MaxPool2d MultiMarginLoss
    PairwiseDistance PixelShuffle PixelUnshuffle SmoothL1Loss SoftMarginLoss
    TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer
    TripletMarginLoss
"""
# Layers that PyTorch calls by our name, and Burn lacks.
_IN_PYTORCH: Final = """
    AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d AlphaDropout AvgPool3d Bilinear
    ChannelShuffle EmbeddingBag FeatureAlphaDropout Flatten LinearCrossEntropyLoss LogSoftmax
    MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d MultiLabelMarginLoss Softmin Unflatten
"""
# Our name: PyTorch's classes, Burn's module; "=" is our name, "" is none.
LAYERS: Final[dict[str, tuple[str, str]]] = {
    **dict.fromkeys(_EVERYWHERE.split(), ("=", "=")),
    **dict.fromkeys(_IN_PYTORCH.split(), ("=", "")),
    "Activation": ("ReLU, GELU, SiLU, …", "="),
    "BatchNorm": ("BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm", "="),
    "BinaryCrossEntropyLoss": ("BCEWithLogitsLoss, BCELoss", "="),
    "ChannelDropout": ("Dropout1d, Dropout2d, Dropout3d", ""),
    "CtcLoss": ("CTCLoss", "CTCLoss"),
    "DeformConv2d": ("", "="),
    "FeedForward": ("", "PositionWiseFeedForward"),
    "Fold": ("=", "Fold4d"),
    "GaussianNllLoss": ("GaussianNLLLoss", "GaussianNLLLoss"),
    "GaussianNoise": ("", "="),
    "Glu": ("GLU", "GLU"),
    "Gru": ("GRU", "Gru, BiGru"),
    "GruCell": ("GRUCell", ""),
    "InstanceNorm": ("InstanceNorm1d, InstanceNorm2d, InstanceNorm3d", "="),
    "Interpolate": (
        "Upsample, UpsamplingNearest2d, UpsamplingBilinear2d",
        "Interpolate1d, Interpolate2d",
    ),
    "KlDivLoss": ("KLDivLoss", "KLDivLoss"),
    "L1Loss": ("=", "LpLoss"),
    "LearnedEncoding": ("", ""),
    "LocalResponseNorm": ("LocalResponseNorm, CrossMapLRN2d", "="),
    "LpLoss": ("", "="),
    "LpPool1d": ("LPPool1d", ""),
    "LpPool2d": ("LPPool2d", ""),
    "LpPool3d": ("LPPool3d", ""),
    "Lstm": ("LSTM", "Lstm, BiLstm"),
    "LstmCell": ("LSTMCell", ""),
    "MseLoss": ("MSELoss", "="),
    "MultiHeadAttention": ("MultiheadAttention", "MultiHeadAttention, CrossAttention"),
    "PRelu": ("PReLU", "="),
    "Pad": (_PADS, "PaddingConfig2d"),
    "PoissonNllLoss": ("PoissonNLLLoss", "="),
    "RRelu": ("RReLU", "="),
    "RmsNorm": ("RMSNorm", "="),
    "Rnn": ("RNN", "Rnn, BiRnn"),
    "RnnCell": ("RNNCell", ""),
    "RnntLoss": ("", "RNNTLoss"),
    "RotaryEncoding": ("", "="),
    "SinusoidalEncoding": ("", "PositionalEncoding"),
    "Softmax": ("Softmax, Softmax2d", "="),
    "SwiGlu": ("", "="),
    "Unfold": ("=", "Unfold4d"),
}

OPTIMIZERS: Final[dict[str, tuple[str, str]]] = {
    "AdaGrad": ("Adagrad", "="),
    "Adafactor": ("=", "="),
    "Adam": ("=", "="),
    "AdamW": ("=", "="),
    "Adan": ("", "="),
    "Lbfgs": ("LBFGS", "LBFGS"),
    "Lion": ("", "="),
    "Muon": ("=", "="),
    "RmsProp": ("RMSprop", "="),
    "Sgd": ("SGD", "="),
}


class Difference(NamedTuple):
    """Where a setting, or what is done, is not the same everywhere."""

    name: str  # a layer, an optimizer, a schedule, or what changes weights
    what: str  # a setting, whose default is meant, or a word for what is done
    ours: str  # "" for the default of the setting
    pytorch: str
    burn: str
    why: str = "as PyTorch"  # why it is as it is here; said wherever PyTorch differs


_FILE: Final = Path(__file__).with_name("differences.csv")
with _FILE.open(encoding="utf-8", newline="") as _rows:
    DIFFERENCES: Final = tuple(Difference(**row) for row in DictReader(_rows))
