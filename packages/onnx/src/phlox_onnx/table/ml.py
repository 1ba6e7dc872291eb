"""Ops of the domain ai.onnx.ml that are formulas of tensors; trees, text and maps are none."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from ._row import Row, since

T = Tensor[Any]
Floats = tuple[float, ...]


def _as_floats(x: T) -> T:
    return x if x.dtype.kind == "Float" else x.astype(px.float32)


def _row_like(values: Floats, x: T) -> T:
    return px.asarray(np.array(values), dtype=x.dtype, device=x.device)


def array_feature_extractor(X: T, Y: T) -> T:
    """Columns by their places."""
    taken = X.take(Y.reshape((-1,)), axis=-1)
    return taken if X.ndim > 1 else taken.reshape((1, -1))


def binarizer(X: T, *, threshold: float = 0.0) -> T:
    return (threshold < X).astype(X.dtype)


def scaler(X: T, *, offset: Floats = (), scale: Floats = ()) -> T:
    x = _as_floats(X)
    x = x - _row_like(offset, x) if offset else x
    return x * _row_like(scale, x) if scale else x


def normalizer(X: T, *, norm: str = "MAX") -> T:
    """Each row by its norm; where that is 0 it stays."""
    x = _as_floats(X)
    if norm not in ("MAX", "L1", "L2"):
        raise OnnxError("Normalizer", "no such norm", got=repr(norm), expected="MAX, L1, L2")
    if norm == "MAX":
        by = x.max(axis=-1, keepdims=True)
    elif norm == "L1":
        by = x.abs().sum(axis=-1, keepdims=True)
    else:
        by = x.square().sum(axis=-1, keepdims=True).sqrt()
    return x / (by == 0).where(1.0, by)


def _scores_after(op: str, scores: T, transform: str) -> T:
    if transform == "NONE":
        return scores
    if transform == "LOGISTIC":
        return scores.sigmoid()
    if transform == "SOFTMAX":
        return scores.softmax(axis=-1)
    expected = "NONE, LOGISTIC, SOFTMAX"
    raise OnnxError(op, "no such transform of scores", got=transform, expected=expected)


def _line_scores(X: T, coefficients: Floats, intercepts: Floats, rows: int) -> T:
    x = _as_floats(X)
    found = x @ _row_like(coefficients, x).reshape((rows, -1)).mT
    return found + _row_like(intercepts, x) if intercepts else found


def linear_regressor(
    X: T,
    *,
    coefficients: Floats,
    intercepts: Floats = (),
    post_transform: str = "NONE",
    targets: int = 1,
) -> T:
    return _scores_after(
        "LinearRegressor", _line_scores(X, coefficients, intercepts, targets), post_transform
    )


def linear_classifier(
    X: T,
    *,
    classlabels_ints: tuple[int, ...] = (),
    classlabels_strings: tuple[str, ...] = (),
    coefficients: Floats,
    intercepts: Floats = (),
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> tuple[T, T]:
    """Labels and scores; one row of coefficients for two labels speaks of the second."""
    if classlabels_strings or not classlabels_ints:
        what, expected = "labels that are text", "classlabels_ints"
        raise OnnxError("LinearClassifier", what, got=classlabels_strings, expected=expected)
    labels = px.asarray(np.array(classlabels_ints), dtype=X.device.default_int, device=X.device)
    one = len(coefficients) == X.shape[-1] and len(classlabels_ints) == 2
    scores = _line_scores(X, coefficients, intercepts, 1 if one else len(classlabels_ints))
    after = _scores_after("LinearClassifier", scores, post_transform)
    if not one:
        return labels.take(scores.argmax(axis=-1).astype(labels.dtype)), after
    if post_transform == "SOFTMAX":
        what, expected = "one row of scores", "NONE, LOGISTIC"
        raise OnnxError("LinearClassifier", what, got=post_transform, expected=expected)
    chosen = (scores > 0).reshape((-1,)).astype(labels.dtype)
    return labels.take(chosen), px.concat([1.0 - after, after], axis=-1)


ROWS: Final[dict[str, Row]] = {
    "ArrayFeatureExtractor": since(1, array_feature_extractor),
    "Binarizer": since(1, binarizer),
    "LinearClassifier": since(1, linear_classifier),
    "LinearRegressor": since(1, linear_regressor),
    "Normalizer": since(1, normalizer),
    "Scaler": since(1, scaler),
}
