"""Metrics over many batches: parts are merged on the host, values are computed at the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from numpy.typing import NDArray

from phlox_tensor import ArgumentError, Tensor, WrongTypeError
from phlox_tensor.groups import Group, all_gather_object

from ..step.batches import rows_of
from ..step.outputs import Outputs
from .metric import Metric, State, read

_LATE: Final = 2  # batches, after which a GPU has computed a requested value


class Results(dict[str, "float | NDArray[Any]"]):
    """Values by name.

    Attributes:
        better: which values are better, ``"higher"`` or ``"lower"``, where one is.
    """

    def __init__(self, values: Mapping[str, Any], better: Mapping[str, str]) -> None:
        """Hold values."""
        super().__init__(values)
        self.better = dict(better)


@final
class Totals:
    """The loss of an evaluation, a mean over examples, and the states of its metrics."""

    def __init__(self, metrics: Sequence[Metric], group: Group | None = None) -> None:
        """Start without batches.

        Args:
            group: ranks, of which rank ``r`` of ``n`` takes batches ``r``, ``r + n``, …

        Raises:
            ArgumentError: for two metrics of one name.
            WrongTypeError: for what is no metric, such as its class.
        """
        for metric in metrics:
            _check(metric)
        names = ["loss", *(metric.name for metric in metrics)]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            kinds = [type(metric).__name__ for metric in metrics if metric.name == twice[0]]
            hint = f'train.{(kinds or ["Accuracy"])[-1]}(..., name="another_{twice[0]}")'
            got = ", ".join(twice)
            raise ArgumentError("evaluate", "names occur twice", got=got, hint=hint)
        self._metrics = tuple(metrics)
        self._group = group if group is not None and group.size > 1 else None
        self._own: list[tuple[float, float, list[Any]]] = []  # for all ranks
        self._states: list[State | None] = [None] * len(metrics)
        self._loss = self._weight = 0.0
        self._waiting: deque[tuple[Any, Any, list[Mapping[str, Any]]]] = deque()

    def add(self, out: Outputs, batch: Any) -> None:
        """Take what the function of a step gave for a batch; it is read later.

        Raises:
            ArgumentError: where it does not give what a metric takes.
        """
        weight = out["weight"] if "weight" in out else rows_of(batch)
        parts = [metric.part(*self._taken(metric, out)) for metric in self._metrics]
        self._waiting.append((out["loss"], weight, parts))
        if len(self._waiting) > _LATE:
            self._merge()

    def results(self) -> Results:
        """Return what all batches together give.

        Raises:
            ArgumentError: without a batch.
        """
        while self._waiting:
            self._merge()
        if self._group is not None:
            shares = all_gather_object(self._group, self._own)
            for turn in range(len(shares[0])):
                for share in shares:
                    if turn < len(share):
                        self._take(*share[turn])
        if not self._weight:
            hint = "evaluate(model, step, data.DataLoader(dataset, 512), metrics)"
            raise ArgumentError("evaluate", "no examples were given", hint=hint)
        values: dict[str, Any] = {"loss": self._loss / self._weight}
        better = {"loss": "lower"}
        for metric, state in zip(self._metrics, self._states, strict=True):
            assert state is not None
            values[metric.name] = metric.value(state)
            if metric.better != "none":
                better[metric.name] = metric.better
        return Results(values, better)

    def _taken(self, metric: Metric, out: Outputs) -> list[Any]:
        lost = [name for name in metric.takes if name not in out]
        if lost:
            raise ArgumentError(
                "evaluate",
                f"{metric.name} takes what the function of model and batch does not give",
                got=", ".join(out),
                expected=", ".join(metric.takes),
                hint=f'return {{"loss": loss, {", ".join(f"{n!r}: {n}" for n in metric.takes)}}}',
            )
        taken = [out[name] for name in metric.takes]
        for name, value in zip(metric.takes, taken, strict=True):
            if not isinstance(value, Tensor) and not getattr(metric, "texts", False):
                raise WrongTypeError(
                    "evaluate",
                    f"{name}, which {metric.name} takes, is no tensor",
                    got=type(value).__name__,
                    expected="a tensor",
                    hint=f"px.asarray({name})",
                )
        return [x.detach() if isinstance(x, Tensor) else x for x in taken]

    def _merge(self) -> None:
        loss, weight, parts = self._waiting.popleft()
        found = float(loss), float(weight), [read(part) for part in parts]
        if self._group is None:
            self._take(*found)
        else:
            self._own.append(found)

    def _take(self, loss: float, count: float, parts: list[Any]) -> None:
        if count:
            self._loss += loss * count
            self._weight += count
        for place, (metric, part) in enumerate(zip(self._metrics, parts, strict=True)):
            self._states[place] = metric.merge(self._states[place], part)


def _check(metric: object) -> None:
    needed = ("name", "takes", "better", "part", "merge", "value")
    lost = [name for name in needed if not hasattr(metric, name)]
    if isinstance(metric, type) or lost:
        raise WrongTypeError(
            "evaluate",
            "not a metric",
            got=f"the class {metric.__name__}" if isinstance(metric, type) else repr(metric),
            expected=f"an object with {', '.join(needed)}",
            hint=f"{metric.__name__}()" if isinstance(metric, type) else "train.Accuracy()",
        )
