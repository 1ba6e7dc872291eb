"""What models have in common: sizes, small weights, heads."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

from phlox_tensor import Backend, Float, Tensor, attention

from .. import initializers as init
from ..layers.attention import KeyValues
from ..layers.embedding import Embedding
from ..layers.linear import Linear, LinearConfig
from ..module.module import Module
from ..param.param import Param
from ..settings.config import Config
from ..settings.fields import check_sizes

# BERT's start of weights, which CLIP and Whisper took over.
SMALL = init.Normal(std=0.02)


class ModelConfig(Config):
    """Base of configs of models, whose sizes mean the same in each."""

    def __post_init__(self) -> None:
        """Check sizes, then all else.

        Raises:
            ConfigError: naming the field; no size or factor that is usually there may be 0.
        """
        check_sizes(self)
        for each in fields(self):
            usual: Any = each.default
            value = getattr(self, each.name)
            counts = type(usual) in {int, float} and usual >= 1
            if counts and isinstance(value, int | float):
                self.require(each.name, value > 0, "more than 0")
        super().__post_init__()


def small_linear(
    d_input: int,
    d_output: int,
    device: Backend | str | None,
    initializer: init.Initializer = SMALL,
    *,
    bias: bool = True,
) -> Linear:
    """Return a linear layer of small weights whose bias, if it has one, is 0."""
    made = _linear(d_input, d_output, bias, initializer).init(device)
    return made.replace(bias=init.Zeros().param((d_output,), device)) if bias else made


@cache
def _linear(d_input: int, d_output: int, bias: bool, initializer: init.Initializer) -> LinearConfig:
    """The settings, which many layers share."""
    return LinearConfig(d_input, d_output, bias, initializer=initializer)


def by_table(x: Tensor[Float], table: Embedding) -> Tensor[Float]:
    """Return the logits (…, words) of a table of tokens that is the last map too."""
    weight: Any = table.weight
    if type(weight) is Param:
        return x @ weight.value.mT
    found: Tensor[Float] = weight.transposed_linear(x)  # made of something else
    return found


def require_heads(config: Any) -> None:
    """Raise ConfigError unless the heads divide the vector."""
    fits = config.n_heads > 0 and not config.d_model % config.n_heads
    config.require("n_heads", fits, f"a divisor of d_model {config.d_model}")


def heads_of(x: Tensor[Float], heads: int) -> Tensor[Float]:
    """(N, length, d) as (N, heads, length, d / heads)."""
    n, length, d = x.shape
    return x.reshape(n, length, heads, d // heads).swapaxes(1, 2)


def heads_of_one_map(x: Tensor[Float], heads: int) -> tuple[Tensor[Float], ...]:
    """Queries, keys and values (N, heads, length, d / heads), which stand beside each other."""
    n, length, d = x.shape
    parts = x.reshape(n, length, 3, heads, d // (3 * heads))
    return tuple(parts[:, :, i].swapaxes(1, 2) for i in range(3))


def without_heads(x: Tensor[Float]) -> Tensor[Float]:
    """(N, heads, length, size) as (N, length, heads · size)."""
    n, heads, length, size = x.shape
    return x.swapaxes(1, 2).reshape(n, length, heads * size)


class ProjectedAttention(Module):
    """Heads of a linear map each for keys, values and queries."""

    k_proj: Linear
    v_proj: Linear
    q_proj: Linear
    out_proj: Linear
    heads: int

    def keys(self, x: Tensor[Float]) -> KeyValues:
        """Map (N, length, d) to keys and values (N, heads, length, d / heads)."""
        return KeyValues(heads_of(self.k_proj(x), self.heads), heads_of(self.v_proj(x), self.heads))

    def forward(
        self, x: Tensor[Float], seen: KeyValues, *, is_causal: bool = False
    ) -> Tensor[Float]:
        """Map (N, length, d) to the same shape, by what is seen."""
        query = heads_of(self.q_proj(x), self.heads)
        found = attention(query, seen.keys, seen.values, is_causal=is_causal)
        return self.out_proj(without_heads(found))
