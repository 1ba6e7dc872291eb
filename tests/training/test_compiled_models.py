"""Models and compiled functions: as arguments, which of them share a version; in parts."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Numpy, Tensor, nn


def test_another_model_is_another_version_and_says_so() -> None:
    device = Autodiff(Numpy())
    models = [nn.Linear(3, 2, device=device) for _ in range(10)]
    x = px.ones((4, 3), device=device)
    scores = px.compile(lambda model, x: model(x).sum())
    for model in models[:9]:
        scores(model, x)
    with pytest.warns(UserWarning, match=r"Param of 1 parts with '\w+', then(.|\n)*model\.map"):
        scores(models[9], x)
    assert "holds for the ids of 2 Param: another model is another version" in scores.explain(
        models[0], x
    )
    scores = px.compile(lambda model, x: model(x).sum())
    for model in models:
        params = model.params()
        same = models[0].map(lambda path, p: p.with_value(params[path].value.detach()))  # noqa: B023
        assert scores(same, x).item() == model(x).sum().item()
    assert scores.versions == 1


@pytest.mark.parametrize("layer", [nn.RotaryEncoding(8), nn.SinusoidalEncoding(8)])
def test_positions_that_are_computed_on_the_host_are_constants(layer: nn.Module) -> None:
    replay = px.compile(lambda net, x: net(x))
    for length in (3, 5):
        for seed in range(3):
            values = np.random.default_rng(seed).normal(size=(2, length, 8)).astype(np.float32)
            x = px.asarray(values, device=px.Cpu())
            assert np.array_equal(replay(layer, x).numpy(), layer(x).numpy())


def test_a_part_is_compiled_by_its_forward() -> None:
    class Part(nn.Module):
        inner: nn.Linear

        @px.compile
        def forward(  # pyright: ignore[reportIncompatibleMethodOverride] - no plain function
            self, x: Tensor
        ) -> Tensor:
            return self.inner(x).relu()

    inner, x, sequential = nn.Linear(3, 3), px.ones((2, 3)), cast(Any, nn.Sequential)
    whole = sequential(Part(inner), inner)
    assert [whole(x).tolist() for _ in range(4)] == [inner(inner(x).relu()).tolist()] * 4
    with pytest.raises(px.TreeError, match=r"layers of Sequential(.|\n)*@px\.compile above forw"):
        sequential(px.compile(inner), inner)
