"""``fit``: a loop over a learner and a run, for those who need no other one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from phlox_fusion import compile as compiled
from phlox_nn import Config, Module
from phlox_optim import LossScaling, Optimizer, PlateauScheduler, Scheduler
from phlox_tensor import ArgumentError
from phlox_tensor.groups import Group

from ._evaluate import evaluate
from .metrics.metric import Metric
from .metrics.totals import Totals
from .runs.better import Direction
from .runs.checkpoints import Checkpoints
from .runs.feed import Feed
from .runs.keep import Every, KeepBest, KeepLast, KeepRule
from .runs.results import Best, Series
from .runs.run import Callback, Run
from .runs.stop import StopRule
from .step.learner import Learner
from .step.outputs import Forward

M = TypeVar("M", bound=Module)


@dataclass(frozen=True)
class Fitted(Generic[M]):
    """What a training gave.

    Attributes:
        learner: the model with its optimizer, as they are after the last step.
        run: the run, which is over.
    """

    learner: Learner[M]
    run: Run

    @property
    def model(self) -> M:
        """The model after the last step; its average, where one was kept."""
        ema = self.learner.ema
        return self.learner.model if ema is None else ema.model

    @property
    def reason(self) -> str:
        """Why the training ended: ``"done"``, what a rule said, or a signal."""
        return self.run.reason

    def history(self, name: str) -> Series:
        """Return a curve, ``"train/loss"``."""
        return self.run.history(name)

    def best(self, name: str, better: Direction | None = None) -> Best:
        """Return the best value of a curve, ``"valid/loss"``."""
        return self.run.best(name, better)

    def best_model(self, name: str, better: Direction | None = None) -> M:
        """Return the model of the epoch whose value was best, from its checkpoint.

        Raises:
            ArgumentError: where that checkpoint was not kept.
        """
        best = self.best(name, better)
        if best.path is None:
            raise ArgumentError(
                "best_model",
                "the checkpoint of that epoch was not kept",
                got=f"step {best.step}",
                hint=f'fit(..., run="folder", keep=[train.KeepBest({name!r})])',
            )
        record: Any = Checkpoints(best.path.parent).load(best.step)["parts"]["learner"]
        return self.model.load_record(record.get("ema", record["model"]))


def fit(  # noqa: PLR0913 - what a learner and a run take, by name
    model: M,
    step: Forward,
    batches: Iterable[Any],
    *,
    optimizer: Optimizer,
    lr: Scheduler | PlateauScheduler | float,
    epochs: int = 1,
    valid: Iterable[Any] | None = None,
    metrics: Sequence[Metric] = (),
    run: str | os.PathLike[str] | None = None,
    microbatches: int | None = None,
    scaling: LossScaling | None = None,
    ema: float | None = None,
    seed: int | None = None,
    compile: bool = False,
    group: Group | None = None,
    config: Config | Mapping[str, Any] | None = None,
    keep: Sequence[KeepRule] | None = None,
    stop: Sequence[StopRule] | None = None,
    save: Every = Every(epochs=1, minutes=10),  # noqa: B008 - a frozen value
    callbacks: Sequence[Callback] = (),
    resume: bool | Literal["anyway"] = True,
    show: bool = True,
) -> Fitted[M]:
    """Train a model, and return it with its curves.

    It is a loop over ``Learner`` and ``Run``; what it does not do is another one.

    Args:
        model: one on a device that records.
        step: a function of a model and a batch, which gives a loss, or a dict with ``"loss"`` and
            what metrics take.
        batches: a loader.
        optimizer: such as ``optim.AdamWConfig().init()``. It keeps its states, and a schedule its
            place: another training takes new ones.
        lr: a schedule, or a rate.
        epochs: how often to go through the batches.
        valid: batches to evaluate after each epoch; they are logged as ``"valid/loss"``.
        metrics: the metrics of the evaluation.
        run: the folder of the run, which a second call goes on with; None keeps all in memory.
        keep: rules for checkpoints; by default the last one, and the best by the loss and by
            each metric of the evaluation.
        microbatches, scaling, ema, seed, compile, group: as of ``Learner``.
        config, stop, save, callbacks, resume, show: as of ``Run``.

    Raises:
        RunError: as ``Run``.

    Example:
        >>> def step(model, x):
        ...     return (model(x) - 3.0).square().mean()
        >>> model = nn.Linear(1, 1, device="cpu").train(px.Autodiff("cpu"))
        >>> done = fit(model, step, [px.ones((4, 1))] * 20, optimizer=optim.SgdConfig().init(),
        ...            lr=0.1, epochs=2, valid=[px.ones((1, 1))], show=False)
        >>> done.best("valid/loss").epoch, done.best("train/loss").value < 1e-3
        (1, True)
    """
    _check(metrics, valid)
    learner = Learner(
        model,
        optimizer,
        lr,
        microbatches=microbatches,
        scaling=scaling,
        ema=ema,
        seed=seed,
        compile=compile,
        group=group,
    )
    if keep is None:
        names = [] if valid is None else ["loss", *(m.name for m in metrics if m.better != "none")]
        keep = [KeepLast(1), *(KeepBest(f"valid/{name}") for name in names)]
    checked = compiled(step) if compile else step
    settings: Any = {"config": config, "keep": keep, "stop": stop, "save": save}
    with Run(
        run, learner, batches, callbacks=callbacks, resume=resume, show=show, **settings
    ) as training:
        for _ in training.epochs(epochs):
            for batch in training.batches():
                training.log(loss=learner.step(step, batch)["loss"])
            if valid is not None:
                seen: Any = learner.model if learner.ema is None else learner.ema.model
                found = evaluate(seen, checked, valid, metrics, group=group)
                training.log(found, split="valid")
            if isinstance(lr, PlateauScheduler):
                lr.step(training.last("valid/loss" if valid is not None else "train/loss"))
    return Fitted(learner, training)


def _check(metrics: Sequence[Metric], valid: Iterable[Any] | None) -> None:
    """Refuse before the first epoch what would fail after it."""
    Totals(metrics)
    if valid is not None:
        Feed(valid)
    elif metrics:
        raise ArgumentError(
            "fit",
            "metrics are of an evaluation, and there is none",
            got=", ".join(metric.name for metric in metrics),
            expected="batches to evaluate",
            hint="fit(..., valid=data.DataLoader(dataset, 512), metrics=metrics)",
        )
