"""How numbers vary together: means and products of deviations, which merge without loss."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import Tensor, stack

from .metric import State
from .row import Merge, Parts, Row, floats


class Moments(Row):
    """Base of rows over the means of variables and their products about the means.

    Two states become one as in Chan, Golub and LeVeque, "Algorithms for computing the sample
    variance", 1983, https://doi.org/10.1080/00031305.1983.10483115: nothing cancels.
    """

    merges: ClassVar[Merge] = "moments"

    def tally(self, part: State) -> Mapping[str, Any]:
        """Return the moments of variables (variables, examples, outputs)."""
        return moments_of(np.asarray(part["variables"], np.float64))

    def _joined(self, old: State, new: State) -> Mapping[str, Any]:
        return joined(old, new)


class Pairs(Moments, takes=("predictions", "targets"), better="higher"):
    """Base of rows over predictions, targets and what is between them.

    The first axis is that of examples; the value is the mean over all others.
    """

    def part(self, predictions: Tensor[Any], targets: Tensor[Any]) -> Parts:
        """Return predictions and targets."""
        self.same_shapes(predictions=predictions, targets=targets)
        both = stack([floats(predictions), floats(targets)])
        rows = both.shape[1] if both.ndim > 1 else 1
        return {"variables": both.reshape((2, rows, both.size // (2 * rows) if rows else 1))}

    def value(self, state: State) -> float:
        """Return the mean over outputs; NaN where nothing varies."""
        if not state["count"]:
            return np.nan
        products = state["products"]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self._of(products[0, 0], products[0, 1], products[1, 1], state)
        return float(np.mean(np.where(np.isfinite(found), found, np.nan)))

    @abstractmethod
    def _of(self, pp: Any, pt: Any, tt: Any, state: State) -> Any:
        """Return the value of each output from sums of squares and products about the means."""


class ConcordanceCorrelation(Pairs):
    """How near predictions are to the line of equal values, from -1 to 1.

    ``2 cov(p, t) / (var(p) + var(t) + (mean(p) - mean(t))²)``. Lin, "A concordance correlation
    coefficient to evaluate reproducibility", 1989, https://doi.org/10.2307/2532051

    Example:
        >>> ConcordanceCorrelation()(px.asarray([1.0, 2.0, 3.0]), px.asarray([2.0, 3.0, 4.0]))
        0.5714285714285714
    """

    def _of(self, pp: Any, pt: Any, tt: Any, state: State) -> Any:
        return 2 * pt / (pp + tt + _apart(state))


class ExplainedVariance(Pairs):
    """``1 - var(target - prediction) / var(target)``: R² that does not see a constant error.

    Example:
        >>> ExplainedVariance()(px.asarray([2.0, 3.0, 4.0]), px.asarray([1.0, 2.0, 3.0]))
        1.0
    """

    def _of(self, pp: Any, pt: Any, tt: Any, state: State) -> Any:
        return 1 - (pp - 2 * pt + tt) / tt


class PearsonCorrelation(Pairs):
    """``cov(p, t) / √(var(p) var(t))``: whether predictions lie on a line, from -1 to 1.

    Pearson, "Note on regression and inheritance in the case of two parents", 1895,
    https://doi.org/10.1098/rspl.1895.0041

    Example:
        >>> PearsonCorrelation()(px.asarray([-1.0, 1.0]), px.asarray([3.0, 5.0]))
        1.0
    """

    def _of(self, pp: Any, pt: Any, tt: Any, state: State) -> Any:
        return np.clip(pt / np.sqrt(pp * tt), -1, 1)


class R2(Pairs):
    """The share of variance that predictions explain: ``1 - Σ(t - p)² / Σ(t - mean(t))²``.

    NaN for targets that are all equal: they have none.

    Example:
        >>> R2()(px.asarray([-2.0, 0.0]), px.asarray([-2.0, 2.0]))
        0.5
    """

    def _of(self, pp: Any, pt: Any, tt: Any, state: State) -> Any:
        return 1 - (pp - 2 * pt + tt + _apart(state)) / tt


def _apart(state: State) -> NDArray[Any]:
    """The square between the means, times the count."""
    return np.asarray(state["count"] * (state["mean"][0] - state["mean"][1]) ** 2)


def moments_of(x: NDArray[Any]) -> dict[str, Any]:
    """Return count, means (variables, outputs) and products (variables, variables, outputs)."""
    count = x.shape[1]
    mean = x.sum(axis=1) / max(count, 1)
    x = x - mean[:, None]
    return {
        "count": count,
        "mean": mean,
        "products": np.einsum("ino,jno->ijo", x, x, optimize=True),
    }


def joined(old: State, new: State) -> dict[str, Any]:
    """Return the moments of both."""
    count = old["count"] + new["count"]
    share = new["count"] / count if count else 0.0
    far = new["mean"] - old["mean"]
    between = np.einsum("io,jo->ijo", far, far) * old["count"] * share
    return {
        "count": count,
        "mean": old["mean"] + far * share,
        "products": old["products"] + new["products"] + between,
    }
