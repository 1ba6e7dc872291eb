"""A decoder of ``nn.models`` beside the same formula in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Cpu
from phlox.nn import models

DEVICE = Cpu(float="float64")
TOKENS = px.asarray(np.random.default_rng(0).integers(0, 13, (2, 7)), device=DEVICE)


@pytest.fixture
def gpt() -> models.Gpt:
    """A small decoder, whose ids, which follow from the seed, no other test has."""
    px.seed(1113)
    return models.GptConfig(13, 16, 8, 2, 2).init(DEVICE)


def test_a_decoder_is_that_of_the_paper(gpt: models.Gpt) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    w = {k: torch.tensor(p.value.numpy()) for k, p in gpt.params().items()}
    f = torch.nn.functional
    tokens = torch.tensor(TOKENS.numpy())
    x = w["wte.weight"][tokens] + w["wpe.weight"][:7]

    def norm(x: Any, at: str) -> Any:
        return f.layer_norm(x, (8,), w[f"{at}.weight"], w[f"{at}.bias"])

    def linear(x: Any, at: str) -> Any:
        return x @ w[f"{at}.weight"] + w[f"{at}.bias"]

    for i in range(2):
        parts = linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(8, -1)
        heads = [part.reshape(2, 7, 2, 4).transpose(1, 2) for part in parts]
        seen = f.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + linear(seen.transpose(1, 2).reshape(2, 7, 8), f"h.{i}.attn.c_proj")
        inner = f.gelu(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        x = x + linear(inner, f"h.{i}.mlp.c_proj")
    want = norm(x, "ln_f") @ w["wte.weight"].T
    assert np.allclose(gpt(TOKENS).numpy(), want.numpy(), rtol=1e-10, atol=1e-12)
