"""Compiled functions: whole training steps and chains of small ops, replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import phlox as px
from benchmarks import networks, train
from benchmarks.case import Case, Run
from examples.mnist.model import DigitsConfig
from phlox import nn, optim


def cases(*, with_torch: bool) -> list[Case]:
    """Return the benchmarks of the group; the same work as it is written stands in ``train``."""
    device = px.Autodiff(px.Cpu())
    rng = np.random.default_rng(0)
    tiny, flat, tokens = (
        rng.standard_normal(shape, np.float32)
        for shape in ((32, 64), (64, 784), (8, 128, train.D_MODEL))
    )
    images = rng.standard_normal((64, 1, 28, 28), np.float32)
    labels = rng.integers(0, 10, 64)
    twins: dict[str, Run] = {}
    if with_torch:
        twins = {**train.torch_runs(tiny, flat, images, tokens, labels), **_torch_chains()}
        twins |= _torch_rows()
    adam = optim.AdamConfig()
    encoder = networks.encoder(train.LAYERS, train.D_MODEL, train.HEADS, train.D_WIDE, device)
    sentence = px.asarray(tokens, device=device)
    mine = {
        "MLP 64-32-10, b32, Adam": classify(
            networks.mlp(*train.TINY, device), tiny, labels[:32], adam
        ),
        "MLP 784-256-10, b64, Adam": classify(networks.mlp(*train.MLP, device), flat, labels, adam),
        "demo CNN, b64, AdamW": classify(
            DigitsConfig().init(device), images, labels, optim.AdamWConfig()
        ),
        "encoder d256 L4 h8, b8 s128, Adam": _step(
            encoder, adam, lambda model, x: model(x).square().mean(), sentence
        ),
        **{f"{name}, {size:,}": _chain(name, size) for name, size in _CHAINS},
        **{name: _rows(name) for name in _WRITTEN},
        "Lion, 1,000,000 in 4 parameters": _lion(),
    }
    return [Case(name, run, twins.get(name)) for name, run in mine.items()]


def _one_input(x: Any) -> Any:
    return (x * 2 + 1).relu().exp()


def _three_inputs(a: Any, b: Any, c: Any) -> Any:
    return ((((a * b + c) * 0.5).relu() - a) * b + 1).square()


_CHAINED: dict[str, Callable[..., Any]] = {
    "(x*2+1).relu().exp()": _one_input,
    "eight light ops of three": _three_inputs,
}
_FACTORS = {"(x*2+1).relu().exp()": (1.0,), "eight light ops of three": (1.0, 0.5, 0.25)}
_CHAINS = [
    *(("(x*2+1).relu().exp()", size) for size in (10, 65_536, 4_194_304)),
    *(("eight light ops of three", size) for size in (65_536, 4_194_304)),
]


def _softmax(x: Any, top: Any) -> Any:
    e = (x - top(x)).exp()
    return e / e.sum(axis=-1, keepdims=True)


def _layer_norm(x: Any, _: Any) -> Any:
    d = x - x.mean(axis=-1, keepdims=True)
    return d / (d.square().mean(axis=-1, keepdims=True) + 1e-5).sqrt()


_ROWS = (4096, 1024)
_WRITTEN: dict[str, Callable[..., Any]] = {
    "softmax as users write it, 4096 x 1024": _softmax,
    "layer norm as users write it, 4096 x 1024": _layer_norm,
}


def _rows(name: str) -> Run:
    x = px.random.normal(_ROWS, device=px.Cpu())
    function = _WRITTEN[name]
    fast = px.compile(lambda x: function(x, lambda x: x.max(axis=-1, keepdims=True)))
    for _ in range(3):
        fast(x)
    return lambda: fast(x)


def _lion() -> Run:
    """The update alone, of a rule that is written in ops."""
    device = px.Cpu()
    rule = optim.LionConfig(weight_decay=0.01).rule()
    given = [
        tuple(px.random.normal(shape, device=device) for _ in range(3))
        for shape in ((784, 1024), (1024,), (1024, 190), (190,))
    ]

    @px.compile
    def step(given: Any) -> Any:
        return [rule.step(1e-3, x, grad, {"mean": mean}) for x, grad, mean in given]

    for _ in range(3):
        step(given)
    return lambda: step(given)


def classify(
    model: Any,
    images: np.ndarray,
    labels: np.ndarray,
    config: Any,
    device: px.Backend | None = None,
) -> Run:
    """Return what `train.classify` does, compiled."""
    device = device or px.Autodiff(px.Cpu())
    loss_of: Any = nn.CrossEntropyLossConfig().init()
    x, target = px.asarray(images, device=device), px.asarray(labels, device=device)
    return _step(model, config, lambda model, x, y: loss_of(model(x), y), x, target)


def _step(model: Any, config: Any, loss_of: Any, *data: Any) -> Run:
    rule = config.init()

    @px.compile
    def step(model: Any, lr: float, *data: Any) -> tuple[Any, Any]:
        loss = loss_of(model, *data)
        return rule.step(lr, model, loss.backward()), loss

    run = train.going(lambda model, lr: step(model, lr, *data), model)
    for _ in range(3):  # recorded with and without the state of the optimizer
        run()
    return run


def _chain(name: str, size: int) -> Run:
    given = [px.ones(size, device=px.Cpu()) * factor for factor in _FACTORS[name]]
    fast = px.compile(_CHAINED[name])
    for _ in range(3):
        fast(*given)
    return lambda: fast(*given)


def _torch_rows() -> dict[str, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    x = torch.randn(_ROWS)

    def run(name: str) -> Run:
        return lambda: _WRITTEN[name](x, lambda x: x.amax(-1, keepdim=True))

    return {name: run(name) for name in _WRITTEN}


def _torch_chains() -> dict[str, Run]:
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    def chain(name: str, size: int) -> Run:
        given = [torch.ones(size) * factor for factor in _FACTORS[name]]
        return lambda: _CHAINED[name](*given)

    return {f"{name}, {size:,}": chain(name, size) for name, size in _CHAINS}
