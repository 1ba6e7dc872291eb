"""The models of ``nn.models`` in PyTorch: functions of weights by their published names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from phlox.nn import models

Array = np.ndarray[Any, Any]


class Weights:
    """The weights by name, and layers of ``torch.nn.functional`` that are called by a name."""

    def __init__(self, functional: Any, tensors: dict[str, Any], *, training: bool) -> None:
        self.f = functional
        self.tensors = tensors
        self.training = training

    def __getitem__(self, name: str) -> Any:
        return self.tensors[name]

    def inside(self, start: str) -> list[str]:
        """The names of parts: what follows ``start`` up to the next dot, in order."""
        names = [n.removeprefix(start).split(".")[0] for n in self.tensors if n.startswith(start)]
        return sorted(set(names), key=lambda n: (len(n), n))

    def linear(self, x: Any, name: str) -> Any:
        return self.f.linear(x, self[f"{name}.weight"], self.tensors.get(f"{name}.bias"))

    def conv(self, x: Any, name: str, stride: int = 1, groups: int = 1) -> Any:
        weight, bias = self[f"{name}.weight"], self.tensors.get(f"{name}.bias")
        return self.f.conv2d(x, weight, bias, stride, weight.shape[2] // 2, groups=groups)

    def batch_norm(self, x: Any, name: str) -> Any:
        mean, var, weight, bias = (
            self[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")
        )
        return self.f.batch_norm(x, mean, var, weight, bias, training=self.training)

    def layer_norm(self, x: Any, name: str, epsilon: float) -> Any:
        weight, bias = self[f"{name}.weight"], self[f"{name}.bias"]
        return self.f.layer_norm(x, weight.shape, weight, bias, epsilon)

    def attention(self, q: Any, k: Any, v: Any, heads: int, **settings: Any) -> Any:
        split = [x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v)]
        found = self.f.scaled_dot_product_attention(*split, **settings)
        return found.transpose(1, 2).flatten(2)


def resnet(w: Weights, images: Any) -> Any:
    """He et al., 2015, as torchvision names it."""

    def block(x: Any, at: str, stride: int) -> Any:
        parts = [n for n in ("conv1", "conv2", "conv3") if f"{at}.{n}.weight" in w.tensors]
        y, strided = x, "conv2" if len(parts) == 3 else "conv1"
        for part in parts:
            y = w.conv(y, f"{at}.{part}", stride if part == strided else 1)
            y = w.batch_norm(y, f"{at}.bn{part[-1]}")
            y = y if part == parts[-1] else y.relu()
        if f"{at}.downsample.0.weight" in w.tensors:
            x = w.batch_norm(w.conv(x, f"{at}.downsample.0", stride), f"{at}.downsample.1")
        return (y + x).relu()

    x = w.f.max_pool2d(w.batch_norm(w.conv(images, "conv1", 2), "bn1").relu(), 3, 2, 1)
    for stage in range(1, 5):
        for i in w.inside(f"layer{stage}."):
            x = block(x, f"layer{stage}.{i}", 2 if stage > 1 and i == "0" else 1)
    return w.linear(x.mean((2, 3)), "fc")


def mobilenet(w: Weights, images: Any) -> Any:
    """Sandler et al., 2018, as torchvision names it; strides follow from table 2."""

    def normed(x: Any, at: str, stride: int = 1, groups: int = 1) -> Any:
        y = w.conv(x, f"{at}.0", stride, groups)
        return w.f.relu6(w.batch_norm(y, f"{at}.1"))

    x, last = normed(images, "features.0", 2), len(w.inside("features.")) - 1
    for i in range(1, last):
        at = f"features.{i}.conv"
        *wide, project, norm = w.inside(f"{at}.")
        y = normed(x, f"{at}.0") if len(wide) == 2 else x
        y = normed(y, f"{at}.{wide[-1]}", 2 if i in (2, 4, 7, 14) else 1, y.shape[1])
        y = w.batch_norm(w.conv(y, f"{at}.{project}"), f"{at}.{norm}")
        x = x + y if x.shape == y.shape else y
    return w.linear(normed(x, f"features.{last}").mean((2, 3)), "classifier.1")


def unet(w: Weights, images: Any) -> Any:
    """Ronneberger et al., 2015, as milesial's names it."""

    def double(x: Any, at: str) -> Any:
        for i in (0, 3):
            at_norm = f"{at}.double_conv.{i + 1}"
            x = w.batch_norm(w.conv(x, f"{at}.double_conv.{i}"), at_norm).relu()
        return x

    found = [double(images, "inc")]
    for i in range(1, 5):
        found.append(double(w.f.max_pool2d(found[-1], 2), f"down{i}.conv"))
    x = found.pop()
    for i in range(1, 5):
        beside = found.pop()
        x = w.f.conv_transpose2d(x, w[f"up{i}.up.weight"], w[f"up{i}.up.bias"], stride=2)
        rows, columns = (beside.shape[a] - x.shape[a] for a in (2, 3))
        sides = (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2)
        x = double(_joined(beside, w.f.pad(x, sides)), f"up{i}.conv")
    return w.conv(x, "outc.conv")


