"""Compiled functions: whole training steps and chains of small ops, replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import phlox as px
from benchmarks import compile_first, compile_jax, compile_torch, networks, train
from benchmarks.case import Case, Network, Run, Words, warmed
from examples.mnist.model import DigitsConfig
from phlox import nn, optim

ALSO = ("jax",)


def cases(*, with_torch: bool, with_jax: bool) -> list[Case]:
    """Return the benchmarks of the group; each has the same work as it is written beside it."""
    rng = np.random.default_rng(0)
    tiny, flat, tokens = (
        rng.standard_normal(shape, np.float32)
        for shape in ((32, 64), (64, 784), (8, 128, train.D_MODEL))
    )
    images = rng.standard_normal((64, 1, 28, 28), np.float32)
    labels = rng.integers(0, 10, 64)
    twins: dict[str, Run] = {}
    others: dict[str, dict[str, Run]] = {}
    perceptrons = {
        "MLP 64-32-10, b32, Adam": Network(train.TINY, tiny, labels[:32]),
        "MLP 784-256-10, b64, Adam": Network(train.MLP, flat, labels),
    }
    if with_torch:
        eager, fast = compile_torch.functions(functions_of(compile_torch.words()))
        twins = {**train.torch_runs(tiny, flat, images, tokens, labels), **eager}
        others["torch.compile"] = fast | compile_torch.compiled_steps(perceptrons)
    if with_jax:
        fast = compile_jax.functions(functions_of(compile_jax.words()))
        others["jax.jit"] = fast | compile_jax.steps(perceptrons)
    mine, others["as written"] = (
        _steps(perceptrons, images, labels, tokens, wrap)
        | {name: _bound(wrap(f), arrays) for name, (f, arrays) in functions_of(words()).items()}
        | {"Lion, 1,000,000 in 4 parameters": _lion(wrap)}
        for wrap in (px.compile, _as_written)
    )
    found = [
        Case(
            name,
            run,
            twins.get(name),
            others={peer: runs[name] for peer, runs in others.items() if name in runs},
        )
        for name, run in mine.items()
    ]
    return found + compile_first.cases(perceptrons, tokens, with_jax=with_jax)


def _as_written(function: Any) -> Any:
    return function


Wrap = Callable[[Any], Any]


def _steps(
    perceptrons: Mapping[str, Network],
    images: np.ndarray,
    labels: np.ndarray,
    tokens: np.ndarray,
    wrap: Wrap,
) -> dict[str, Run]:
    """Training steps by name."""
    device = px.Autodiff(px.Cpu())
    adam = optim.AdamConfig()
    demo = DigitsConfig().init(device)
    encoder = networks.encoder(train.LAYERS, train.D_MODEL, train.HEADS, train.D_WIDE, device)
    return {
        **{
            name: classify(
                networks.mlp(*given.sizes, device), given.images, given.labels, adam, wrap=wrap
            )
            for name, given in perceptrons.items()
        },
        "demo CNN, b64, AdamW": classify(demo, images, labels, optim.AdamWConfig(), wrap=wrap),
        "encoder d256 L4 h8, b8 s128, Adam": _step(
            encoder,
            adam,
            lambda model, x: model(x).square().mean(),
            px.asarray(tokens, device=device),
            wrap=wrap,
        ),
    }


def words() -> Words:
    return Words(
        exp=px.exp,
        relu=px.relu,
        sqrt=px.sqrt,
        square=px.square,
        top=lambda x: x.max(axis=-1, keepdims=True),
    )


def _one_input(f: Words, x: Any) -> Any:
    return f.exp(f.relu(x * 2 + 1))


def _three_inputs(f: Words, a: Any, b: Any, c: Any) -> Any:
    return f.square((f.relu((a * b + c) * 0.5) - a) * b + 1)


_CHAINED: dict[str, Callable[..., Any]] = {
    "(x*2+1).relu().exp()": _one_input,
    "eight light ops of three": _three_inputs,
}
_FACTORS = {"(x*2+1).relu().exp()": (1.0,), "eight light ops of three": (1.0, 0.5, 0.25)}
_CHAINS = [
    *(("(x*2+1).relu().exp()", size) for size in (10, 65_536, 4_194_304)),
    *(("eight light ops of three", size) for size in (65_536, 4_194_304)),
]


def _softmax(f: Words, x: Any) -> Any:
    e = f.exp(x - f.top(x))
    return e / e.sum(axis=-1, keepdims=True)


def _layer_norm(f: Words, x: Any) -> Any:
    d = x - x.mean(axis=-1, keepdims=True)
    return d / f.sqrt(f.square(d).mean(axis=-1, keepdims=True) + 1e-5)


def _pairs(f: Words, x: Any, y: Any) -> Any:
    return f.exp(-f.square(x.reshape(-1, 1) - y.reshape(1, -1))).sum(1)


def functions_of(words: Words) -> dict[str, tuple[Callable[..., Any], list[np.ndarray]]]:
    """Functions that any framework runs, with what they are called with, by name."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((4096, 1024), np.float32)
    points = rng.standard_normal((2, 8192), np.float32)
    chains = {
        f"{name}, {size:,}": (
            partial(_CHAINED[name], words),
            [np.full(size, factor, np.float32) for factor in _FACTORS[name]],
        )
        for name, size in _CHAINS
    }
    return chains | {
        "softmax as users write it, 4096 x 1024": (partial(_softmax, words), [rows]),
        "layer norm as users write it, 4096 x 1024": (partial(_layer_norm, words), [rows]),
        "sum_j exp(-(x_i - y_j)^2), 8192 x 8192": (partial(_pairs, words), [*points]),
    }


def _bound(function: Callable[..., Any], arrays: list[np.ndarray]) -> Run:
    given = [px.asarray(array, device=px.Cpu()) for array in arrays]
    return warmed(lambda: function(*given))


def _lion(wrap: Wrap) -> Run:
    """The update alone, of a rule that is written in ops."""
    device = px.Cpu()
    rule = optim.LionConfig(weight_decay=0.01).rule()
    given = [
        tuple(px.random.normal(shape, device=device) for _ in range(3))
        for shape in ((784, 1024), (1024,), (1024, 190), (190,))
    ]

    def update(given: Any) -> Any:
        return [rule.step(1e-3, x, grad, {"mean": mean}) for x, grad, mean in given]

    step = wrap(update)
    return warmed(lambda: step(given))


def classify(
    model: Any,
    images: np.ndarray,
    labels: np.ndarray,
    config: Any,
    device: px.Backend | None = None,
    *,
    wrap: Wrap = px.compile,
) -> Run:
    """Return what `train.classify` does, compiled."""
    device = device or px.Autodiff(px.Cpu())
    loss_of: Any = nn.CrossEntropyLossConfig().init()
    x, target = px.asarray(images, device=device), px.asarray(labels, device=device)
    return _step(model, config, lambda model, x, y: loss_of(model(x), y), x, target, wrap=wrap)


def _step(model: Any, config: Any, loss_of: Any, *data: Any, wrap: Wrap) -> Run:
    step = step_of(config, loss_of, wrap)
    # Recorded with and without the state of the optimizer.
    return warmed(train.going(lambda model, lr: step(model, lr, *data), model))


def step_of(config: Any, loss_of: Any, wrap: Wrap = px.compile) -> Any:
    """Return a training step of a model, a learning rate and data."""
    rule = config.init()

    def step(model: Any, lr: float, *data: Any) -> tuple[Any, Any]:
        loss = loss_of(model, *data)
        return rule.step(lr, model, loss.backward()), loss

    return wrap(step)
