"""How similar two sets are, of pictures or else, by features that a network gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import ShapeError, Tensor

from .metric import State
from .moments import joined, moments_of
from .row import Merge, Parts, Row, floats


class FrechetDistance(Row, takes=("features", "target_features"), better="lower"):
    """The distance of two Gaussians that have means and covariances of features: FID.

    ``|m1 - m2|² + tr(C1 + C2 - 2 √(C1 C2))``, of (examples, features) each, as many or not. Any
    network gives features; those that FID is published with are of Inception, whose weights no
    package brings. NaN with fewer than two examples of either. Heusel et al., "GANs trained by a
    two time-scale update rule converge to a local Nash equilibrium", 2017,
    https://arxiv.org/abs/1706.08500

    Example:
        >>> FrechetDistance()(px.asarray([[0.0], [2.0]]), px.asarray([[1.0], [3.0], [5.0]]))
        4.343145...
    """

    merges: ClassVar[Merge] = "moments"

    def part(self, features: Tensor[Any], target_features: Tensor[Any]) -> Parts:
        """Return the features."""
        shapes = tuple(features.shape), tuple(target_features.shape)
        if features.ndim != 2 or target_features.ndim != 2 or shapes[0][1] != shapes[1][1]:
            got, expected = f"{shapes[0]}, {shapes[1]}", "(examples, features), as many features"
            hint = "features.reshape((len(features), -1))" if features.ndim > 2 else None
            raise ShapeError(
                type(self).__name__, "not features", got=got, expected=expected, hint=hint
            )
        both = {"features": features, "targets": target_features}
        return {name: floats(x) for name, x in both.items()}

    def tally(self, part: State) -> Mapping[str, Any]:
        """Return count, means and products of both sets."""
        found = {
            name: moments_of(np.asarray(x, np.float64).T[..., None]) for name, x in part.items()
        }
        return {f"{side}_{name}": x for side, each in found.items() for name, x in each.items()}

    def _joined(self, old: State, new: State) -> Mapping[str, Any]:
        sides = ("features", "targets")
        found = {side: joined(_side(old, side), _side(new, side)) for side in sides}
        return {f"{side}_{name}": x for side, each in found.items() for name, x in each.items()}

    def value(self, state: State) -> float:
        """Return the distance."""
        sides = [_side(state, side) for side in ("features", "targets")]
        if min(side["count"] for side in sides) < 2:
            return np.nan
        c1, c2 = (side["products"][..., 0] / (side["count"] - 1) for side in sides)
        apart = np.sum((sides[0]["mean"] - sides[1]["mean"]) ** 2)
        root = _root(c1)
        # The product of two covariances has the eigenvalues of this, which is symmetric.
        shared = np.linalg.eigvalsh(root @ c2 @ root)
        both = np.sqrt(np.maximum(shared, 0)).sum()
        return float(apart + np.trace(c1) + np.trace(c2) - 2 * both)


def _side(state: State, side: str) -> State:
    return {name: state[f"{side}_{name}"] for name in ("count", "mean", "products")}


def _root(matrix: NDArray[Any]) -> NDArray[Any]:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)
