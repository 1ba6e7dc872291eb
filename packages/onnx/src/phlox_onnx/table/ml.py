"""Ops of the domain ai.onnx.ml that are formulas of tensors; text and maps are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from ._row import Row, row

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
        what, got, expected = "labels that are text", classlabels_strings, "classlabels_ints"
        hint = "y = sklearn.preprocessing.LabelEncoder().fit_transform(y) before model.fit(X, y)"
        raise OnnxError("LinearClassifier", what, got=got, expected=expected, hint=hint)
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


# How nodes of trees compare, by their number; that of sets of numbers is 6.
_TESTS: Final[tuple[Callable[[T, T], T], ...]] = (
    px.less_equal, px.less, px.greater_equal, px.greater, px.equal, px.not_equal
)  # fmt: skip


def trees(
    X: T,
    roots: T,
    children: T,
    weights: T,
    features: T,
    splits: T,
    modes: T | None = None,
    missing: T | None = None,
    members: T | None = None,
    base: T | None = None,
    *,
    aggregate: str,
    depth: int,
    post_transform: str = "NONE",
    tests: tuple[int, ...],
) -> T:
    """From its root each tree takes steps to a leaf, where the next node is the same again."""
    x = _as_floats(X)
    at = roots.broadcast_to((x.shape[0], *roots.shape))
    for _ in range(depth):
        value = x.take_along_axis(features.take(at, axis=0), axis=1)
        goes = None
        for test in tests:
            if test < len(_TESTS):
                found = _TESTS[test](value, splits.take(at, axis=0).astype(x.dtype))
            else:
                assert members is not None
                sets = members.take(at, axis=0).astype(x.dtype)
                found = (value.expand_dims(axis=-1) == sets).any(axis=-1)
            same = None if modes is None else modes.take(at, axis=0) == test
            goes = found if goes is None or same is None else same.where(found, goes)
        assert goes is not None
        if missing is not None:
            goes = goes | (value.isnan() & missing.take(at, axis=0))
        at = children.take(at * 2 + goes.astype(at.dtype), axis=0)
    votes = weights.take(at, axis=0)
    ways: dict[str, Callable[..., T]] = {
        "SUM": votes.sum,
        "AVERAGE": votes.mean,
        "MIN": votes.min,
        "MAX": votes.max,
    }
    out = ways[aggregate](axis=1)
    return _scores_after("TreeEnsemble", out if base is None else out + base, post_transform)


def tree_labels(scores: T, labels: T, *, positive: int, post_transform: str) -> tuple[T, T]:
    """Labels and scores; one score for two labels speaks of the second."""
    if scores.shape[-1] == labels.shape[0]:
        after = _scores_after("TreeEnsembleClassifier", scores, post_transform)
        return labels.take(scores.argmax(axis=-1).astype(labels.dtype)), after
    if post_transform not in ("NONE", "LOGISTIC"):
        what, expected = "one score for two classes", "NONE, LOGISTIC"
        raise OnnxError("TreeEnsembleClassifier", what, got=post_transform, expected=expected)
    chosen = (scores > (0.5 if positive else 0.0)).reshape((-1,)).astype(labels.dtype)
    if post_transform == "LOGISTIC":
        both = [(-scores).sigmoid(), scores.sigmoid()]
    else:
        both = [1.0 - scores if positive else -scores, scores]
    return labels.take(chosen), px.concat(both, axis=-1)


OWN_ROWS: Final[dict[str, Row]] = {"TreeLabels": row(1, tree_labels), "Trees": row(1, trees)}
ROWS: Final[dict[str, Row]] = {
    "ArrayFeatureExtractor": row(1, array_feature_extractor),
    "Binarizer": row(1, binarizer),
    "LinearClassifier": row(1, linear_classifier),
    "LinearRegressor": row(1, linear_regressor),
    "Normalizer": row(1, normalizer),
    "Scaler": row(1, scaler),
}
