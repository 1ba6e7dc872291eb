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


# Our functions that put another form in the place of weights, as LAYERS.
WEIGHTS: Final[dict[str, tuple[str, str]]] = {
    "apply_lora": ("peft.LoraConfig, get_peft_model", "apply_lora"),
    "quantize_weights": ("torchao.quantize_", "quantize_weights"),
    "spectral_norm": ("utils.parametrizations.spectral_norm", ""),
    "weight_norm": ("utils.parametrizations.weight_norm", ""),
}


class Difference(NamedTuple):
    """Where a setting, or what is done, is not the same everywhere."""

    name: str  # a layer, an optimizer, a schedule, or what changes weights
    what: str  # a setting, whose default is meant, or a word for what is done
    ours: str  # "" for the default of the setting
    pytorch: str
    burn: str
    why: str = "as PyTorch"  # why it is as it is here; said wherever PyTorch differs


_SAME = "as here"
_CUT: Final = "the norm of what is there, without a guess"
_AFTER: Final = "the state that goes back has one size"
_EXAMPLE: Final = "it is of each example; nn.BatchNorm keeps them"
_FILE: Final = "a config, which is saved and read as data"
_LLAMA: Final = "with gated, rotary and n_heads_kv it is a layer of Llama"
_ROW: Final = "layer.keys_values(x).extended(zeros) has it"
_TWO: Final = "those of queries, keys and values go together"
_NORM: Final = "no sum is negative, so that no root is nan"
_ONE: Final = "a layer gives one kind of result"
_TIES: Final = "none of equal elements is preferred"
DIFFERENCES: Final[tuple[Difference, ...]] = (
    Difference("Activation", "slope of hard_sigmoid", "1 / 6", _SAME, "0.2"),
    Difference("AdaGrad", "epsilon", "", _SAME, "1e-5"),
    Difference(
        "Adafactor",
        "epsilon",
        "",
        "(None, 1e-3), with least_scale",
        "none",
        "that of the paper is least_scale",
    ),
    Difference("Adam", "epsilon", "", _SAME, "1e-5"),
    Difference("AdamW", "epsilon", "", _SAME, "1e-5"),
    Difference("AdamW", "weight_decay", "", _SAME, "1e-4"),
    Difference("Adan", "proximal", "", "none", "no_prox = False, the same", "that of the paper"),
    Difference(
        "AdaptiveMaxPool2d", "slope at ties", "shared", "of the first", "of the first", _TIES
    ),
    Difference(
        "BatchNorm",
        "num_batches_tracked",
        "with momentum=None",
        "always",
        "none",
        "nobody else reads it",
    ),
    Difference("BatchNorm", "running variance", "unbiased", _SAME, "biased"),
    Difference(
        "BinaryCrossEntropyLoss",
        "from_logits",
        "",
        "a class for each",
        "logits = False",
        "one layer, whose default is the stable one",
    ),
    Difference(
        "BinaryCrossEntropyLoss",
        "weight of each element",
        'reduction="none" and a product',
        "weight; our weights are its pos_weight",
        "none",
        "one weight, of the yes",
    ),
    Difference(
        "Conv2d",
        "padding",
        "",
        "0; 'same' with a stride of 1 alone; no uneven sides",
        _SAME,
        "the same words for every window",
    ),
    Difference(
        "Conv2d",
        "padding of other kinds",
        "nn.Pad before it",
        "padding_mode",
        "none",
        "a margin is a step of its own",
    ),
    Difference(
        "CosineEmbeddingLoss",
        "rows shorter than 1e-5",
        "the cosine, by norms of at least 1e-8",
        "1e-12 is added to the square of each norm",
        "by norms of at least the least normal number",
        "the cosine of nn.CosineSimilarity",
    ),
    Difference(
        "CrossEntropyLoss",
        "axis of the classes",
        "the last",
        "1",
        "1 of (N, classes)",
        "as softmax and linear have it",
    ),
    Difference("CrossEntropyLoss", "predictions", "logits", _SAME, "or shares, logits=False"),
    Difference(
        "CrossEntropyLoss",
        "pad_tokens",
        "",
        "ignore_index = -100, one",
        _SAME,
        "several tokens fill up; none does unless told",
    ),
    Difference(
        "CtcLoss",
        "axes",
        "(batch, length, classes)",
        "(length, batch, classes)",
        "(length, batch, classes)",
        "the batch comes first everywhere",
    ),
    Difference("Dropout", "prob", "", _SAME, "no default"),
    Difference(
        "Embedding", "an index of -1", "the last row", "refused", "refused", "as indices everywhere"
    ),
    Difference(
        "EmbeddingBag",
        "bags",
        "(bags, length)",
        "or a line and offsets",
        "none",
        "a batch has one shape",
    ),
    Difference("EmbeddingBag", "slope of max at ties", "shared", "of the first", "none", _TIES),
    Difference("InstanceNorm", "affine", "", _SAME, "True"),
    Difference("InstanceNorm", "running statistics", "none", "can be kept", "none", _EXAMPLE),
    Difference("Interpolate", "align_corners", "", _SAME, "True"),
    Difference(
        "Interpolate",
        "places with scale_factor",
        "by the sizes",
        "by the factor, unless recompute_scale_factor=True",
        "by the sizes",
        "the same picture for equal sizes",
    ),
    Difference(
        "Lbfgs", "rate", "argument of step", "lr = 1", "argument of step", "as of every optimizer"
    ),
    Difference(
        "Linear",
        "layout of the weight",
        "(in, out)",
        "(out, in)",
        "(in, out), Row",
        "x @ weight, without a transpose",
    ),
    Difference(
        "LogSoftmax",
        "axis",
        "",
        "None: 0 or 1 by the number of axes",
        "none",
        "one axis, whatever the shape",
    ),
    Difference(
        "LpPool1d",
        "windows cut off",
        "the sum of what is there",
        "scaled up to whole",
        "none",
        _CUT,
    ),
    Difference("LpPool1d", "an odd p", "the norm: |x|^p", "x^p with signs", "none", _NORM),
    Difference(
        "LpPool2d",
        "windows cut off",
        "the sum of what is there",
        "scaled up to whole",
        "none",
        _CUT,
    ),
    Difference("LpPool2d", "an odd p", "the norm: |x|^p", "x^p with signs", "none", _NORM),
    Difference(
        "LpPool3d",
        "windows cut off",
        "the sum of what is there",
        "scaled up to whole",
        "none",
        _CUT,
    ),
    Difference("LpPool3d", "an odd p", "the norm: |x|^p", "x^p with signs", "none", _NORM),
    Difference("Lstm", "first values", "uniform, ±1 / √d_hidden", _SAME, "XavierNormal"),
    Difference(
        "Lstm",
        "axes",
        "(batch, length, size)",
        "(length, batch, size)",
        _SAME,
        "the batch comes first everywhere",
    ),
    Difference("Lstm", "proj_size", "nn.Linear after it", "goes back, too", "none", _AFTER),
    Difference("MaxPool1d", "places", "pool.with_indices(x)", "return_indices=True", "none", _ONE),
    Difference("MaxPool2d", "places", "pool.with_indices(x)", "return_indices=True", "none", _ONE),
    Difference("MaxPool3d", "places", "pool.with_indices(x)", "return_indices=True", "none", _ONE),
    Difference(
        "MultiHeadAttention", "quiet_softmax", "one more key", "add_zero_attn", "a flag", _ROW
    ),
    Difference("MultiHeadAttention", "biases", "bias, output_bias", "bias", "four flags", _TWO),
    Difference("MultiHeadAttention", "dropout", "", _SAME, "0.1"),
    Difference(
        "MultiHeadAttention",
        "a mask of three axes",
        "(N · n_heads, Q, K) or (1, Q, K)",
        "(N · num_heads, Q, K)",
        "(N, Q, K)",
        "one for all examples is meant often",
    ),
    Difference("MultiHeadAttention", "what is masked", "-inf", _SAME, "-1e4"),
    Difference(
        "MultiHeadAttention",
        "result",
        "one tensor",
        "a pair with the weights",
        "with the weights",
        _ONE,
    ),
    Difference(
        "MultiHeadAttention",
        "axes",
        "(batch, length, size)",
        "(length, batch, size)",
        _SAME,
        "the batch comes first everywhere",
    ),
    Difference("Muon", "weight_decay", "", _SAME, "none"),
    Difference(
        "Muon",
        "rounding of products",
        "in the type of the gradient",
        "in bfloat16",
        _SAME,
        "the same for every element type",
    ),
    Difference(
        "RmsNorm",
        "epsilon",
        "",
        "that of the element type",
        _SAME,
        "the same result for every element type",
    ),
    Difference("RmsProp", "momentum", "", _SAME, "0.9"),
    Difference("RmsProp", "epsilon", "", _SAME, "1e-5"),
    Difference("RnntLoss", "predictions", "logits", _SAME, "or logarithms, logits=False"),
    Difference("RnntLoss", "where it is", "here", "in torchaudio", "here", "a loss as others"),
    Difference("RotaryEncoding", "scaling", "", "none", "a function", _FILE),
    Difference("Sgd", "momentum", "", _SAME, "none; 0.9 with MomentumConfig"),
    Difference("Sgd", "dampening", "", _SAME, "0.1"),
    Difference(
        "Softmax",
        "axis",
        "",
        "None: 0 or 1 by the number of axes",
        "no default",
        "one axis, whatever the shape",
    ),
    Difference(
        "Softmin",
        "axis",
        "",
        "None: 0 or 1 by the number of axes",
        "none",
        "one axis, whatever the shape",
    ),
    Difference("TransformerDecoderLayer", "activation", "", _SAME, "gelu"),
    Difference("TransformerEncoderLayer", "activation", "", _SAME, "gelu"),
    Difference("TransformerEncoderLayer", "norm", "", "LayerNorm alone", "LayerNorm alone", _LLAMA),
    Difference(
        "spectral_norm",
        "when the vectors move",
        "at optimizer.step",
        "at each forward",
        "none",
        "modules never change",
    ),
    Difference(
        "weight_norm",
        "which weights",
        "all of two axes, or those of paths",
        "one of one layer, by name",
        "none",
        "as apply_lora and quantize_weights",
    ),
)