def _joined(a: Any, b: Any) -> Any:
    import torch  # pyright: ignore[reportMissingImports] - for comparisons

    return torch.cat((a, b), 1)


def vit(w: Weights, images: Any) -> Any:
    """Dosovitskiy et al., 2020, as timm names it; three heads."""
    weight = w["patch_embed.proj.weight"]
    x = w.f.conv2d(images, weight, w["patch_embed.proj.bias"], weight.shape[2])
    first = w["cls_token"].expand(len(images), -1, -1)
    x = _joined(first, x.flatten(2).mT) + w["pos_embed"]
    for i in w.inside("blocks."):
        at = f"blocks.{i}"
        q, k, v = w.linear(w.layer_norm(x, f"{at}.norm1", 1e-6), f"{at}.attn.qkv").chunk(3, -1)
        x = x + w.linear(w.attention(q, k, v, 3), f"{at}.attn.proj")
        y = w.linear(w.layer_norm(x, f"{at}.norm2", 1e-6), f"{at}.mlp.fc1")
        x = x + w.linear(w.f.gelu(y), f"{at}.mlp.fc2")
    return w.linear(w.layer_norm(x, "norm", 1e-6)[:, 0], "head")


def bert(w: Weights, tokens: Any, padding: Any, kinds: Any) -> Any:
    """Devlin et al., 2018, as the published files name it; two heads."""
    at, epsilon = "embeddings", 1e-12
    x = w[f"{at}.word_embeddings.weight"][tokens] + w[f"{at}.token_type_embeddings.weight"][kinds]
    x = x + w[f"{at}.position_embeddings.weight"][: tokens.shape[1]]
    x = w.layer_norm(x, f"{at}.LayerNorm", epsilon)
    seen = ~padding[:, None, None, :]
    for i in w.inside("encoder.layer."):
        at = f"encoder.layer.{i}"
        parts = ("query", "key", "value")
        q, k, v = (w.linear(x, f"{at}.attention.self.{part}") for part in parts)
        y = w.attention(q, k, v, 2, attn_mask=seen)
        y = w.linear(y, f"{at}.attention.output.dense") + x
        x = w.layer_norm(y, f"{at}.attention.output.LayerNorm", epsilon)
        y = w.linear(w.f.gelu(w.linear(x, f"{at}.intermediate.dense")), f"{at}.output.dense")
        x = w.layer_norm(y + x, f"{at}.output.LayerNorm", epsilon)
    return x


