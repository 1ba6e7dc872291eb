"""How well a model foretells a text."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp
from typing import Any

from phlox_tensor import take_along_axis

_CHUNK = 128  # positions whose logits are there at once


def perplexity(network: Any, rows: Iterator[Any]) -> float:
    """Return exp of the mean of -log of the share of each token but the first of a row (1, length).

    Shares are those that the model gives after the tokens before it in the row.
    """
    total, count = 0.0, 0
    for tokens in rows:
        cache, length = None, tokens.shape[1]
        for start in range(0, length - 1, _CHUNK):
            end = min(start + _CHUNK, length - 1)
            logits, cache = network.extend(tokens[:, start:end], cache)
            wide = logits if logits.dtype.itemsize > 4 else logits.astype("float32")
            shares = take_along_axis(
                wide.log_softmax(axis=-1), tokens[:, start + 1 : end + 1, None], axis=-1
            )
            total -= float(shares.sum().item())
            count += end - start
    return exp(total / count)
