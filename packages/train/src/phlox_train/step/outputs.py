"""What the function of a step returns: a loss, a weight, and values for metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from phlox_nn import Module
from phlox_tensor import Tensor, WrongTypeError, concat, where
from phlox_tensor.groups import TreeSum

from .batches import rows_of

Outputs: TypeAlias = dict[str, Any]
Forward: TypeAlias = Callable[[Any, Any], "Mapping[str, Any] | Tensor[Any]"]

_CODE = 'def step(model, batch): return {"loss": loss_fn(model(batch["x"]), batch["y"])}'


def outputs_of(forward: Forward, model: Module, batch: Any) -> Outputs:
    """Return what a function of model and batch gives; a tensor alone is the loss."""
    found: Any = forward(model, batch)
    out: Any = {"loss": found} if isinstance(found, Tensor) else found
    # Most give a dict, and to ask for its class takes a tenth of asking for any mapping.
    known = type(out) is dict or isinstance(found, Mapping)
    loss = out.get("loss") if known else None
    if not isinstance(loss, Tensor) or loss.ndim:
        got = type(found).__name__
        if known:
            got = ", ".join(map(str, out)) if loss is None else f"a loss that is a {_kind(loss)}"
        raise WrongTypeError(
            "step",
            "the function of model and batch gives no loss",
            got=got,
            expected="a tensor without axes, alone or under the name loss",
            hint=_CODE,
        )
    return out


def _kind(loss: Any) -> str:
    name = type(loss).__name__
    return f"{name} of shape {loss.shape}" if isinstance(loss, Tensor) else name


def detached(out: Outputs) -> Outputs:
    """Return outputs that hold no graph, and numbers of Python for those of NumPy."""
    return {k: v.detach() if isinstance(v, Tensor) else _plain(v) for k, v in out.items()}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def weight_of(out: Outputs, part: Any) -> Any:
    """Return how much the loss of a part counts: what the function says, or its examples."""
    weight = out.get("weight")
    if not isinstance(weight, Tensor):
        return rows_of(part) if weight is None else _plain(weight)
    dtype = out["loss"].dtype
    return weight.detach().astype(weight.dtype if weight.dtype.kind == dtype.kind else dtype)


def weighted(value: Tensor[Any], weight: Any) -> Tensor[Any]:
    """Return a value times its weight, which is 0 for a weight of 0 whatever the value."""
    if not isinstance(weight, Tensor):
        return value * weight
    return where(weight == 0, 0.0, value * weight)


def joined(outs: Sequence[Outputs], weights: Sequence[Any], total: Any) -> Outputs:
    """Return the outputs of a batch from those of its parts.

    Tensors without axes are means, weighted as the loss is; others are put together.
    """
    return {name: _joined(name, [out[name] for out in outs], weights, total) for name in outs[0]}


def _joined(name: str, values: list[Any], weights: Sequence[Any], total: Any) -> Any:
    if name == "weight":
        return total
    if isinstance(values[0], Tensor) and not values[0].ndim:
        return mean_of(list(map(weighted, values, weights)), total)
    return joined_as(name, values)


def mean_of(values: Sequence[Tensor[Any]], total: Any) -> Tensor[Any]:
    """Return the mean of values that were weighted."""
    mean: TreeSum[Tensor[Any]] = TreeSum()
    for value in values:
        mean.add(value)
    return mean.value() / total


def joined_as(name: str, values: list[Any]) -> Any:
    """Return the rows of several parts in one."""
    if not all(isinstance(value, Tensor) for value in values):
        raise WrongTypeError(
            "step",
            f"{name} of several parts cannot be put together",
            got=type(values[0]).__name__,
            expected="a tensor",
            hint="Learner(..., microbatches=1), or leave it out",
        )
    return concat(values, axis=0)
