"""What the first call of a compiled function takes, and a call among many versions."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Any
from warnings import catch_warnings

import numpy as np

import phlox as px
from benchmarks import compile_jax, networks, train
from benchmarks.case import Case, Network, Run
from phlox import nn, optim


def cases(perceptrons: Mapping[str, Network], tokens: np.ndarray, *, with_jax: bool) -> list[Case]:
    """Return the first calls, of a function that nobody has seen before each time."""
    device = px.Autodiff(px.Cpu())
    ten = px.ones(10, device=px.Cpu())
    words = px.asarray(tokens, device=device)
    encoder = networks.encoder(train.LAYERS, train.D_MODEL, train.HEADS, train.D_WIDE, device)
    tiny = perceptrons["MLP 64-32-10, b32, Adam"]
    mlp = networks.mlp(*tiny.sizes, device)
    loss_of: Any = nn.CrossEntropyLossConfig().init()
    x, target = (px.asarray(given, device=device) for given in (tiny.images, tiny.labels))
    runs: dict[str, tuple[Run, Run]] = {
        "(x*2+1).relu().exp(), 10": _pair(lambda: lambda x: (x * 2 + 1).relu().exp(), ten),
        "MLP 64-32-10, b32, Adam": _pair(
            lambda: _step(lambda model, x, y: loss_of(model(x), y)), mlp, x, target
        ),
        "encoder d256 L4 h8, b8 s128, Adam": _pair(
            lambda: _step(lambda model, x: model(x).square().mean()), encoder, words
        ),
    }
    theirs = compile_jax.first_calls(tiny) if with_jax else {}
    among = Case("one of 50 versions by turns", _among(50), others={"one of 2": _among(2)})
    return [among] + [
        Case(
            f"first call: {name}",
            first,
            others={"as written": written} | ({"jax.jit": theirs[name]} if name in theirs else {}),
        )
        for name, (first, written) in runs.items()
    ]


def _among(count: int) -> Run:
    """Calls of a function that has as many versions, each of them another one than before."""
    fast = px.compile(lambda x: (x * 2 + 1).relu().exp())
    arrays = [px.ones(10 + at, device=px.Cpu()) for at in range(count)]
    with catch_warnings(action="ignore"):  # it was recorded ten times
        for array in arrays * 300:  # beyond the spot checks of calls 4, 16, 64 and 256
            fast(array)
    given = cycle(arrays)
    return lambda: fast(next(given))


def _pair(make: Any, *given: Any) -> tuple[Run, Run]:
    return lambda: px.compile(make())(*given), lambda: make()(*given)


def _step(loss_of: Any) -> Any:
    rule = optim.AdamConfig().init()

    def step(model: Any, *data: Any) -> Any:
        loss = loss_of(model, *data)
        return rule.step(1e-3, model, loss.backward()), loss

    return step
