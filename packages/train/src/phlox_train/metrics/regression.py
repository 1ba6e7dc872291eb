"""Errors of numbers: means over all elements of predictions and targets of one shape."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import Tensor, abs, log, log1p, maximum, ones_like, softplus, where

from .row import Each, Mean, floats


class Error(Mean, takes=("predictions", "targets"), better="lower"):
    """Base of means over elements."""

    def _each(self, predictions: Tensor[Any], targets: Tensor[Any]) -> Each:
        self.same_shapes(predictions=predictions, targets=targets)
        return self._error(floats(predictions), floats(targets))

    @abstractmethod
    def _error(self, p: Tensor[Any], t: Tensor[Any]) -> Each:
        """Return the error of each element, or errors and weights."""


class MeanSquaredError(Error):
    """The mean of ``(prediction - target)²``.

    Example:
        >>> MeanSquaredError()(px.asarray([1.0, 2.0]), px.asarray([1.0, 4.0]))
        2.0
    """

    def _error(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        return (p - t).square()


class RootMeanSquaredError(Error):
    """The root of the mean of ``(prediction - target)²``, over all batches.

    Example:
        >>> RootMeanSquaredError()(px.asarray([1.0, 2.0]), px.asarray([4.0, 6.0]))
        3.5355339059327378
    """

    def _error(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        return (p - t).square()

    def _final(self, mean: NDArray[Any]) -> Any:
        return np.sqrt(mean)


class MeanAbsoluteError(Error):
    """The mean of ``|prediction - target|``.

    Example:
        >>> MeanAbsoluteError()(px.asarray([1.0, 2.0]), px.asarray([1.0, 4.0]))
        1.0
    """

    def _error(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        return abs(p - t)


class MeanAbsolutePercentageError(Error):
    """The mean of ``|prediction - target| / |target|``, as a share: 0.1 is ten per cent.

    Targets of 0 give infinity.

    Example:
        >>> MeanAbsolutePercentageError()(px.asarray([1.5, 2.0]), px.asarray([1.0, 4.0]))
        0.5
    """

    def _error(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        return where(p == t, 0.0, abs((p - t) / t))


class SymmetricMeanAbsolutePercentageError(Error):
    """The mean of ``2 |prediction - target| / (|prediction| + |target|)``: from 0 to 2.

    Two zeros are no error.

    Example:
        >>> SymmetricMeanAbsolutePercentageError()(px.asarray([1.0, 0.0]), px.asarray([3.0, 0.0]))
        0.5
    """

    def _error(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        return where(p == t, 0.0, 2 * abs(p - t) / (abs(p) + abs(t)))


class WeightedMeanAbsolutePercentageError(Error):
    """``Σ |prediction - target| / Σ |target|``: small targets weigh little.

    Example:
        >>> WeightedMeanAbsolutePercentageError()(px.asarray([1.0, 2.0]), px.asarray([1.0, 4.0]))
        0.4
    """

    def _error(self, p: Tensor[Any], t: Tensor[Any]) -> tuple[Tensor[Any], Tensor[Any]]:
        return where(t == 0, abs(p), abs(p - t) / abs(t)), abs(t)


class MeanSquaredLogError(Error):
    """The mean of ``(ln(1 + prediction) - ln(1 + target))²``; NaN for numbers below -1.

    Example:
        >>> MeanSquaredLogError()(px.asarray([0.0]), px.asarray([1.0]))
        0.480453...
    """

    def _error(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        return (log1p(p) - log1p(t)).square()


class LogCosh(Error):
    """The mean of ``ln cosh(prediction - target)``: half the square near 0, linear far away.

    Example:
        >>> LogCosh()(px.asarray([1.0]), px.asarray([0.0]))
        0.433780...
    """

    def _error(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        far = abs(p - t)
        return far + softplus(-2 * far) - float(np.log(2.0))  # cosh itself overflows


class Pinball(Error):
    """The mean of ``max(q (target - prediction), (q - 1)(target - prediction))``.

    Args:
        quantile: q, of which predictions are an estimate.

    Koenker and Bassett, "Regression quantiles", 1978, https://doi.org/10.2307/1913643

    Example:
        >>> Pinball(0.75)(px.asarray([1.0, 2.0]), px.asarray([2.0, 0.0]))
        0.625
    """

    quantile: float = 0.5

    def validate(self) -> None:
        """Refuse what is no share."""
        self.require("quantile", 0 <= self.quantile <= 1, "0 <= quantile <= 1")

    def _error(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        return maximum(self.quantile * (t - p), (self.quantile - 1) * (t - p))


class TweedieDeviance(Error):
    """The mean deviance of a Tweedie distribution, whose variance is ``prediction^power``.

    0 is the mean of squares, 1 the deviance of Poisson, ``2 (t ln(t/p) - t + p)``, 2 that of Gamma,
    ``2 (ln(p/t) + t/p - 1)``. NaN outside of where it is defined: predictions above 0, targets from
    0 on for powers from 1 to below 2, above 0 from 2 on.

    Args:
        power: 0, or from 1 on.

    Jørgensen, "Exponential dispersion models", 1987, https://doi.org/10.1111/j.2517-6161.1987.tb01685.x

    Example:
        >>> TweedieDeviance(1.0)(px.asarray([1.0, 2.0]), px.asarray([0.0, 2.0]))
        1.0
    """

    power: float = 0.0

    def validate(self) -> None:
        """Refuse powers of no distribution."""
        self.require("power", self.power == 0 or self.power >= 1, "0, or from 1 on")

    def _error(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        k = self.power
        if k == 0:
            return (p - t).square()
        if k == 1:
            found = where(t == 0, 0.0, t * log(t / p)) - t + p
        elif k == 2:
            found = log(p / t) + t / p - 1
        else:
            parts = t * p ** (1 - k) / (1 - k) - p ** (2 - k) / (2 - k)
            found = t ** (2 - k) / ((1 - k) * (2 - k)) - parts
        allowed = (p > 0) & ((t >= 0) if k < 2 else (t > 0))
        return where(allowed, 2 * found, np.nan)


class CosineSimilarity(Mean, takes=("predictions", "targets"), better="higher"):
    """The mean of ``a · b / (|a| |b|)`` over the last axis; 0 where one is all zeros.

    Example:
        >>> CosineSimilarity()(px.asarray([[1.0, 0.0]]), px.asarray([[1.0, 1.0]]))
        0.707106...
    """

    def _each(self, predictions: Tensor[Any], targets: Tensor[Any]) -> Tensor[Any]:
        self.same_shapes(predictions=predictions, targets=targets)
        p, t = floats(predictions), floats(targets)
        norms = (p.square().sum(axis=-1) * t.square().sum(axis=-1)).sqrt()
        return where(norms == 0, 0.0, (p * t).sum(axis=-1) / where(norms == 0, 1.0, norms))


class KLDivergence(Mean, takes=("predictions", "targets"), better="lower"):
    """The mean of ``Σ target · ln(target / prediction)``, of distributions on the last axis.

    Both are probabilities, NaN below 0. Where a target is 0 it adds nothing.

    Kullback and Leibler, "On information and sufficiency", 1951,
    https://doi.org/10.1214/aoms/1177729694

    Example:
        >>> KLDivergence()(px.asarray([[0.5, 0.5]]), px.asarray([[1.0, 0.0]]))
        0.693147...
    """

    def _each(self, predictions: Tensor[Any], targets: Tensor[Any]) -> Tensor[Any]:
        self.same_shapes(predictions=predictions, targets=targets)
        p, t = floats(predictions), floats(targets)
        parts = where(t == 0, 0.0, t * log(where(t == 0, ones_like(t), t) / p))
        return where((p < 0) | (t < 0), np.nan, parts).sum(axis=-1)
