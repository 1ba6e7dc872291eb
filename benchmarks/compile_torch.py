"""What the group ``compile`` runs in PyTorch: eagerly, and through ``torch.compile``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.case import Network, Run, Words, warmed


def words() -> Words:
    """Return PyTorch's functions."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    return Words(
        exp=torch.exp,
        relu=torch.relu,
        sqrt=torch.sqrt,
        square=torch.square,
        top=lambda x: x.amax(-1, keepdim=True),
    )


def compiled_steps(given: Mapping[str, Network]) -> dict[str, Run]:
    """Return training steps: forward and loss compiled, PyTorch's fused optimizer behind them."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    def step(given: Network) -> Run:
        d_input, d_hidden, d_output = given.sizes
        first, last = torch.nn.Linear(d_input, d_hidden), torch.nn.Linear(d_hidden, d_output)
        model = torch.nn.Sequential(first, torch.nn.ReLU(), last)
        rule = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
        x, target = torch.from_numpy(given.images), torch.from_numpy(given.labels)
        loss_of = torch.compile(lambda x, y: torch.nn.functional.cross_entropy(model(x), y))

        def run() -> object:
            loss = loss_of(x, target)
            rule.zero_grad()
            loss.backward()
            rule.step()
            return loss

        return warmed(run)

    return {name: step(network) for name, network in given.items()}


def functions(
    given: Mapping[str, tuple[Callable[..., Any], Sequence[np.ndarray]]],
) -> tuple[dict[str, Run], dict[str, Run]]:
    """Return the same functions eagerly and compiled, by name."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    eager: dict[str, Run] = {}
    fast: dict[str, Run] = {}
    for name, (function, arrays) in given.items():
        tensors = [torch.from_numpy(array) for array in arrays]
        eager[name] = _bound(function, tensors)
        # One shape for each function: a second one would be compiled with sizes as symbols.
        torch.compiler.reset()
        fast[name] = warmed(_bound(torch.compile(function, dynamic=False), tensors))
    return eager, fast


def _bound(function: Callable[..., Any], tensors: Sequence[Any]) -> Run:
    return lambda: function(*tensors)
