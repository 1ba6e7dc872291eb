"""Models among the arguments of compiled functions: which of them share a version."""

from __future__ import annotations

import pytest

import phlox as px
from phlox import Autodiff, Numpy, nn


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
