"""A step whose result was thrown away, which the next step of the very same model finds out."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Container
from typing import Any, Final, final
from weakref import ref

from phlox_nn import Param
from phlox_tensor import GradientError
from phlox_tensor.arguments import is_thrown_away
from phlox_tensor.capture import line_of_user

KEEP: Final = "model = optimizer.step(0.1, model, grads)"
_AGAIN: Final = (
    "[step] the very same model is stepped again and again, and what the first steps gave is gone: "
    "it learns nothing\nhint: model, loss = step(model, batch)"
)
_GONE: Final = "[step] the new module is thrown away, and the old one is as it was"
_LESS: Final = "; step(..., strict=False) steps one model several times"


def _warn(text: str) -> None:
    """Warn of a line of the user."""
    file, _, line = line_of_user().rpartition(":")
    warnings.warn_explicit(text, UserWarning, file, int(line))


def _none() -> None:
    """What stands for a result that nobody ever got."""


def dropped_inside() -> GradientError:
    """The error for a step in a compiled function that no result needs."""
    return GradientError(
        "step",
        "what a step gives is thrown away inside of a compiled function",
        got="no result or Cell that needs it",
        expected="the model that the step gave among the results",
        hint="return optimizer.step(0.1, model, grads)" + _LESS,
    )


@final
class LastStep:
    """One parameter before and after the last step, held weakly: nothing of models is kept."""

    __slots__ = ("_before", "_loaded", "_results", "_steps", "_told")

    def __init__(self, *, loaded: bool = False) -> None:
        """Start without a step, with states of a record or without any."""
        self._loaded = loaded
        self._before: ref[Param] | None = None
        self._results: tuple[Callable[[], Param | None], ...] = ()  # of this one, the last three
        self._steps = 0
        self._told = False

    def note(
        self, before: Param, after: Param | None, steps: int = 0, *, keeping: str = ""
    ) -> None:
        """Remember a step, as one of its parameters saw it.

        Args:
            before: the parameter.
            after: what it became; None where nobody ever got that.
            steps: how many there have been, of which a compiled function does not note all.
            keeping: code for the warning where the line of a user throws the result away.
        """
        again = self._before is not None and self._before() is before
        again = again and steps - self._steps in (0, 1)
        self._results = (
            *(self._results[-2:] if again else ()),
            _none if after is None else ref(after),
        )
        self._told &= again
        self._loaded = False
        self._before, self._steps = ref(before), steps
        if keeping and is_thrown_away(sys._getframe(1)):
            _warn(f"{_GONE}\nhint: {keeping}")

    def refuse_dropped(
        self, param: Param, code: str = KEEP, more: str = _LESS, *, steps: int = 0
    ) -> None:
        """Refuse to step what was stepped last, if nobody has what that step gave.

        A model that was stepped on trial is stepped again while the trial is still there. Where two
        trials are gone it may be no trial: ``_, loss = step(model, batch)``, which is a warning.
        """
        if self._before is None or self._before() is not param or steps != self._steps:
            return
        gone = [result() is None for result in self._results]
        if not gone[-1]:
            if sum(gone) > 1 and not self._told:
                self._told = True
                _warn(f"{_AGAIN}{more}")
            return
        raise GradientError(
            "step",
            "the last step was of this very model, and what it gave was thrown away",
            got="the model of the last step",
            expected="the model that the last step gave",
            hint=code + more,
        )

    def compiled(self, before: Param, after: Param | None, steps: int, *, strict: bool) -> None:
        """Remember a step that a compiled function made, and refuse it as any other."""
        if strict:
            code = "model, loss = step(model, batch), which returns optimizer.step(...) and loss"
            self.refuse_dropped(before, code, steps=steps - 1)
        self.note(before, after, steps)

    def refuse_unloaded(self, params: list[Param], among: Container[str]) -> None:
        """Refuse to go on from a record with parameters that still are what they began with.

        Of those whose ids are ``among`` others, which are all or have states.
        """
        if not self._loaded:
            return
        known = [param for param in params if param.id in among]
        if known and all(param.has_first_values for param in known):
            raise GradientError(
                "step",
                "the optimizer was loaded, and the model was not",
                got="states of a record, and first values of parameters",
                expected="the model of that record",
                hint='model = checkpoints.restore(model=model, optimizer=optimizer)["model"], or '
                "model = model.load_record(record): a module that is loaded is a new one",
            )

    def __reduce__(self) -> Any:
        """Start anew in a copy, whose models are others."""
        return LastStep, ()
