"""Scaling of losses, so that gradients in half precision do not vanish."""

from __future__ import annotations

from collections.abc import Container
from math import inf
from typing import Any, Final, NamedTuple, final

from phlox_record import Record
from phlox_tensor import Float, GradientError, Tensor, WrongTypeError
from phlox_tensor.capture import Cell

from ._checked import CheckedConfig
from ._optimizer import AnyGradients, M, Optimizer
from ._reading import refuse_recorded
from ._settled import Settled, no_record

_STEP: Final = (
    "scaling = optim.LossScaling(); grads = scaling.scaled(loss).backward(); "
    "model = scaling.step(optim.AdamConfig().init(), lr, model, grads)"
)


class LossScalingConfig(CheckedConfig):
    """Settings of ``LossScaling``.

    Attributes:
        scale: what losses are multiplied by at first.
        growth: factor of the scale after ``interval`` good steps.
        backoff: factor of the scale after a step whose gradients are not finite.
        interval: good steps before the scale grows.
    """

    scale: float = 65536.0
    growth: float = 2.0
    backoff: float = 0.5
    interval: int = 2000

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("scale", self.scale > 0, "> 0")
        self.require("growth", self.growth >= 1, ">= 1")
        self.require("backoff", 0 < self.backoff < 1, "0 < backoff < 1")
        self.require("interval", self.interval > 0, "at least 1")

    def init(self) -> LossScaling:
        """Return the scaling at its first step."""
        return LossScaling(self)


class _ScaleState(NamedTuple):
    scale: float
    good: int  # steps since the scale changed


@final
class LossScaling(Settled):
    """Multiplies losses by a scale that gradients bear.

    A step whose gradients are not finite is left out and makes the scale smaller.

    ``grads = scaling.scaled(loss).backward()``, then ``model = scaling.step(optimizer, lr, model,
    grads)``. ``step`` and ``load_record`` change the scaling itself.
    Micikevicius et al., 2017, https://arxiv.org/abs/1710.03740

    Example:
        >>> import phlox_optim as optim, phlox_tensor as pt
        >>> scaling = optim.LossScalingConfig(scale=8.0).init()
        >>> scaling.scaled(pt.asarray(2.0)).item()
        16.0
    """

    _hint = "optim.LossScalingConfig(...).init(): settings belong to the config"

    def __init__(self, config: LossScalingConfig | None = None) -> None:
        """Take the settings.

        Raises:
            WrongTypeError: for what is no config of it, such as an optimizer.
        """
        if not isinstance(config, LossScalingConfig | None):
            raise WrongTypeError(
                "LossScaling",
                "it is made of its config alone",
                got=type(config).__name__,
                expected="LossScalingConfig",
                hint=_STEP,
            )
        self._config = config or LossScalingConfig()
        self._state = Cell(_ScaleState(self._config.scale, 0))
        self._asked = False  # whether anybody may know the scale

    @property
    def scale(self) -> float:
        """What losses are multiplied by."""
        self._asked = True
        return self._state.get().scale

    def scaled(self, loss: Tensor[Float]) -> Tensor[Float]:
        """Return the loss times the scale."""
        return loss * self.scale

    def step(
        self,
        optimizer: Optimizer,
        lr: float,
        module: M,
        grads: AnyGradients,
        *,
        only: Container[str] | None = None,
    ) -> M:
        """Return the module after a step by gradients of the scaled loss.

        They are divided by the scale: those of another loss would be next to nothing. ``only`` is
        as of ``OptimizerAdaptor.step``.

        Raises:
            CompileError: inside of a compiled function, as it reads whether gradients are finite.
            GradientError: before the first loss is scaled, or the scale read or loaded.
            WrongTypeError: for an optimizer that takes no gradients, such as ``Lbfgs``.
        """
        given: object = optimizer
        if not isinstance(given, Optimizer):
            raise WrongTypeError(
                "step",
                "gradients of a scaled loss go to an optimizer that takes gradients",
                got=type(given).__name__,
                expected="what the config of an optimizer gives, optim.AdamConfig().init()",
                hint=_STEP,
            )
        if not self._asked:
            raise GradientError(
                "step",
                "the gradients are divided by a scale that no loss was multiplied by",
                expected="gradients of a scaled loss",
                hint="grads = scaling.scaled(loss).backward()",
            )
        refuse_recorded(
            "LossScaling.step",
            "loss, grads = px.compile(px.value_and_grad(lambda model, scale, batch: "
            "loss_of(model, batch) * scale))(model, scaling.scale, batch); then "
            "scaling.step(optimizer, lr, model, grads)",
        )
        scale, good = self._state.get()
        before = optimizer.skipped
        more: Any = {} if only is None else {"only": only}  # others' optimizers do not take it
        module = optimizer.step(lr, module, grads, skip_nonfinite=True, divide_by=scale, **more)
        if optimizer.skipped > before:
            state = _ScaleState(scale * self._config.backoff, 0)
        elif good + 1 >= self._config.interval:
            state = _ScaleState(scale * self._config.growth, 0)
        else:
            state = _ScaleState(scale, good + 1)
        self._state.set(state)
        return module

    def into_record(self) -> dict[str, Record]:
        """Return the scale as a tree."""
        return dict(self._state.get()._asdict())

    def load_record(self, record: Record) -> LossScaling:
        """Take over the scale of a record, and return the scaling itself.

        Raises:
            RecordError: when the record is not one of a scaling.
        """
        known = record if isinstance(record, dict) else {}
        scale, good = known.get("scale"), known.get("good")
        if type(scale) is not float or type(good) is not int or good < 0 or not 0 < scale < inf:
            raise no_record(
                "not a record of a scaling", repr(record)[:60], "what scaling.into_record() gave"
            )
        self._state.set(_ScaleState(scale, good))
        self._asked = True
        return self

    def __repr__(self) -> str:
        return f"LossScaling({self._config!r}, scale={self.scale})"
