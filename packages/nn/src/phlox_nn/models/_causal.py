"""What models that go on with a text have in common: a cache, and tokens drawn one by one."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from phlox_tensor import (
    ArgumentError,
    Float,
    Int,
    Tensor,
    WrongTypeError,
    concat,
    random,
    topk,
    where,
)

from ..layers.attention import KeyValues
from ..module.module import Module

Caches = tuple[KeyValues, ...]


class CausalModel(Module):
    """Base of models that tell each token from those before it.

    Example:
        >>> import phlox as px
        >>> from phlox_nn import models
        >>> model = models.GptConfig(words=9, positions=8, d_model=4, n_layers=1, n_heads=2).init()
        >>> logits, cache = model.extend(px.asarray([[1, 2, 3]]))
        >>> model.extend(px.asarray([[4]]), cache)[0].shape
        (1, 1, 9)
    """

    def forward(self, tokens: Tensor[Int]) -> Tensor[Float]:
        """Map tokens (N, length) to logits (N, length, words) of the tokens that follow."""
        return self.extend(tokens)[0]

    @abstractmethod
    def extend(
        self, tokens: Tensor[Int], cache: Caches | None = None
    ) -> tuple[Tensor[Float], Caches]:
        """Map the next tokens (N, length) to logits, and to what the layers have to keep."""

    def generate(
        self,
        tokens: Tensor[Int],
        count: int,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
    ) -> Tensor[Int]:
        """Return tokens (N, length) followed by ``count`` more, drawn from what is likely.

        A model that trains neither drops values nor records here.

        Args:
            tokens: at least one for each text.
            count: how many are added.
            temperature: what logits are divided by; 0 for the likeliest token each time.
            top_k: how many tokens there are to choose from; None for all.
            top_p: the likeliest tokens that have this share together are chosen from; None for
                all. Holtzman et al., 2020.

        Raises:
            ArgumentError: for a temperature or a count below 0, a share that is none, no token to
                choose from or to start with.
            ShapeError: for a text longer than the positions.
            WrongTypeError: for tokens that are no tensor, and a count that is no int.
        """
        _check_start(tokens, count)
        if temperature < 0 or (top_k is not None and top_k < 1):
            got = f"temperature {temperature}, top_k {top_k}"
            raise ArgumentError("generate", "no choice", got=got, expected="0 or more; 1 or more")
        if top_p is not None and not 0.0 < top_p <= 1.0:
            raise ArgumentError(
                "generate",
                "top_p is no share",
                got=top_p,
                expected="0 < top_p <= 1",
                hint="temperature=0 for the likeliest token each time",
            )
        cache: Caches | None = None
        new, model = tokens, self.with_training(False).freeze()
        for _ in range(count):
            logits, cache = model.extend(new, cache)
            drawn = _drawn(logits[:, -1], temperature, top_k, top_p)
            new = drawn[:, None].astype(tokens.dtype)
            tokens = concat((tokens, new), axis=-1)
        return tokens


def _check_start(tokens: Any, count: object) -> None:
    """Refuse what no text goes on from."""
    if not isinstance(tokens, Tensor) or type(count) is not int:
        raise WrongTypeError(
            "generate",
            "tokens are a tensor, and their count an int",
            got=f"a {type(tokens).__name__} and {count!r}",
            expected="tokens (N, length), and how many are added",
            hint="model.generate(px.asarray([[1, 2]]), 3)",
        )
    if tokens.ndim != 2 or not tokens.shape[1] or count < 0:
        raise ArgumentError(
            "generate",
            "nothing to go on from",
            got=f"tokens {tokens.shape}, count {count}",
            expected="tokens (N, length) with one each at least, count >= 0",
            hint="tokens[None] for a single text" if tokens.ndim == 1 else None,
        )


def _drawn(
    logits: Tensor[Float], temperature: float, top_k: int | None, top_p: float | None
) -> Tensor[Int]:
    """One token for each row (N, words): the largest logit after noise by Gumbel, 1954."""
    if top_k is not None and top_k < logits.shape[-1]:
        least = topk(logits, top_k, axis=-1)[0].min(axis=-1, keepdims=True)
        logits = where(logits < least, -float("inf"), logits)
    if temperature:
        logits = logits / temperature
        if top_p is not None:
            logits = where(logits < _least_of(logits, top_p), -float("inf"), logits)
        noise = random.uniform(logits.shape, 1e-7, 1.0, device=logits.device)
        logits = logits - (-noise.log()).log().astype(logits.dtype)
    return logits.argmax(axis=-1)


def _least_of(logits: Tensor[Float], top_p: float) -> Tensor[Float]:
    """The least logit (N, 1) of those that have a share together; the likeliest always counts."""
    falling = topk(logits, logits.shape[-1], axis=-1)[0]
    shares = falling.softmax(axis=-1)
    before = shares.cumulative_sum(axis=-1) - shares
    return where(before < top_p, falling, float("inf")).min(axis=-1, keepdims=True)
