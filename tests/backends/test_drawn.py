"""Values and gradients of ops over drawn sizes and settings, beside PyTorch's functions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import phlox as px

torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
pytestmark = pytest.mark.long
rows: Any = pytest.importorskip("tests.backends.drawn_rows")

DRAWS: Final = 30


def _first(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


# Deviations of one element are nan on both sides; PyTorch says so.
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", rows.ROWS)
def test_values_and_gradients_are_those_of_pytorch(name: str) -> None:
    rng = np.random.default_rng(sum(map(ord, name)))
    device = px.Autodiff(px.Cpu())
    for _ in range(DRAWS):
        arrays, ours, theirs = rows.ROWS[name](rng)
        there = [torch.tensor(a, requires_grad=True) for a in arrays]
        here = [px.asarray(a, device=device).require_grad() for a in arrays]
        wanted, found = _first(theirs(*there)), _first(ours(*here))
        message = f"{name}: {[a.shape for a in arrays]}"
        assert tuple(wanted.shape) == found.shape, message
        np.testing.assert_allclose(
            found.detach().numpy(), wanted.detach().numpy(), rtol=1e-8, atol=1e-8, err_msg=message
        )
        g = rng.standard_normal(found.shape)
        wanted.backward(torch.tensor(g))
        grads = (found * px.asarray(g, device=device)).sum().backward()
        for mine, theirs_ in zip(here, there, strict=True):
            slope = grads.get(mine)
            got = np.zeros(mine.shape) if slope is None else slope.numpy()
            np.testing.assert_allclose(
                got, theirs_.grad.numpy(), rtol=1e-7, atol=1e-7, err_msg=message
            )
