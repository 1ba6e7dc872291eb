"""What PyTorch calls the names of this package, and the errors made of it."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import getattr_static, signature
from typing import Any, Final, Never

from phlox_tensor import DeviceError, UnknownArgumentError, WrongTypeError
from phlox_tensor.arguments import misfit
from phlox_tensor.names import unknown_argument, unknown_name
from phlox_tensor.no_operand import Refusal

from .settings.elsewhere import NO_SETTINGS, SETTINGS, advice_for

_PADS: Final = {
    "CircularPad": 'mode="circular"',
    "ConstantPad": "value=3.5",
    "ReflectionPad": 'mode="reflect"',
    "ReplicationPad": 'mode="edge"',
}
_OF_AXES: Final = {  # of one to three axes there, of any number here
    "BatchNorm": "nn.BatchNorm(channels)",
    "Dropout": "nn.ChannelDropout(0.5)",
    "InstanceNorm": "nn.InstanceNorm(channels)",
    "LazyBatchNorm": "nn.BatchNorm(channels)  # sizes are given",
    "LazyConv": "nn.Conv{n}d(channels, 8, 3)  # sizes are given",
    "LazyConvTranspose": "nn.ConvTranspose{n}d(channels, 8, 3)  # sizes are given",
    "LazyInstanceNorm": "nn.InstanceNorm(channels)  # sizes are given",
}

# Names of the module ``torch.nn`` -> what to type. Those that differ in capitals alone are found.
NAMES: Final[Mapping[str, str]] = {
    **{
        f"{name}{n}d": f"nn.Pad({((1, 1),) * n}, {how})"
        for name, how in _PADS.items()
        for n in (1, 2, 3)
    },
    **{f"{name}{n}d": code.format(n=n) for name, code in _OF_AXES.items() for n in (1, 2, 3)},
    "AdaptiveLogSoftmaxWithLoss": "nn.CrossEntropyLoss()  # over all classes",
    "BCELoss": "nn.BinaryCrossEntropyLoss(from_logits=False)",
    "BCEWithLogitsLoss": "nn.BinaryCrossEntropyLoss()",
    "Buffer": "nn.State(x)",
    "BatchNormalization": "nn.BatchNorm(channels)  # channels are axis 1",
    "CELU": 'nn.Activation("celu", {"alpha": 1.0})',
    "Container": "nn.Module  # its fields are the parts",
    "CrossMapLRN2d": "nn.LocalResponseNorm(5)",
    "DataParallel": "train.Learner(..., group=distributed.init())  # a process for each device",
    "Dense": "nn.Linear(3, 8)  # sizes are given",
    "ELU": 'nn.Activation("elu", {"alpha": 1.0})',
    "FractionalMaxPool2d": "nn.AdaptiveMaxPool2d(2)  # windows at even places, none at random",
    "FractionalMaxPool3d": "nn.AdaptiveMaxPool3d(2)  # windows at even places, none at random",
    "GELU": 'nn.Activation("gelu")',
    "Hardshrink": 'nn.Activation("hard_shrink", {"threshold": 0.5})',
    "Hardsigmoid": 'nn.Activation("hard_sigmoid")',
    "Hardswish": 'nn.Activation("hard_swish")',
    "Hardtanh": 'nn.Activation("hard_tanh", {"min": -1.0, "max": 1.0})',
    "LazyLinear": "nn.Linear(3, 8)  # sizes are given",
    "LeakyReLU": 'nn.Activation("leaky_relu", {"slope": 0.01})',
    "LogSigmoid": 'nn.Activation("log_sigmoid")',
    "Mish": 'nn.Activation("mish")',
    "ModuleDict": "self.parts = {name: layer} in __init__",
    "ModuleList": "self.layers = [layer, layer] in __init__",
    "MultiLabelSoftMarginLoss": "nn.BinaryCrossEntropyLoss()  # of all classes, the same mean",
    "NLLLoss": "nn.CrossEntropyLoss()  # of logits, without log_softmax",
    "NLLLoss2d": "nn.CrossEntropyLoss()  # of logits, without log_softmax",
    "Parameter": "nn.Param(x)",
    "ParameterDict": "self.weights = {name: nn.Param(x)} in __init__",
    "ParameterList": "self.weights = [nn.Param(x)] in __init__",
    "RNNBase": "nn.Rnn(3, 8)  # or nn.Gru, nn.Lstm",
    "RNNCellBase": "nn.RnnCell(3, 8)  # or nn.GruCell, nn.LstmCell",
    "ReLU": 'nn.Activation("relu")',
    "ReLU6": 'nn.Activation("relu6")',
    "SELU": 'nn.Activation("selu")',
    "SiLU": 'nn.Activation("silu")',
    "Sigmoid": 'nn.Activation("sigmoid")',
    "Softmax2d": "nn.Softmax(axis=1)",
    "Softplus": 'nn.Activation("softplus")',
    "Softshrink": 'nn.Activation("soft_shrink", {"threshold": 0.5})',
    "Softsign": 'nn.Activation("softsign")',
    "SyncBatchNorm": "nn.BatchNorm(channels, synchronized=True)",
    "Tanh": 'nn.Activation("tanh")',
    "Tanhshrink": 'nn.Activation("tanh_shrink")',
    "Threshold": 'nn.Activation("threshold", {"threshold": 0.1, "value": 20.0})',
    "Transformer": "nn.TransformerEncoder, nn.TransformerDecoder  # two parts of a module",
    "TripletMarginWithDistanceLoss": "nn.TripletMarginLoss()  # or (near - far + 1.0).relu()",
    "UninitializedBuffer": "nn.State(x)  # sizes are given",
    "UninitializedParameter": "nn.Param(x)  # sizes are given",
    "Upsample": "nn.Interpolate(scale_factor=2)",
    "UpsamplingBilinear2d": 'nn.Interpolate(scale_factor=2, mode="linear", align_corners=True)',
    "UpsamplingNearest2d": "nn.Interpolate(scale_factor=2)",
    "ZeroPad1d": "nn.Pad(((1, 1),))",
    "ZeroPad2d": "nn.Pad(((1, 1), (1, 1)))",
    "ZeroPad3d": "nn.Pad(((1, 1), (1, 1), (1, 1)))",
    "clip_grad_norm_": "optim.SgdConfig(grad_clipping=optim.ClipByGlobalNorm(1.0))",
    "clip_grad_value_": "optim.SgdConfig(grad_clipping=optim.ClipByValue(1.0))",
    "functional": "px.relu(x): functions of tensors are in phlox itself",
    "init": "nn.initializers",
    "parallel": "train.Learner(..., group=distributed.init())",
    "utils": "nn.weight_norm, nn.spectral_norm; "
    "optim.SgdConfig(grad_clipping=optim.ClipByGlobalNorm(1.0))",
}

# Names of ``torch.nn.init`` -> what to type; sizes are those of what is made.
INITIALIZERS: Final[Mapping[str, str]] = {
    "constant_": 'layer = nn.initialize(layer, nn.initializers.Constant(0.5), "bias")',
    "dirac_": "layer = layer.replace(weight=nn.Param(x))",
    "eye_": "layer = layer.replace(weight=nn.Param(px.eye(3)))",
    "kaiming_normal_": "layer = nn.initialize(layer, nn.initializers.KaimingNormal(), 'weight')",
    "kaiming_uniform_": "layer = nn.initialize(layer, nn.initializers.KaimingUniform(), 'weight')",
    "normal_": 'layer = nn.initialize(layer, nn.initializers.Normal(std=0.02), "weight")',
    "ones_": 'layer = nn.initialize(layer, nn.initializers.Ones(), "weight")',
    "orthogonal_": 'layer = nn.initialize(layer, nn.initializers.Orthogonal(), "weight")',
    "sparse_": "layer = layer.replace(weight=nn.Param(x))",
    "trunc_normal_": "layer = nn.initialize(layer, nn.initializers.TruncatedNormal(std=0.02), "
    '"weight")',
    "uniform_": 'layer = nn.initialize(layer, nn.initializers.Uniform(-0.1, 0.1), "weight")',
    "xavier_normal_": 'layer = nn.initialize(layer, nn.initializers.XavierNormal(), "weight")',
    "xavier_uniform_": 'layer = nn.initialize(layer, nn.initializers.XavierUniform(), "weight")',
    "zeros_": 'layer = nn.initialize(layer, nn.initializers.Zeros(), "bias")',
}

# Names of a module of PyTorch -> what to type.
METHODS: Final[Mapping[str, str]] = {
    "add": "model = nn.Sequential(*model.layers, layer)",
    "add_module": "model = model.replace(name=layer)",
    "append": "model = nn.Sequential(*model.layers, layer)",
    "apply": "nn.visit_modules(model, function)",
    "bfloat16": 'model = model.to_device(px.Mixed(device, "bfloat16"))',
    "buffers": 'model.params(role="state")',
    "children": "nn.modules(model)  # all of them, by their paths",
    "compile": "px.compile(model)",
    "cpu": 'model = model.to_device("cpu")',
    "cuda": 'model = model.to_device("wgpu")',
    "device": "model.devices",
    "double": 'model = model.to_device(px.Autodiff(px.Cpu(float="float64")))',
    "eval": "model = model.valid()",
    "evaluate": "model.valid()(x); px.train.evaluate(model, step, batches, [px.train.Accuracy()])",
    "extend": "model = nn.Sequential(*model.layers, *layers)",
    "fit": "px.train.fit(model, step, batches, optimizer=optimizer, lr=0.1)",
    "float": "model = model.to_device(px.Autodiff(px.Cpu()))  # px.Cpu() alone trains nothing",
    "from_pretrained": 'model = model.load_file(path, layout="pytorch"); of a table it is '
    "layer = layer.replace(weight=nn.Param(table))",
    "get_parameter": 'model.path("layers.0.weight")',
    "get_submodule": 'model.path("layers.0")',
    "get_weights": "model.params()",
    "half": 'model = model.to_device(px.Mixed(device, "float16"))',
    "insert": "model = nn.Sequential(*model.layers[:i], layer, *model.layers[i:])",
    "load": "model = model.load_file(path)",
    "load_state_dict": 'model = model.load_record(record, layout="pytorch")',
    "load_weights": "model = model.load_file(path)",
    "modules": "nn.modules(model)",
    "named_buffers": 'model.params(role="state").items()',
    "named_children": "nn.modules(model)  # all of them, by their paths",
    "named_modules": "nn.modules(model)",
    "named_parameters": "model.params().items()",
    "no_sync": "train.Learner(model, optimizer, 0.1, microbatches=8, group=group)",
    "parameters": "model.params(); a step takes the model: optimizer.step(0.1, model, grads)",
    "predict": "model.valid()(x); px.train.predict(model, lambda m, batch: m(batch), batches)",
    "register_buffer": "self.mean = nn.State(x) in __init__",
    "register_forward_hook": "def forward(self, x): y = self.layer(x); look(y); return y",
    "register_module": "self.layer = layer in __init__",
    "register_parameter": "self.weight = nn.Param(x) in __init__",
    "requires_grad_": "model = model.freeze(), or model.unfreeze()",
    "save": "model.save_file(path)",
    "save_weights": "model.save_file(path)",
    "set_weights": "model = model.load_record(record)",
    "state_dict": "model.into_record()",
    "summary": "nn.summary(model, x)",
    "to": "model = model.to_device(device)",
    "trainable": "model = model.freeze(), or model.unfreeze()",
    "zero_grad": "grads = loss.backward(): gradients are values, and there is nothing to reset",
}

# Settings of the same name, which PyTorch's layers show as attributes.
_SAME_SETTINGS: Final = ("dilation", "groups", "kernel_size", "momentum", "padding", "stride")

# PyTorch's words for arguments of calls -> ours.
ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "attn_mask": ("mask",),
    "h0": ("state",),
    "hx": ("state",),
    "initial_state": ("state",),
    "input": ("x",),
    "key_padding_mask": ("padding",),
    "memory_key_padding_mask": ("memory_padding",),
    "output_size": ("size",),
    "per_sample_weights": ("shares",),
    "src_key_padding_mask": ("padding",),
    "src_mask": ("mask",),
    "target": ("targets",),
    "tgt_is_causal": ("is_causal",),
    "tgt_key_padding_mask": ("padding",),
    "tgt_mask": ("mask",),
    "use_causal_mask": ("is_causal",),
}
# Arguments of calls that are none here -> what to do.
NO_ARGUMENTS: Final[Mapping[str, str]] = {
    "deterministic": "model.valid() is for inference, model.train(device) for training",
    "mask": "lengths=..., how many steps of each sequence count",
    "need_weights": "leave it out: the output alone is returned",
    "return_attention_scores": "leave it out: the output alone is returned",
    "rng": "px.seed(0) before it: layers draw from one stream",
    "rngs": "px.seed(0) before it: layers draw from one stream",
    "sample_weight": 'a loss of reduction="none", and a weighted mean of what it gives',
    "training": "model.valid() is for inference, model.train(device) for training",
}
# Names of what tokenizers give -> the argument here, and what to type.
_OF_TOKENIZERS: Final[Mapping[str, tuple[str, str]]] = {
    "attention_mask": ("padding", "padding=attention_mask == 0"),
    "input_ids": ("tokens", "tokens=input_ids"),
    "position_ids": ("kinds", "leave it out: the places of tokens are 0, 1, 2, …"),
    "token_type_ids": ("kinds", "kinds=token_type_ids"),
}


def odd_call(
    layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> UnknownArgumentError | WrongTypeError | None:
    """Return the error for an argument that ``forward`` does not take; None if it takes all."""
    forward: Any = type(layer).forward
    known, kind = [*signature(forward).parameters][1:], type(layer).__name__
    advice = {word: code for word, (ours, code) in _OF_TOKENIZERS.items() if ours in known}
    settings = getattr(type(getattr(layer, "settings", None)), "__dataclass_fields__", ())
    own = advice_for(f"{kind}Config", vars(layer.settings), [*settings]) if settings else {}
    for word in kwargs:
        ours = [name for name in (word, *SETTINGS.get(word, ())) if name in settings]
        name = f"{kind}Config.{word}"
        if code := own.get(name, NO_SETTINGS.get(name)):
            advice[word] = code
        elif ours:
            advice[word] = f"nn.{kind}(..., {ours[0]}=...): it is a setting"
    advice = {**NO_ARGUMENTS, **advice}
    unknown = unknown_argument(kind, kwargs, known, ARGUMENTS, advice)
    return unknown or misfit(forward, (layer, *args), kwargs)


class _Hint(Refusal):
    """Stands on a class for a name that it lacks: reading it raises the error that says more."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        """Say which name."""
        self.name = name

    def __get__(self, instance: object, owner: type) -> Never:
        settings = getattr(type(getattr(instance, "settings", None)), "__dataclass_fields__", ())
        places = [n for n in (*SETTINGS.get(self.name, ()), self.name) if n in settings]
        if not places and self.name not in METHODS:
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}")
        code = f"layer.settings.{places[0]}" if places else METHODS[self.name]
        raise unknown_name(self.name, owner.__name__, {self.name: code}, ())


def install(cls: type) -> None:
    """Put a hint on the class of modules for each name of PyTorch's that it lacks."""
    names = {*METHODS, *SETTINGS, *_SAME_SETTINGS}
    for name in names:
        setattr(cls, name, _Hint(name))

    def listed(self: object) -> list[str]:
        hints = {n for n in names if isinstance(getattr_static(self, n), _Hint)}
        return sorted(n for n in object.__dir__(self) if n not in hints)

    setattr(cls, "__dir__", listed)  # noqa: B010 - checkers know only the one of object


