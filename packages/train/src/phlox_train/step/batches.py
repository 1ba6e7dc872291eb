"""Batches: moved to the device of a model, counted, and cut into parts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from phlox_nn import Module
from phlox_tensor import ArgumentError, Backend, Tensor, asarray, tree


def placed(batch: Any, device: Backend) -> Any:
    """Return a batch with its arrays and tensors on a device; all else stays."""
    if type(batch) is dict:  # the form of most: a walk of the tree takes longer than the check
        for leaf in batch.values():
            if not isinstance(leaf, Tensor) or leaf.device is not device:
                break
        else:
            return batch
    return tree.map(lambda leaf: _on(leaf, device), batch)


def _on(leaf: Any, device: Backend) -> Any:
    if isinstance(leaf, np.ndarray):
        return asarray(leaf, device=device)
    if isinstance(leaf, Tensor) and leaf.device is not device:
        return leaf.to_device(device)
    return leaf


def rows_of(batch: Any) -> int:
    """Return how many examples a batch has: the first size of its arrays."""
    leaves = tree.leaves(batch)
    sizes = {x.shape[0] for x in leaves if isinstance(x, np.ndarray | Tensor) and x.ndim}
    if len(sizes) != 1:
        raise ArgumentError(
            "rows",
            "the examples of a batch cannot be counted",
            got=f"arrays of first sizes {sorted(sizes)}",
            expected="arrays with one first size",
            hint='{"loss": loss, "weight": count} as what the function of a step gives',
        )
    return int(sizes.pop())


def own_rows(batch: Any, parts: int, mine: range) -> tuple[Any, int]:
    """Return the rows of a batch that are those of some parts, and how many it has."""
    rows = rows_of(batch)
    low, high = mine.start * rows // parts, mine.stop * rows // parts
    return _cut(batch, low, high, rows), rows


def parts_of(
    batch: Any, parts: int, mine: range | None = None, whole: int | None = None
) -> list[Any]:
    """Return the parts of a batch: rows v·b//parts to (v+1)·b//parts; None for an empty one.

    Args:
        mine: which of them; all by default.
        whole: how many rows the whole batch has, where this has only those of ``mine``.
    """
    mine = range(parts) if mine is None else mine
    if not mine:
        return []
    rows = rows_of(batch)
    if not (rows if whole is None else whole):
        got, expected = "no examples", "one or more"
        raise ArgumentError("step", "an empty batch", got=got, expected=expected)
    edges = [v * (rows if whole is None else whole) // parts for v in [*mine, mine.stop]]
    if whole is not None:
        edges = [edge - edges[0] for edge in edges]
        if rows != edges[-1]:
            raise ArgumentError(
                "step",
                "the batch is not what this rank has of it",
                got=f"{rows} examples",
                expected=f"{edges[-1]} of {whole}",
                hint="for batch in run.batches(): learner.step(forward, batch), all of it",
            )
    return [None if low == high else _cut(batch, low, high, rows) for low, high in pairwise(edges)]


def _cut(value: Any, low: int, high: int, rows: int) -> Any:
    if isinstance(value, np.ndarray | Tensor):
        return value[low:high] if value.ndim else value
    if isinstance(value, dict):
        return {key: _cut(item, low, high, rows) for key, item in value.items()}
    if isinstance(value, list) and len(value) == rows and not _has_arrays(value):
        return value[low:high]  # texts and the like, one for each example
    leaves, structure = tree.flatten(value)
    if not leaves or leaves[0] is value:
        return value
    return tree.rebuild(structure, [_cut(leaf, low, high, rows) for leaf in leaves])


def _has_arrays(value: Any) -> bool:
    return any(isinstance(leaf, np.ndarray | Tensor) for leaf in tree.leaves(value))


def recording(model: Module) -> Backend:
    """Return the device that a model trains on."""
    devices = model.devices
    for device in devices:
        if device.records:
            return device
    raise ArgumentError(
        "Learner",
        "the model is on no device that records",
        got=", ".join(map(repr, devices)) or "no parameters",
        expected="Autodiff(device)",
        hint="model.train(px.Autodiff(device))",
    )
