"""The models of ``nn.models``: sizes and names of the published ones, and that they learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu, Tensor, nn, optim
from phlox.nn import models

DEVICE = Autodiff(Cpu())
# What PyTorch's versions count: torchvision, milesial's U-Net, timm, the files of BERT and GPT-2,
# the examples of the recurrent tagger and the autoencoder.
COUNTS: list[tuple[nn.Config, int]] = [
    (models.BertConfig(), 109_482_240),
    (models.GptConfig(), 124_439_808),
    (models.MobileNetV2Config(), 3_504_872),
    (models.ResNetConfig(), 11_689_512),
    (models.ResNetConfig((3, 4, 6, 3), True), 25_557_032),
    (models.TaggerConfig(9, 3, 6, 6, bidirectional=False), 411),
    (models.UNetConfig(), 31_037_698),
    (models.VaeConfig(), 652_824),
    (models.ViTConfig(), 86_567_656),
]
# Names and shapes from the files of the published models, as `state_dict` has them.
NAMES: list[tuple[nn.Config, dict[str, tuple[int, ...]]]] = [
    (
        models.BertConfig(n_layers=1),
        {
            "embeddings.LayerNorm.weight": (768,),
            "encoder.layer.0.attention.self.query.weight": (768, 768),
            "encoder.layer.0.attention.output.LayerNorm.bias": (768,),
            "encoder.layer.0.intermediate.dense.weight": (3072, 768),
            "encoder.layer.0.output.dense.weight": (768, 3072),
            "pooler.dense.bias": (768,),
        },
    ),
    (
        models.MobileNetV2Config(),
        {
            "features.0.0.weight": (32, 3, 3, 3),
            "features.1.conv.0.0.weight": (32, 1, 3, 3),
            "features.1.conv.2.running_var": (16,),
            "features.2.conv.1.0.weight": (96, 1, 3, 3),
            "features.17.conv.2.weight": (320, 960, 1, 1),
            "features.18.1.bias": (1280,),
            "classifier.1.weight": (1000, 1280),
        },
    ),
    (
        models.ResNetConfig((3, 4, 6, 3), True),
        {
            "bn1.running_mean": (64,),
            "layer1.0.downsample.0.weight": (256, 64, 1, 1),
            "layer3.5.conv2.weight": (256, 256, 3, 3),
            "layer4.0.downsample.1.weight": (2048,),
            "fc.weight": (1000, 2048),
        },
    ),
    (
        models.UNetConfig(),
        {
            "inc.double_conv.0.weight": (64, 3, 3, 3),
            "up1.up.weight": (1024, 512, 2, 2),
            "up1.conv.double_conv.3.weight": (512, 512, 3, 3),
            "outc.conv.bias": (2,),
        },
    ),
    (
        models.ViTConfig(n_layers=1),
        {
            "cls_token": (1, 1, 768),
            "pos_embed": (1, 197, 768),
            "patch_embed.proj.weight": (768, 3, 16, 16),
            "blocks.0.attn.qkv.weight": (2304, 768),
            "blocks.0.mlp.fc2.bias": (768,),
        },
    ),
]


@pytest.mark.parametrize(("config", "count"), COUNTS, ids=lambda v: getattr(v, "kind", None))
def test_a_model_has_as_many_parameters_as_the_published_one(config: nn.Config, count: int) -> None:
    assert config.init().num_params() == count


@pytest.mark.parametrize(("config", "names"), NAMES, ids=lambda v: getattr(v, "kind", None))
def test_parameters_have_the_published_names(
    config: nn.Config, names: dict[str, tuple[int, ...]]
) -> None:
    transposed = {
        f"{path}.weight" for path, part in nn.modules(config.init()) if isinstance(part, nn.Linear)
    }
    found = {path: param.shape for path, param in config.init().params().items()}
    for name, shape in names.items():
        assert found[name] == (shape[::-1] if name in transposed else shape), name


class Trial(NamedTuple):
    """A small model, what it is given, the shape of what it gives, and a loss."""

    config: nn.Config
    inputs: tuple[np.ndarray[Any, Any], ...]
    shape: tuple[int, ...]
    loss: Callable[[Any, Tensor[Any]], Tensor[Any]]


def _classify(out: Tensor[Any], x: Tensor[Any]) -> Tensor[Any]:
    labels = px.arange(out.shape[0], device=out.device) % out.shape[-1]
    return nn.CrossEntropyLossConfig().init()(out, labels)


def _square(out: Tensor[Any], x: Tensor[Any]) -> Tensor[Any]:
    return (out - 1.0).square().mean()


def _next(out: Tensor[Any], x: Tensor[Any]) -> Tensor[Any]:
    rows = out[:, :-1].reshape(-1, out.shape[-1])
    return nn.CrossEntropyLossConfig().init()(rows, x[:, 1:].reshape(-1))


RNG = np.random.default_rng(0)
PICTURES = RNG.normal(size=(4, 3, 32, 32)).astype(np.float32)
TEXTS = RNG.integers(0, 11, (3, 6))
TRIALS = {
    "bert": Trial(
        models.BertConfig(11, 8, 2, 8, 2, 2, 16, dropout=0.0), (TEXTS,), (3, 6, 8), _square
    ),
    "gpt": Trial(models.GptConfig(11, 8, 8, 2, 2, 0.0), (TEXTS,), (3, 6, 11), _next),
    "mobilenet": Trial(
        models.MobileNetV2Config(5, 0.25, dropout=0.0), (PICTURES,), (4, 5), _classify
    ),
    "resnet": Trial(
        models.ResNetConfig((1, 1, 1, 1), False, 5, 3, 8), (PICTURES,), (4, 5), _classify
    ),
    "resnet-bottleneck": Trial(
        models.ResNetConfig((1, 2, 1, 1), True, 5, 3, 4), (PICTURES,), (4, 5), _classify
    ),
    "tagger": Trial(models.TaggerConfig(11, 4, 5, 3), (TEXTS,), (3, 6, 4), _square),
    "unet": Trial(
        models.UNetConfig(3, 2, 2), (PICTURES[:2, :, :19, :17],), (2, 2, 19, 17), _square
    ),
    "vit": Trial(models.ViTConfig(32, 8, 3, 12, 2, 3, 16, 5), (PICTURES,), (4, 5), _classify),
}


@pytest.mark.parametrize("name", TRIALS)
def test_steps_lower_the_loss(name: str) -> None:
    trial = TRIALS[name]
    px.seed(0)
    model, rule = trial.config.init(DEVICE), optim.AdamConfig().init()
    inputs = [px.asarray(each, device=DEVICE) for each in trial.inputs]
    losses = []
    for _ in range(6):
        out = model(*inputs)
        assert out.shape == trial.shape
        loss = trial.loss(out, inputs[0])
        losses.append(float(loss))
        model = rule.step(3e-3, model, loss.backward())
    assert losses[-1] < losses[0], losses


def test_an_autoencoder_learns_and_decodes() -> None:
    px.seed(0)
    model, rule = models.VaeConfig(12, 16, 2).init(DEVICE), optim.AdamConfig().init()
    x = px.asarray(RNG.integers(0, 2, (8, 12)).astype(np.float32), device=DEVICE)
    losses = []
    for _ in range(60):
        loss = model(x).loss(x)
        losses.append(float(loss))
        model = rule.step(1e-2, model, loss.backward())
    assert np.mean(losses[-5:]) < 0.9 * losses[0]
    assert model.decode(px.zeros((3, 2), device=DEVICE)).shape == (3, 12)


def test_the_bound_of_an_autoencoder_is_that_of_the_formula() -> None:
    logits, mean, spread, x = (RNG.normal(size=(2, 3)) for _ in range(4))
    x = (x > 0).astype(float)
    shares = 1 / (1 + np.exp(-logits))
    entropy = -(x * np.log(shares) + (1 - x) * np.log(1 - shares)).sum()
    divergence = -0.5 * (1 + spread - mean**2 - np.exp(spread)).sum()
    device = px.Numpy(float="float64")
    result = models.VaeResult(*(px.asarray(a, device=device) for a in (logits, mean, spread)))
    found = float(result.loss(px.asarray(x, device=device)))
    assert np.isclose(found, (entropy + divergence) / 2, rtol=1e-12)


TOKENS = px.asarray(RNG.integers(0, 13, (2, 7)), device=Cpu(float="float64"))


@pytest.fixture
def gpt() -> models.Gpt:
    """A small decoder, whose ids, which follow from the seed, no other test has."""
    px.seed(1113)
    return models.GptConfig(13, 16, 8, 2, 2).init(Cpu(float="float64"))


def test_a_decoder_with_a_cache_gives_what_it_gives_at_once(gpt: models.Gpt) -> None:
    whole = gpt(TOKENS).numpy()
    first, cache = gpt.extend(TOKENS[:, :4])
    second, cache = gpt.extend(TOKENS[:, 4:], cache)
    assert cache[0].length == 7
    found = np.concatenate([first.numpy(), second.numpy()], axis=1)
    assert np.allclose(found, whole, rtol=1e-12, atol=1e-13)


def test_the_likeliest_tokens_follow_and_drawn_ones_come_from_the_likely(gpt: models.Gpt) -> None:
    greedy = gpt.generate(TOKENS[:, :3], 4, temperature=0.0)
    assert greedy.shape == (2, 7)
    assert np.array_equal(greedy[:, :3].numpy(), TOKENS[:, :3].numpy())
    following = gpt(greedy).argmax(axis=-1)[:, 2:-1]
    assert np.array_equal(greedy[:, 3:].numpy(), following.numpy())
    assert np.array_equal(gpt.generate(TOKENS[:, :3], 4, top_k=1).numpy(), greedy.numpy())
    likely = np.argsort(gpt(TOKENS)[:, -1].numpy(), axis=-1)[:, -2:]
    px.seed(0)
    drawn = np.stack([gpt.generate(TOKENS, 1, top_k=2)[:, -1].numpy() for _ in range(30)])
    for row, pair in zip(drawn.T, likely, strict=True):
        assert set(row) == set(pair)


def test_a_model_that_trains_generates_as_one_that_does_not(gpt: models.Gpt) -> None:
    want = gpt.generate(TOKENS, 5, temperature=0.0)
    recording = px.Autodiff(TOKENS.device)
    trained = gpt.train(recording)
    assert trained.drop.training
    got = trained.generate(TOKENS, 5, temperature=0.0)
    assert np.array_equal(got.numpy(), want.numpy())
    assert trained.wte.weight.trainable


def test_drawn_tokens_have_the_shares_of_the_softmax(gpt: models.Gpt) -> None:
    shares = np.exp(gpt(TOKENS[:1])[:, -1].numpy()[0] / 0.5)
    px.seed(1)
    many = px.asarray(np.repeat(TOKENS[:1].numpy(), 2000, axis=0), device=TOKENS.device)
    drawn = gpt.generate(many, 1, temperature=0.5)[:, -1].numpy()
    counts = np.bincount(drawn, minlength=13) / 2000
    want = shares / shares.sum()
    assert np.abs(counts - want).max() < 5 * np.sqrt(want.max() / 2000)


def test_a_text_longer_than_the_positions_is_refused(gpt: models.Gpt) -> None:
    with pytest.raises(
        px.ShapeError, match=r"\[Gpt\] too long: got 17 tokens, expected at most 16"
    ):
        gpt.generate(TOKENS, 11)
    with pytest.raises(px.ArgumentError, match="no choice"):
        gpt.generate(TOKENS, 1, temperature=-1.0)
    with pytest.raises(px.ShapeError, match=r"\[Bert\] too long"):
        models.BertConfig(11, 4, 2, 8, 1, 2, 16).init()(px.arange(5)[None])


def test_padding_changes_no_vector_of_an_encoder() -> None:
    device = Cpu(float="float64")
    model = models.BertConfig(11, 8, 2, 8, 2, 2, 16).init(device)
    tokens = px.asarray(TEXTS, device=device)
    alone = model(tokens[:, :4]).numpy()
    padding = px.arange(6, device=device)[None].broadcast_to((3, 6)) >= 4
    beside = model(tokens, padding)
    assert np.allclose(beside[:, :4].numpy(), alone, rtol=1e-12, atol=1e-13)
    assert model.pooled(beside).shape == (3, 8)
    with pytest.raises(px.ShapeError, match="no pooler"):
        models.BertConfig(11, 8, 2, 8, 1, 2, 16, pooler=False).init(device).pooled(beside)


def test_pictures_of_another_size_than_the_positions_are_refused() -> None:
    with pytest.raises(px.ShapeError, match="images of another size: got 9 patches, expected 16"):
        models.ViTConfig(32, 8, 3, 12, 1, 3, 16, 5).init()(px.zeros((1, 3, 24, 24)))