def check_device(given: object) -> None:
    """Refuse ``train()`` as PyTorch has it."""
    if given is None or isinstance(given, bool):
        raise DeviceError(
            "train",
            "training needs a device that records",
            got="no device" if given is None else repr(given),
            expected="a device that records",
            hint="model = model.train(Autodiff(Cpu())); model.valid() is for inference",
        )


def no_forward(module: Any) -> WrongTypeError:
    """Return the error for a call of a module that only holds others."""
    kind = type(module).__name__
    return WrongTypeError(
        "module",
        f"{kind} has no method 'forward' to call",
        hint=f"def forward(self, x): ... in {kind}, or call a module inside of it",
    )


# Models of torchvision and transformers -> what to type.
MODELS: Final[Mapping[str, str]] = {
    "BertModel": "nn.models.BertConfig().init()",
    "CLIPModel": "nn.models.ClipConfig().init()",
    "ConvNextForImageClassification": "nn.models.ConvNextConfig().init()",
    "GPT2LMHeadModel": "nn.models.GptConfig().init()",
    "LlamaForCausalLM": "nn.models.LlamaConfig().init()",
    "VisionTransformer": "nn.models.ViTConfig().init()",
    "WhisperForConditionalGeneration": "nn.models.WhisperConfig().init()",
    "convnext_tiny": "nn.models.ConvNextConfig().init()",
    "efficientnet_lite0": "nn.models.EfficientNetLiteConfig().init()",
    "mobilenet_v2": "nn.models.MobileNetV2Config().init()",
    "resnet101": "nn.models.ResNetConfig((3, 4, 23, 3), True).init()",
    "resnet34": "nn.models.ResNetConfig((3, 4, 6, 3)).init()",
    "vit_b_16": "nn.models.ViTConfig().init()",
}
