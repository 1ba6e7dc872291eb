"""What the group ``compile`` runs in PyTorch: eagerly, and through ``torch.compile``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import train
from benchmarks.case import Run, Words


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


def compiled_steps(data: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, Run]:
    """Return training steps: forward and loss compiled, PyTorch's fused optimizer behind them."""
    import torch  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - for comparisons

    def step(name: str) -> Run:
        d_input, d_hidden, d_output = networks[name]
        n = torch.nn
        model = n.Sequential(
            n.Linear(d_input, d_hidden), n.ReLU(), n.Linear(d_hidden, d_output)
        )  # fmt: skip
        rule = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
        x, target = (torch.from_numpy(array) for array in data[name])
        loss_of = torch.compile(lambda x, y: torch.nn.functional.cross_entropy(model(x), y))

        def run() -> object:
            loss = loss_of(x, target)
            rule.zero_grad()
            loss.backward()
            rule.step()
            return loss

        return _warmed(run)

    networks = {"MLP 64-32-10, b32, Adam": train.TINY, "MLP 784-256-10, b64, Adam": train.MLP}
    return {name: step(name) for name in networks}


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
        fast[name] = _warmed(_bound(torch.compile(function, dynamic=False), tensors))
    return eager, fast


def _bound(function: Callable[..., Any], tensors: Sequence[Any]) -> Run:
    return lambda: function(*tensors)


def _warmed(run: Run) -> Run:
    for _ in range(3):
        run()
    return run
