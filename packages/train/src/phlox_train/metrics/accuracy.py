"""The share of right answers."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from phlox_tensor import Tensor, asarray

from .metric import Better, State


@final
class Accuracy:
    """The share of examples whose largest logit is that of the target.

    Logits (…, classes) and targets (…), integers.

    Example:
        >>> metric = Accuracy()
        >>> part = metric.part(px.asarray([[0.1, 0.9], [0.8, 0.2]]), px.asarray([1, 1]))
        >>> metric.value(metric.merge(None, {k: v.numpy() for k, v in part.items()}))
        0.5
    """

    name = "accuracy"
    better: Better = "higher"

    def __init__(self, logits: str = "logits", targets: str = "targets") -> None:
        """Say under which names a step gives both."""
        self.takes = (logits, targets)

    def part(self, logits: Tensor[Any], targets: Tensor[Any]) -> dict[str, Tensor[Any]]:
        """Return how many are right, and how many there are."""
        right = (logits.argmax(axis=-1) == targets).sum()
        return {"right": right, "count": asarray(targets.size)}

    def merge(self, state: State | None, part: State) -> State:
        """Return the counts together."""
        new = {name: np.asarray(array, np.int64) for name, array in part.items()}
        return new if state is None else {name: state[name] + new[name] for name in new}

    def value(self, state: State) -> float:
        """Return the share; NaN without examples."""
        return float(np.float64(state["right"]) / state["count"]) if state["count"] else np.nan
