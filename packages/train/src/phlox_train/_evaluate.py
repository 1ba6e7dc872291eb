"""A model over whole datasets: metrics and predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from phlox_nn import Module
from phlox_tensor import ArgumentError, ShapeError, Tensor, tree
from phlox_tensor.groups import Group, Solo, require_group
from phlox_tensor.names import warn_user

from .metrics.metric import Metric
from .metrics.totals import Results, Totals
from .runs.feed import refuse_items
from .step.batches import placed
from .step.draws import drawing_at
from .step.outputs import Forward, outputs_of
from .step.places import checked_barrier, fingerprint, require_same_batches

R = TypeVar("R")


def evaluate(
    model: Module,
    step: Forward,
    batches: Iterable[Any],
    metrics: Sequence[Metric] = (),
    *,
    group: Group | None = None,
) -> Results:
    """Return the loss and metrics of a model over all batches, for inference.

    The loss is a mean over examples, or over ``"weight"`` where the function gives one, whatever
    the sizes of batches. A loader is gone through from the start of its first epoch, and random
    numbers are those of the batch alone, so the values follow from model and data.

    Args:
        model: in training or not: it is ``model.valid()`` that is asked.
        step: the function of a step.
        batches: a loader, or anything that gives batches.
        metrics: rows that take what the function gives.
        group: ranks that take turns with the batches; what they find is put together in the order
            of batches, so that each gets the values of one process.

    Raises:
        ArgumentError: without examples, and where a metric takes what the function does not give.
        WrongTypeError: for what is no group.

    Example:
        >>> def step(model, batch):
        ...     return (model(batch) - 1.0).square().mean()
        >>> model = nn.Linear(1, 1, bias=False, initializer=nn.initializers.Zeros())
        >>> evaluate(model, step, [px.ones((3, 1)), px.ones((1, 1))])
        {'loss': 1.0}
    """
    group = Solo() if group is None else group
    require_group("evaluate", group)
    totals = Totals(metrics, group)
    require_same_batches(group, batches, "evaluate")
    ask: Callable[[Any, Any], Any] = lambda valid, batch: outputs_of(step, valid, batch)  # noqa: E731 - of two arguments
    for out, batch in _through(model, ask, batches, group):
        totals.add(out, batch)
    return totals.results()


def predict(model: Module, function: Callable[[Any, Any], R], batches: Iterable[Any]) -> R:
    """Return what a function of model and batch gives for all batches, as NumPy arrays in one.

    Args:
        model: in training or not: it is ``model.valid()`` that is asked.
        function: gives a tensor, or a tree of them, whose first axis is that of the examples.
        batches: a loader, or anything that gives batches. One that shuffles is warned of, as its
            rows come in its order.

    Raises:
        ArgumentError: without batches, and for a tensor without axes.
        ShapeError: where batches give tensors whose other axes differ.

    Example:
        >>> model = nn.Linear(1, 1, bias=False, initializer=nn.initializers.Ones())
        >>> rows = [px.asarray([[1.0], [2.0]]), px.asarray([[3.0]])]
        >>> predict(model, lambda model, x: model(x)[:, 0], rows).tolist()
        [1.0, 2.0, 3.0]
    """
    if not getattr(batches, "ordered", True):
        text = "the loader shuffles or leaves out items, so rows are not those of its dataset"
        hint = "data.DataLoader(dataset, 512)"
        warn_user(f"[predict] {text}\nhint: {hint}")
    found = [tree.map(_read, out) for out, _ in _through(model, function, batches, Solo())]
    if not found:
        hint = "predict(model, lambda model, batch: model(batch['x']), batches)"
        raise ArgumentError("predict", "no batches were given", hint=hint)
    joined: R = tree.map(_together, *found)
    return joined


def _together(*parts: Any) -> Any:
    for number, part in enumerate(parts):
        if part.shape[1:] != parts[0].shape[1:]:
            raise ShapeError(
                "predict",
                f"results of batch {number} do not go behind those of the first",
                got=f"shape {part.shape}",
                expected=f"(…, {', '.join(map(str, parts[0].shape[1:]))})",
                hint="data.DataLoader(dataset, 64, collate=data.pad(0, multiple=128))",
            )
    return np.concatenate(parts)


def _through(
    model: Module, function: Callable[[Any, Any], R], batches: Iterable[Any], group: Group
) -> Iterator[tuple[R, Any]]:
    """What a function gives for each batch of this rank, and the batch."""
    refuse_items(batches, "evaluate")
    model = model.valid()
    devices = model.devices
    loader: Any = batches
    if hasattr(loader, "position"):
        loader.position = (0, 0)
    for number, batch in _turns(loader, group):
        there = placed(batch, devices[0]) if devices else batch
        yield drawing_at(number, function, model, there), there


def _turns(loader: Any, group: Group) -> Iterator[tuple[int, Any]]:
    """The batches of this rank with their numbers; a loader reads no others."""
    if group.size > 1 and getattr(loader, "splits", False):
        if group.rank < len(loader):
            with loader.shard(group.rank, group.size) as own:
                yield from zip(count(group.rank, group.size), own, strict=False)
        return
    marks = []
    for number, batch in enumerate(loader):
        if group.size > 1:
            marks.append(fingerprint(batch))
        if number % group.size == group.rank:
            yield number, batch
    checked_barrier(
        group, f"evaluate, {len(marks)} batches, data {crc32(repr(marks).encode()):08x}"
    )


def _read(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor) or not leaf.ndim:
        raise ArgumentError(
            "predict",
            "what the function gives has no axis of examples",
            got=repr(leaf),
            expected="tensors whose first axis is that of the batch",
            hint="predict(model, lambda model, batch: model(batch['x']), batches)",
        )
    return leaf.detach().numpy()
