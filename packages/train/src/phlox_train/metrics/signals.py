"""Means of outputs of a step, and ratios of sound to its error."""

from __future__ import annotations

from typing import Any

from phlox_tensor import Tensor, log10

from .row import Each, Mean, floats


class Average(Mean):
    """The mean of an output of the step over all its elements: of rewards, lengths, costs.

    Attributes:
        output: which one; the metric is called so too.
        weights: the output that says how much each element counts, of the same shape.

    Example:
        >>> Average("reward")(px.asarray([1.0, 2.0]))
        1.5
    """

    output: str
    weights: str | None = None

    def validate(self) -> None:
        """Take what the settings name."""
        names = (self.output,) if self.weights is None else (self.output, self.weights)
        self.require("takes", self.takes in ((), names), "none: the output says it")
        object.__setattr__(self, "takes", names)
        if self.name == type(self).__name__.lower():
            object.__setattr__(self, "name", self.output)

    def _each(self, values: Tensor[Any], *weights: Tensor[Any]) -> Each:
        if not weights:
            return values
        self.same_shapes(values=values, weights=weights[0])
        return values, weights[0]


class Sounds(Mean, takes=("predictions", "targets"), better="higher"):
    """Base of means over sounds (…, samples), in decibels."""

    def _each(self, predictions: Tensor[Any], targets: Tensor[Any]) -> Tensor[Any]:
        self.same_shapes(predictions=predictions, targets=targets)
        return self._decibels(floats(predictions), floats(targets))

    def _decibels(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        """Return the ratio of what is right to what is not."""
        power = [x.square().sum(axis=-1) for x in (t, t - p)]
        return 10 * log10(power[0] / power[1])


class SignalNoiseRatio(Sounds):
    """The mean of ``10 log10(|target|² / |target - prediction|²)``.

    Example:
        >>> round(SignalNoiseRatio()(px.asarray([[1.5, 0.0]]), px.asarray([[1.0, 0.0]])), 2)
        6.02
    """


class ScaleInvariantSDR(Sounds):
    """The mean of ``10 log10(|a target|² / |a target - prediction|²)`` with the best factor a.

    ``a = prediction · target / |target|²``. Le Roux et al., "SDR - half-baked or well done?", 2018,
    https://arxiv.org/abs/1811.02508

    Example:
        >>> ScaleInvariantSDR()(px.asarray([[3.0, 1.0]]), px.asarray([[1.0, 0.0]]))
        9.542425...
    """

    def _decibels(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        scale = (p * t).sum(axis=-1, keepdims=True) / t.square().sum(axis=-1, keepdims=True)
        return super()._decibels(p, scale * t)