def gpt(w: Weights, tokens: Any) -> Any:
    """Radford et al., 2019, as the published files name it; their linear maps are (in, out)."""

    def linear(x: Any, name: str) -> Any:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["wte.weight"][tokens] + w["wpe.weight"][: tokens.shape[1]]
    for i in w.inside("h."):
        at = f"h.{i}"
        q, k, v = linear(w.layer_norm(x, f"{at}.ln_1", 1e-5), f"{at}.attn.c_attn").chunk(3, -1)
        x = x + linear(w.attention(q, k, v, 2, is_causal=True), f"{at}.attn.c_proj")
        y = linear(w.layer_norm(x, f"{at}.ln_2", 1e-5), f"{at}.mlp.c_fc")
        x = x + linear(w.f.gelu(y, approximate="tanh"), f"{at}.mlp.c_proj")
    return w.layer_norm(x, "ln_f", 1e-5) @ w["wte.weight"].T


def tagger(w: Weights, words: Any) -> Any:
    """Graves and Schmidhuber, 2005."""
    import torch  # pyright: ignore[reportMissingImports] - for comparisons

    x = w["word_embeddings.weight"][words]
    names = w.inside("lstm.")
    layers, both = sum(n.startswith("weight_ih") for n in names), any("reverse" in n for n in names)
    order = [
        f"lstm.{kind}_{part}_l{i}{way}"
        for i in range(layers // (1 + both))
        for way in ("", "_reverse")[: 1 + both]
        for kind in ("weight", "bias")
        for part in ("ih", "hh")
    ]
    hidden = w["lstm.weight_hh_l0"].shape[1]
    zeros = x.new_zeros(layers, len(x), hidden)
    flat = [w[name] for name in order]
    found = torch.lstm(x, (zeros, zeros), flat, True, layers // (1 + both), 0.0, True, both, True)
    return w.linear(found[0], "hidden2tag")


def vae(w: Weights, x: Any) -> Any:
    """Kingma and Welling, 2013, as PyTorch's example names it; the code is the mean."""
    inner = w.linear(x, "fc1").relu()
    mean, spread = w.linear(inner, "fc21"), w.linear(inner, "fc22")
    return _joined(w.linear(w.linear(mean, "fc3").relu(), "fc4"), _joined(mean, spread))


class Twin(NamedTuple):
    """A model, the same in PyTorch, what both are given, and how records name its weights."""

    config: Any
    function: Callable[..., Any]
    inputs: tuple[Array, ...]
    layout: Literal["phlox", "pytorch"] = "pytorch"


RNG: Final = np.random.default_rng(0)
PICTURES: Final = RNG.normal(size=(3, 3, 32, 32))
TEXTS: Final = RNG.integers(0, 11, (3, 6))
PADDING: Final = np.arange(6)[None] >= np.array([[6], [4], [5]])
KINDS: Final = RNG.integers(0, 2, (3, 6))
TWINS: Final = {
    "bert": Twin(
        models.BertConfig(11, 8, 2, 8, 2, 2, 16, dropout=0.0), bert, (TEXTS, PADDING, KINDS)
    ),
    "gpt": Twin(models.GptConfig(11, 8, 8, 2, 2, 0.0), gpt, (TEXTS,), "phlox"),
    "mobilenet": Twin(models.MobileNetV2Config(5, 0.25, dropout=0.0), mobilenet, (PICTURES,)),
    "resnet18": Twin(
        models.ResNetConfig((2, 2, 2, 2), False, 5, 3, 8), resnet, (PICTURES,)
    ),
    "resnet50": Twin(models.ResNetConfig((1, 2, 1, 1), True, 5, 3, 4), resnet, (PICTURES,)),
    "tagger": Twin(models.TaggerConfig(11, 4, 5, 3, 2), tagger, (TEXTS,)),
    "unet": Twin(models.UNetConfig(3, 2, 2), unet, (PICTURES[:2, :, :19, :17],)),
    "vae": Twin(models.VaeConfig(12, 16, 2), vae, (RNG.random((8, 12)),)),
    "vit": Twin(models.ViTConfig(32, 8, 3, 12, 2, 3, 16, 5), vit, (PICTURES,)),
}  # fmt: skip
