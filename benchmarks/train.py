"""Whole training steps: forward, loss, gradients, optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import phlox as px
from benchmarks import networks, train_models
from benchmarks.case import Case, Run, warmed
from examples.mnist.model import DigitsConfig
from phlox import nn, optim

Wrap = Callable[[Any], Any]
# The wanted ratios to the time of PyTorch.
_GOALS: Final = {
    "MLP 64-32-10, b32, Adam": 5.0,
    "MLP 784-256-10, b64, Adam": 1.8,
    "MLP 784-256-10, b64, Adam, PyTorch's fused": 1.3,
    "digits CNN (9216-128-10), b64, Adam": 2.0,
    "encoder d256 L4 h8, b8 s128, Adam": 1.5,
}
TINY, MLP = (64, 32, 10), (784, 256, 10)
LAYERS, D_MODEL, HEADS, D_WIDE = 4, 256, 8, 2048


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group, each with the same step compiled beside it."""
    rng = np.random.default_rng(0)
    tiny, flat, tokens = (
        rng.standard_normal(shape, np.float32) for shape in ((32, 64), (64, 784), (8, 128, D_MODEL))
    )
    images = rng.standard_normal((64, 1, 28, 28), np.float32)
    labels = rng.integers(0, 10, 64)
    twins: dict[str, Run] = torch_runs(tiny, flat, images, tokens, labels) if with_torch else {}
    mine, compiled = (
        _steps(tiny, flat, images, tokens, labels, wrap) for wrap in (_as_written, px.compile)
    )
    if with_torch:
        twins |= train_models.torch_steps(torch_classify)
    return [
        Case(
            name,
            run,
            twins.get(name),
            times=_GOALS.get(name) or train_models.GOALS.get(name, 0.0),
            others={"compiled": warmed(compiled[name])},
        )
        for name, run in mine.items()
    ]


def _steps(
    tiny: np.ndarray,
    flat: np.ndarray,
    images: np.ndarray,
    tokens: np.ndarray,
    labels: np.ndarray,
    wrap: Wrap,
) -> dict[str, Run]:
    """The steps of phlox by name."""
    device = px.Autodiff(px.Cpu())
    adam, sentence = optim.AdamConfig(), _put(tokens)
    encoder = networks.encoder(LAYERS, D_MODEL, HEADS, D_WIDE, device)
    step = classify(networks.mlp(*MLP, device), flat, labels, adam, wrap=wrap)
    demo, given = DigitsConfig().init(device), train_models.arrays()
    return {
        "MLP 64-32-10, b32, Adam": classify(
            networks.mlp(*TINY, device), tiny, labels[:32], adam, wrap=wrap
        ),
        "MLP 784-256-10, b64, Adam": step,
        "MLP 784-256-10, b64, Adam, PyTorch's fused": step,
        "digits CNN (9216-128-10), b64, Adam": classify(
            networks.cnn(device), images, labels, adam, wrap=wrap
        ),
        "demo CNN, b64, AdamW": classify(demo, images, labels, optim.AdamWConfig(), wrap=wrap),
        "encoder d256 L4 h8, b8 s128, Adam": _step(
            encoder, adam, lambda model: model(sentence).square().mean(), wrap
        ),
        **{
            name: classify(model, *given[name], adam, wrap=wrap)
            for name, model in train_models.models(device).items()
        },
    }


def _as_written(function: Any) -> Any:
    return function


def _put(array: np.ndarray, device: px.Backend | None = None) -> px.Tensor[Any]:
    return px.asarray(array, device=device or px.Autodiff(px.Cpu()))


def classify(
    model: Any,
    images: np.ndarray,
    labels: np.ndarray,
    config: Any,
    device: px.Backend | None = None,
    wrap: Wrap = _as_written,
) -> Run:
    """Return a training step that gives its loss; ``device`` records, ``Autodiff(Cpu())`` else."""
    x, target = _put(images, device), _put(labels, device)
    loss_fn = nn.CrossEntropyLossConfig().init()
    return _step(model, config, lambda model: loss_fn(model(x), target), wrap)


def _step(model: Any, config: Any, loss_of: Any, wrap: Wrap) -> Run:
    rule = config.init()

    def step(model: Any, lr: float) -> tuple[Any, Any]:
        loss = loss_of(model)
        return rule.step(lr, model, loss.backward()), loss

    return going(wrap(step), model)


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
