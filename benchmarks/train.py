"""Whole training steps: forward, loss, gradients, optimizer."""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox as px
from benchmarks import networks, train_models
from benchmarks.case import Case, Run
from examples.mnist.model import DigitsConfig
from phlox import nn, optim

TINY, MLP = (64, 32, 10), (784, 256, 10)
LAYERS, D_MODEL, HEADS, D_WIDE = 4, 256, 8, 2048


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group."""
    device = px.Autodiff(px.Cpu())
    rng = np.random.default_rng(0)
    tiny, flat, tokens = (
        rng.standard_normal(shape, np.float32) for shape in ((32, 64), (64, 784), (8, 128, D_MODEL))
    )
    images = rng.standard_normal((64, 1, 28, 28), np.float32)
    labels = rng.integers(0, 10, 64)
    twins: dict[str, Run] = torch_runs(tiny, flat, images, tokens, labels) if with_torch else {}
    adam, adam_w = optim.AdamConfig(), optim.AdamWConfig()
    mlp, cnn = networks.mlp(*MLP, device), networks.cnn(device)
    step = classify(mlp, flat, labels, adam)
    sentence = _put(tokens)
    encoder = networks.encoder(LAYERS, D_MODEL, HEADS, D_WIDE, device)
    mine: dict[str, tuple[Run, float]] = {
        "MLP 64-32-10, b32, Adam": (
            classify(networks.mlp(*TINY, device), tiny, labels[:32], adam), 5.0,
        ),
        "MLP 784-256-10, b64, Adam": (step, 1.8),
        "MLP 784-256-10, b64, Adam, PyTorch's fused": (step, 1.3),
        "digits CNN (9216-128-10), b64, Adam": (classify(cnn, images, labels, adam), 2.0),
        "demo CNN, b64, AdamW": (
            classify(DigitsConfig().init(device), images, labels, adam_w), 0.0,
        ),
        "encoder d256 L4 h8, b8 s128, Adam": (
            _step(encoder, adam, lambda model: model(sentence).square().mean()), 1.5,
        ),
    }  # fmt: skip
    given = train_models.arrays()
    for name, model in train_models.models(device).items():
        mine[name] = classify(model, *given[name], adam), train_models.GOALS[name]
    if with_torch:
        twins |= train_models.torch_steps(torch_classify)
    return [Case(name, run, twins.get(name), times=times) for name, (run, times) in mine.items()]


def _put(array: np.ndarray, device: px.Backend | None = None) -> px.Tensor[Any]:
    return px.asarray(array, device=device or px.Autodiff(px.Cpu()))


def classify(
    model: Any,
    images: np.ndarray,
    labels: np.ndarray,
    config: Any,
    device: px.Backend | None = None,
) -> Run:
    """Return a training step that gives its loss; ``device`` records, ``Autodiff(Cpu())`` else."""
    x, target = _put(images, device), _put(labels, device)
    loss_fn = nn.CrossEntropyLossConfig().init()
    return _step(model, config, lambda model: loss_fn(model(x), target))


def _step(model: Any, config: Any, loss_of: Any) -> Run:
    rule = config.init()

    def step(model: Any, lr: float) -> tuple[Any, Any]:
        loss = loss_of(model)
        return rule.step(lr, model, loss.backward()), loss

    return going(step, model)


def going(step: Any, model: Any) -> Run:
    """Return a run of ``step`` that goes on from the model of the run before."""
    place = [model]

    def run() -> object:
        place[0], loss = step(place[0], 1e-3)
        return loss

    return run


def torch_runs(
    tiny: np.ndarray, flat: np.ndarray, images: np.ndarray, tokens: np.ndarray, labels: np.ndarray
) -> dict[str, Run]:
    """Return the steps of PyTorch by the names of the cases."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    n, adam, adam_w = torch.nn, torch.optim.Adam, torch.optim.AdamW

    def on_cpu(model: Any, data: np.ndarray, make: Any, **settings: Any) -> Run:
        rule = make(model.parameters(), lr=1e-3, **settings)
        return torch_classify(model, data, labels[: len(data)], rule)

    def mlp(d_input: int, d_hidden: int, d_output: int) -> Any:
        return n.Sequential(n.Linear(d_input, d_hidden), n.ReLU(), n.Linear(d_hidden, d_output))

    cnn = n.Sequential(
        n.Conv2d(1, 32, 3), n.BatchNorm2d(32), n.ReLU(), n.Conv2d(32, 64, 3), n.ReLU(),
        n.MaxPool2d(2), n.Flatten(), n.Dropout(0.5), n.Linear(9216, 128), n.ReLU(),
        n.Linear(128, 10),
    )  # fmt: skip
    layer = n.TransformerEncoderLayer(D_MODEL, HEADS, D_WIDE, dropout=0.0, batch_first=True)
    encoder = n.TransformerEncoder(layer, LAYERS)
    return {
        "MLP 64-32-10, b32, Adam": on_cpu(mlp(*TINY), tiny, adam),
        "MLP 784-256-10, b64, Adam": on_cpu(mlp(*MLP), flat, adam),
        "MLP 784-256-10, b64, Adam, PyTorch's fused": on_cpu(mlp(*MLP), flat, adam, fused=True),
        "digits CNN (9216-128-10), b64, Adam": on_cpu(cnn, images, adam),
        "demo CNN, b64, AdamW": on_cpu(torch_demo(), images, adam_w),
        "encoder d256 L4 h8, b8 s128, Adam": _torch_step(
            encoder,
            torch.from_numpy(tokens),
            adam(encoder.parameters(), lr=1e-3),
            lambda y: y.square().mean(),
        ),
    }


def torch_demo() -> Any:
    """The network of the digits example in PyTorch."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    n = torch.nn
    return n.Sequential(
        n.Conv2d(1, 16, 3, padding=1), n.BatchNorm2d(16), n.GELU(), n.MaxPool2d(2),
        n.Conv2d(16, 32, 3, padding=1), n.BatchNorm2d(32), n.GELU(), n.MaxPool2d(2),
        n.Flatten(), n.Dropout(0.25), n.Linear(32 * 49, 10),
    )  # fmt: skip


def torch_classify(model: Any, images: np.ndarray, labels: np.ndarray, rule: Any) -> Run:
    """Return the same as `classify` in PyTorch, where the model's parameters are."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    device = next(model.parameters()).device
    target = torch.from_numpy(labels).to(device)
    loss_of = torch.nn.functional.cross_entropy
    return _torch_step(
        model, torch.from_numpy(images).to(device), rule, lambda y: loss_of(y, target)
    )


def _torch_step(model: Any, x: Any, rule: Any, loss_of: Any) -> Run:
    def run() -> object:
        loss = loss_of(model(x))
        rule.zero_grad()
        loss.backward()
        rule.step()
        return loss

    return run
