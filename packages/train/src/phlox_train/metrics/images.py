"""How similar pictures are: (batch, channels, height, width) each, and the mean over pictures."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final

import numpy as np

from phlox_tensor import ShapeError, Tensor, asarray, avg_pool2d, conv2d, log10, relu

from .row import Mean, floats

_WINDOW: Final = 11  # of the paper, as the width and the two constants below
_SIGMA: Final = 1.5
_K1, _K2 = 0.01, 0.03


class Pictures(Mean, takes=("predictions", "targets"), better="higher"):
    """Base of means over pictures.

    Attributes:
        max_value: the largest value that a pixel may have; None for 1, or 255 for bytes.
    """

    max_value: float | None = None

    def _each(self, predictions: Tensor[Any], targets: Tensor[Any]) -> Tensor[Any]:
        self.same_shapes(predictions=predictions, targets=targets)
        if predictions.ndim != 4:
            hint = "predictions[None], for one picture" if predictions.ndim == 3 else None
            raise ShapeError(
                type(self).__name__,
                "not pictures",
                got=tuple(predictions.shape),
                expected="(batch, channels, height, width)",
                hint=hint,
            )
        byte = targets.dtype.kind == "Int" and targets.dtype.itemsize == 1
        most = self.max_value or (255.0 if byte else 1.0)
        return self._likeness(floats(predictions) / most, floats(targets) / most)

    @abstractmethod
    def _likeness(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        """Return how like each picture is to its target."""


class PSNR(Pictures):
    """The mean over pictures of ``10 log10(max² / mean square error)``, in decibels.

    Infinite for equal pictures.

    Example:
        >>> PSNR()(px.zeros((1, 1, 2, 2)), px.full((1, 1, 2, 2), 0.1))
        20.0...
    """

    def _likeness(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        return -10 * log10((p - t).square().mean(axis=(1, 2, 3)))


class SSIM(Pictures):
    """The mean likeness of light, contrast and structure of windows of 11 x 11 pixels.

    ``(2 m_p m_t + c1)(2 s_pt + c2) / ((m_p² + m_t² + c1)(s_p² + s_t² + c2))``, with means and
    variances weighted by a Gaussian of width 1.5; windows over the edge do not count. Wang et al.,
    "Image quality assessment: from error visibility to structural similarity", 2004,
    https://doi.org/10.1109/TIP.2003.819861

    Example:
        >>> x = px.arange(256.0).reshape((1, 1, 16, 16)) / 256
        >>> SSIM()(x, x)
        1.0...
    """

    def _likeness(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        light, structure = _windows(type(self).__name__, p, t)
        return (light * structure).mean(axis=(1, 2, 3))


class MultiScaleSSIM(Pictures):
    """The product over scales of contrast and structure as in ``SSIM``, and of light at the last.

    Each scale is half as large as the one before, by means of 2 x 2 pixels. What is negative counts
    as 0. Wang, Simoncelli and Bovik, "Multiscale structural similarity for image quality
    assessment", 2003, https://doi.org/10.1109/ACSSC.2003.1292216

    Attributes:
        betas: the exponent of each scale; five need pictures of 176 pixels.

    Example:
        >>> x = px.arange(1024.0).reshape((1, 1, 32, 32)) / 1024
        >>> MultiScaleSSIM(betas=(0.5, 0.5))(x, x)
        1.0...
    """

    betas: tuple[float, ...] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)

    def validate(self) -> None:
        """Refuse no scales."""
        self.require("betas", len(self.betas) > 0, "at least one")

    def _likeness(self, p: Tensor[Any], t: Tensor[Any]) -> Tensor[Any]:
        found: Any = 1.0
        for scale, beta in enumerate(self.betas):
            if scale:
                p, t = avg_pool2d(p, 2), avg_pool2d(t, 2)
            light, structure = _windows(type(self).__name__, p, t)
            last = scale == len(self.betas) - 1
            likeness = (light * structure if last else structure).mean(axis=(2, 3))
            found = found * relu(likeness) ** beta
        return found.mean(axis=1)


def _windows(op: str, p: Tensor[Any], t: Tensor[Any]) -> tuple[Tensor[Any], Tensor[Any]]:
    """Likeness of light, and of contrast and structure, of each window."""
    batch, channels, height, width = p.shape
    if min(height, width) < _WINDOW:
        got = f"{height} x {width}"
        raise ShapeError(op, "a picture, or a scale of it, is too small", got=got, expected=_WINDOW)
    weights = np.exp(-((np.arange(_WINDOW) - _WINDOW // 2) ** 2) / (2 * _SIGMA**2))
    line = asarray((weights / weights.sum()).tolist(), dtype=p.dtype, device=p.device)

    def mean(x: Tensor[Any]) -> Tensor[Any]:
        rows = conv2d(x, line.reshape((1, 1, _WINDOW, 1)))
        return conv2d(rows, line.reshape((1, 1, 1, _WINDOW)))

    p, t = (x.reshape((batch * channels, 1, height, width)) for x in (p, t))
    shift = t.mean(axis=(2, 3), keepdims=True)  # squares of small numbers lose less
    m_p, m_t, mean_p, mean_t = mean(p - shift), mean(t - shift), mean(p), mean(t)
    s_p = mean((p - shift).square()) - m_p.square()
    s_t = mean((t - shift).square()) - m_t.square()
    s_pt = mean((p - shift) * (t - shift)) - m_p * m_t
    light = (2 * mean_p * mean_t + _K1**2) / (mean_p.square() + mean_t.square() + _K1**2)
    structure = (2 * s_pt + _K2**2) / (s_p + s_t + _K2**2)
    shape = (batch, channels, *light.shape[2:])
    return light.reshape(shape), structure.reshape(shape)
