"""Names of torch.optim: what our errors say runs, and averages are those of PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import phlox as px
from phlox import nn, optim
from phlox_optim._elsewhere import NAMES

PROSE = {name for name, code in NAMES.items() if code.startswith(("not built", "a schedule of"))}


@pytest.mark.parametrize("name", sorted(set(NAMES) - PROSE))
def test_what_is_said_of_a_name_runs(name: str) -> None:
    model = nn.Linear(2, 1)
    first = optim.CosineSchedulerConfig(0.1, steps=3)
    given = {"average": model, "first": first, "model": model, "n": 1, "nn": nn, "optim": optim}
    code = NAMES[name].partition("  # ")[0]
    code = code.replace("grad_clipping=", "grad_clipping = ").partition(" in the config")[0]
    if code.startswith("train."):  # whose data and group are the user's
        compile(code, name, "eval")
    else:
        exec(code, given | {"schedule": first, "second": first})


@pytest.mark.long
def test_the_mean_of_models_is_that_of_pytorch() -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    models = [nn.Linear(2, 1) for _ in range(4)]
    there = torch.nn.Linear(2, 1)
    averaged = torch.optim.swa_utils.AveragedModel(there)
    average = models[0]
    for n, model in enumerate(models):
        values = [p.value.numpy() for p in (model.weight, model.bias) if p is not None]
        with torch.no_grad():
            there.weight.copy_(torch.tensor(values[0].T))
            there.bias.copy_(torch.tensor(values[1]))
        averaged.update_parameters(there)
        if n:
            code = NAMES["AveragedModel"].partition("  # ")[0].partition("= ")[2]
            average = eval(code, {"average": average, "model": model, "n": n, "nn": nn})
    px.testing.assert_close(average.weight.value, averaged.module.weight.detach().numpy().T)
