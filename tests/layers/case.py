"""What a row of the table of layers is, and the numbers that layers are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import phlox as px
from phlox import Backend, nn

Array = np.ndarray[Any, Any]
Weights = dict[str, Array]


# Of the largest value: 4,000 ulps of float32, for sums of some hundred terms, a few on each other.
NARROW = 4000 * 2.0**-23


class Case(NamedTuple):
    """A layer, what it is given, and what must come out."""

    config: nn.LayerConfig[Any]
    inputs: tuple[Array, ...]
    plain: Callable[..., Array] | None  # of the parameters by name and the inputs; or values.json
    twin: Callable[..., Any]  # of torch.nn.functional, parameters and inputs
    training: bool = False


def torch() -> Any:
    """PyTorch: only twins ask for it, since an environment of the tests may lack it."""
    import torch as found  # pyright: ignore[reportMissingImports] - see above

    return found


def normal(*shape: int) -> Array:
    """Numbers far from 0 and from each other, so that no maximum changes under a small step."""
    rng = np.random.default_rng(sum(shape) + 100 * len(shape))
    ranks = rng.permutation(int(np.prod(shape))) + 0.25
    return np.asarray((ranks / len(ranks) - 0.5) * 4).reshape(shape)


def classes(high: int, *shape: int) -> Array:
    """Integers below ``high``."""
    return np.random.default_rng(high).integers(0, high, shape)


def rowwise(w: Weights, x: Array, epsilon: float, at: str = "") -> Array:
    """Layer norm, whose parameters are at a path."""
    unit = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)
    return np.asarray(unit * w[f"{at}weight"] + w.get(f"{at}bias", 0))


def whole(found: Any) -> Any:
    """What a layer gives, as one tensor: several are strung together."""
    if isinstance(found, px.Tensor):
        return found
    return px.concat([leaf.reshape(-1) for leaf in px.tree.leaves(found)], axis=0)


def placed(array: Array, device: Backend) -> Any:
    """The array in the floats of the device."""
    dtype = device.default_float if array.dtype.kind == "f" else None
    return px.asarray(array, dtype=dtype, device=device)


def shares(shape: tuple[int, ...]) -> Array:
    """How much of each output a loss has."""
    return np.random.default_rng(5).uniform(0.5, 1.5, shape)
