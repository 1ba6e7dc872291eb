"""Rows over classes and labels beside scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from phlox_nn import ConfigError
from phlox_tensor import KindError, PhloxError, ShapeError
from phlox_train.metrics import counts, curves, likelihood

Check = Callable[..., None]
Draw = Callable[[np.random.Generator, int], tuple[Any, ...]]
sk: Any = import_module("sklearn.metrics")
special: Any = import_module("scipy.special")
calibration_curve: Any = import_module("sklearn.calibration").calibration_curve
CLASSES = 4


def several(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Logits with some sense, of classes that are not all there."""
    classes = int(chance.integers(2, CLASSES + 1))
    targets = chance.integers(0, classes, count)
    return chance.normal(size=(count, CLASSES)) + 1.5 * np.eye(CLASSES)[targets], targets


def every(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Logits that tie now and then, and targets among which all classes are."""
    targets = chance.permutation(np.r_[:CLASSES, chance.integers(0, CLASSES, count)])
    return chance.normal(size=(len(targets), CLASSES)).round(1), targets


def two(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Logits that tie now and then, and yes and no, both of them there."""
    targets = chance.permutation(np.r_[0, 1, chance.integers(0, 2, count)])
    return (chance.normal(size=len(targets)) + targets).round(1) + 0.01, targets


def many(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Logits of three labels, each of them there and not."""
    targets = np.r_[np.eye(3), chance.integers(0, 2, (count, 3))].astype(np.int64)
    return (chance.normal(size=targets.shape) + targets).round(1) + 0.01, targets


def softmax(logits: Any) -> Any:
    return special.softmax(logits, axis=-1)


def named(score: Any, **settings: Any) -> Callable[..., Any]:
    """An oracle over the classes that logits name."""
    return lambda x, t: score(t, x.argmax(axis=1), **settings)


def yes(score: Any, **settings: Any) -> Callable[..., Any]:
    """An oracle over yes and no, or labels."""
    return lambda x, t: score(t, (x > 0).astype(int), **settings)


def top(score: Any, k: int, **settings: Any) -> Callable[..., Any]:
    """An oracle over the k largest logits as labels."""

    def oracle(x: Any, t: Any) -> Any:
        said = np.zeros(x.shape, int)
        np.put_along_axis(said, np.argsort(-x, axis=1, kind="stable")[:, :k], 1, axis=1)
        return score(np.eye(CLASSES, dtype=int)[t], said, **settings)

    return oracle


def specificity(t: Any, p: Any) -> Any:
    return sk.recall_score(1 - t, 1 - p, zero_division=0)


def pieces(n: int, power: float) -> Callable[..., Any]:
    """The calibration error of yes and no from what scikit-learn draws."""

    def oracle(x: Any, t: Any) -> Any:
        p = special.expit(x)
        came_true, said = calibration_curve(t, p, n_bins=n)
        sizes = np.bincount(np.searchsorted(np.linspace(0, 1, n + 1)[1:-1], p), minlength=n)
        sizes, gaps = sizes[sizes > 0], np.abs(came_true - said)
        if np.isinf(power):
            return gaps.max()
        return np.average(gaps**power, weights=sizes) ** (1 / power)

    return oracle


def precisions(x: Any, t: Any) -> Any:
    precision, recall, thresholds = sk.precision_recall_curve(t, x)
    return [precision, recall, [*thresholds, np.inf]]


FB = sk.fbeta_score
NONE: Any = {"zero_division": 0}
ALL: Any = {"zero_division": 0, "labels": range(CLASSES), "average": None}
ROWS: list[tuple[Any, Draw, Callable[..., Any]]] = [
    (counts.Accuracy(), several, named(sk.accuracy_score)),
    (counts.Accuracy(4), several, named(sk.accuracy_score)),
    (
        counts.Accuracy(top_k=2),
        several,
        lambda x, t: sk.top_k_accuracy_score(t, x, k=2, labels=range(CLASSES)),
    ),
    (counts.Accuracy(task="binary"), two, yes(sk.accuracy_score)),
    (counts.Accuracy(task="multilabel"), many, lambda x, t: np.mean((x > 0) == t)),
    (counts.BalancedAccuracy(), every, named(sk.balanced_accuracy_score)),
    (
        counts.BalancedAccuracy(adjusted=True),
        every,
        named(sk.balanced_accuracy_score, adjusted=True),
    ),
    (counts.BalancedAccuracy(task="binary"), two, yes(sk.balanced_accuracy_score)),
    (counts.CohenKappa(), every, named(sk.cohen_kappa_score)),
    (counts.CohenKappa(weights="linear"), every, named(sk.cohen_kappa_score, weights="linear")),
    (
        counts.CohenKappa(weights="quadratic"),
        every,
        named(sk.cohen_kappa_score, weights="quadratic"),
    ),
    (counts.CohenKappa(task="binary"), two, yes(sk.cohen_kappa_score)),
    (counts.ConfusionMatrix(), several, named(sk.confusion_matrix, labels=range(CLASSES))),
    (
        counts.ConfusionMatrix(normalize="true"),
        every,
        named(sk.confusion_matrix, labels=range(CLASSES), normalize="true"),
    ),
    (
        counts.ConfusionMatrix(task="binary", normalize="all"),
        two,
        yes(sk.confusion_matrix, normalize="all"),
    ),
    (counts.ConfusionMatrix(task="multilabel"), many, yes(sk.multilabel_confusion_matrix)),
    (counts.Dice(task="binary"), two, yes(sk.f1_score)),
    (counts.Dice(average="micro"), several, named(sk.f1_score, average="micro")),
    (counts.ExactMatch(task="multilabel"), many, yes(sk.accuracy_score)),
    (counts.FBeta(), several, named(sk.f1_score, average="macro")),
    (counts.FBeta(beta=0.5), several, named(FB, beta=0.5, average="macro", **NONE)),
    (
        counts.FBeta(beta=2.0, average="weighted"),
        several,
        named(FB, beta=2, average="weighted", **NONE),
    ),
    (counts.FBeta(average=None), several, named(FB, beta=1, **ALL)),
    (counts.FBeta(top_k=2), every, top(FB, 2, beta=1, average="macro", **NONE)),
    (
        counts.FBeta(task="multilabel", average="micro"),
        many,
        yes(FB, beta=1, average="micro", **NONE),
    ),
    (counts.Hamming(), several, named(sk.hamming_loss)),
    (counts.Hamming(task="multilabel"), many, yes(sk.hamming_loss)),
    (counts.Jaccard(), several, named(sk.jaccard_score, average="macro", **NONE)),
    (counts.Jaccard(task="binary"), two, yes(sk.jaccard_score, **NONE)),
    (counts.MatthewsCorrelation(), several, named(sk.matthews_corrcoef)),
    (counts.MatthewsCorrelation(task="binary"), two, yes(sk.matthews_corrcoef)),
    (counts.Precision(), several, named(sk.precision_score, average="macro", **NONE)),
    (counts.Precision(average=None), several, named(sk.precision_score, **ALL)),
    (counts.Precision(top_k=3), every, top(sk.precision_score, 3, average="macro", **NONE)),
    (
        counts.Precision(task="multilabel", average="weighted"),
        many,
        yes(sk.precision_score, average="weighted", **NONE),
    ),
    (counts.Recall(), several, named(sk.recall_score, average="macro", **NONE)),
    (counts.Recall(average="micro"), several, named(sk.recall_score, average="micro")),
    (counts.Recall(task="binary"), two, yes(sk.recall_score)),
    (counts.Specificity(task="binary"), two, yes(specificity)),
    (
        counts.Specificity(average=None),
        every,
        lambda x, t: [specificity(t == c, x.argmax(axis=1) == c) for c in range(CLASSES)],
    ),
    (curves.AUROC(task="binary"), two, lambda x, t: sk.roc_auc_score(t, x)),
    (curves.AUROC(), every, lambda x, t: sk.roc_auc_score(t, softmax(x), multi_class="ovr")),
    (
        curves.AUROC(average="weighted"),
        every,
        lambda x, t: sk.roc_auc_score(t, softmax(x), multi_class="ovr", average="weighted"),
    ),
    (
        curves.AUROC(task="multilabel", average=None),
        many,
        lambda x, t: sk.roc_auc_score(t, x, average=None),
    ),
    (
        curves.AUROC(task="multilabel", average="micro"),
        many,
        lambda x, t: sk.roc_auc_score(t, x, average="micro"),
    ),
    (
        curves.AUROC(task="binary", thresholds=11),
        two,
        lambda x, t: sk.roc_auc_score(t, np.floor(special.expit(x) * 10)),
    ),
    (
        curves.AveragePrecision(task="binary"),
        two,
        lambda x, t: sk.average_precision_score(t, x),
    ),
    (
        curves.AveragePrecision(),
        every,
        lambda x, t: sk.average_precision_score(t, softmax(x)),
    ),
    (
        curves.AveragePrecision(task="multilabel", average="micro", thresholds=21),
        many,
        lambda x, t: sk.average_precision_score(
            t, np.floor(special.expit(x) * 20), average="micro"
        ),
    ),
    (
        curves.PrecisionRecallCurve(task="binary"),
        two,
        precisions,
    ),
    (
        curves.ROC(task="binary"),
        two,
        lambda x, t: sk.roc_curve(t, x, drop_intermediate=False),
    ),
    (
        likelihood.Brier(),
        several,
        lambda x, t: sk.brier_score_loss(t, softmax(x), labels=range(CLASSES)),
    ),
    (likelihood.Brier(task="binary"), two, lambda x, t: sk.brier_score_loss(t, special.expit(x))),
    (likelihood.CalibrationError(task="binary", bins=5), two, pieces(5, 1)),
    (likelihood.CalibrationError(task="binary", bins=5, norm="l2"), two, pieces(5, 2)),
    (likelihood.CalibrationError(task="binary", bins=5, norm="max"), two, pieces(5, np.inf)),
    (likelihood.Hinge(), every, lambda x, t: sk.hinge_loss(t, x, labels=range(CLASSES))),
    (likelihood.Hinge(task="binary"), two, lambda x, t: sk.hinge_loss(t, x)),
    (
        likelihood.LogLoss(),
        several,
        lambda x, t: sk.log_loss(t, softmax(x), labels=range(CLASSES)),
    ),
    (likelihood.LogLoss(task="binary"), two, lambda x, t: sk.log_loss(t, special.expit(x))),
    (
        likelihood.Perplexity(),
        several,
        lambda x, t: np.exp(sk.log_loss(t, softmax(x), labels=range(CLASSES))),
    ),
]


@pytest.mark.parametrize(
    ("metric", "draw", "oracle"), ROWS, ids=[f"{i}-{row[0].name}" for i, row in enumerate(ROWS)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_rows_are_those_of_scikit_learn(
    metric: Any, draw: Draw, oracle: Callable[..., Any], check: Check
) -> None:
    check(metric, draw, oracle)


def test_targets_to_ignore_do_not_count() -> None:
    logits, targets = every(np.random.default_rng(0), 20)
    padded = np.r_[logits, logits[:5]], np.r_[targets, np.full(5, -100)]
    for kind in (
        counts.Accuracy,
        counts.ConfusionMatrix,
        counts.FBeta,
        counts.MatthewsCorrelation,
        curves.AUROC,
        likelihood.CalibrationError,
        likelihood.LogLoss,
    ):
        with_padding: Any = kind(ignore_index=-100)
        np.testing.assert_allclose(with_padding(*padded), kind()(logits, targets), rtol=1e-12)


def test_labels_to_ignore_do_not_count() -> None:
    scores, targets = np.asarray([[1.0, -1.0], [1.0, 1.0]]), np.asarray([[1, -1], [0, 1]])
    settings: Any = {"task": "multilabel", "ignore_index": -1}
    assert counts.Accuracy(**settings)(scores, targets) == 2 / 3
    assert counts.ExactMatch(**settings)(scores, targets) == 0.5
    assert counts.Precision(**settings, average=None)(scores, targets).tolist() == [0.5, 1.0]
    assert np.isnan(curves.AUROC(**settings, average=None)(scores, targets)).tolist() == [
        False,
        True,
    ]


def test_classes_may_be_any_axes_but_the_last() -> None:
    logits = np.random.default_rng(0).normal(size=(2, 3, 5, CLASSES))
    targets = np.random.default_rng(1).integers(0, CLASSES, (2, 3, 5))
    flat = logits.reshape(-1, CLASSES), targets.reshape(-1)
    for metric in (counts.Jaccard(), curves.AUROC(), likelihood.Brier(), counts.CohenKappa()):
        assert metric(logits, targets) == metric(*flat)


def test_decisions_count_as_they_are() -> None:
    logits, targets = every(np.random.default_rng(0), 20)
    for kind in (counts.FBeta, counts.ConfusionMatrix, counts.Accuracy):
        row: Any = kind(CLASSES)
        np.testing.assert_array_equal(row(logits.argmax(-1), targets), row(logits, targets))


def test_what_is_undefined_is_nan() -> None:
    one = np.zeros((3, 2)), np.zeros(3, np.int64)
    assert np.isnan(curves.AUROC()(*one))
    assert np.isnan(curves.AUROC(task="binary", thresholds=5)(np.zeros(3), np.zeros(3, np.int64)))
    assert np.isnan(counts.CohenKappa()(*one))
    none = np.zeros((0, 2)), np.zeros(0, np.int64)
    for metric in (
        counts.Accuracy(),
        counts.FBeta(),
        counts.BalancedAccuracy(),
        counts.MatthewsCorrelation(),
        curves.AUROC(),
        curves.AveragePrecision(thresholds=3),
        likelihood.LogLoss(),
        likelihood.CalibrationError(),
    ):
        assert np.isnan(metric(*none)), metric.name


@pytest.mark.parametrize("task", ["binary", "multilabel"])
@pytest.mark.parametrize(
    "kind",
    [
        counts.Accuracy,
        counts.FBeta,
        curves.AUROC,
        likelihood.Brier,
        likelihood.CalibrationError,
        likelihood.Hinge,
        likelihood.LogLoss,
    ],
)
def test_yes_and_no_are_one_and_zero(kind: Any, task: str) -> None:
    scores, targets = (two if task == "binary" else many)(np.random.default_rng(0), 9)
    assert kind(task=task)(scores, targets == 1) == kind(task=task)(scores, targets)
    assert kind(task=task)(scores, targets.astype(np.uint8)) == kind(task=task)(scores, targets)


def test_more_examples_than_integers_multiply_are_fine() -> None:
    row, given = curves.AUROC(task="binary", thresholds=20), two(np.random.default_rng(0), 90)
    state = {name: counts << 40 for name, counts in row.state(*given).items()}
    assert abs(row.value(state) - row(*given)) < 1e-12


def test_large_logits_do_not_tie() -> None:
    logits = np.asarray([40.0, 50.0, 60.0], np.float32)
    assert curves.AUROC(task="binary")(logits, np.asarray([0, 1, 1])) == 1


X, T = np.asarray([[1.0, 0.0], [0.0, 1.0]]), np.asarray([0, 1])
WRONG: list[tuple[type[PhloxError], str, Callable[[], Any]]] = [
    (
        ShapeError,
        r"scores do not fit the targets: got scores \(2, 2\)",
        lambda: counts.Accuracy()(X, X.astype(int)),
    ),
    (
        ShapeError,
        r"hint: logits.moveaxis\(1, -1\)",
        lambda: counts.FBeta()(np.zeros((2, 3, 4)), np.zeros((2, 4), int)),
    ),
    (ShapeError, r"hint: train.FBeta\(2\)", lambda: counts.FBeta(3)(X, T)),
    (KindError, r"hint: targets.astype\(px.int64\)", lambda: curves.AUROC()(X, T * 1.0)),
    (
        PhloxError,
        r"\[FBeta\] a target is out of range: got 2, expected 0 to 1",
        lambda: counts.FBeta()(X, T + 1),
    ),
    (
        PhloxError,
        r"\[LogLoss\] a target is out of range: got -1",
        lambda: likelihood.LogLoss()(X, T - 1),
    ),
    (
        PhloxError,
        r"\[AUROC\] a target is out of range",
        lambda: curves.AUROC(task="binary")(X[0], T + 1),
    ),
    (
        PhloxError,
        r"\[Accuracy\] scores are not numbers: got nan",
        lambda: counts.Accuracy()(X * np.nan, T),
    ),
    (
        PhloxError,
        r"\[AUROC\] scores are not numbers: got nan",
        lambda: curves.AUROC()(X * np.nan, T),
    ),
    (
        PhloxError,
        r"\[AUROC\] a score is no probability: got 2.0",
        lambda: curves.AUROC(scores="probabilities")(X * 2, T),
    ),
    (
        PhloxError,
        r"\[Jaccard\] a prediction is out of range: got 4",
        lambda: counts.Jaccard(3)(T + 4, T),
    ),
    (PhloxError, r"hint: train.Recall\(10\)", lambda: counts.Recall()(T, T)),
    (
        PhloxError,
        r"\[LogLoss\] a score is no probability: got 2.0",
        lambda: likelihood.LogLoss(scores="probabilities")(X * 2, T),
    ),
    (
        PhloxError,
        r'hint: train.FBeta\(scores="logits"\)',
        lambda: counts.FBeta(scores="probabilities")(-X, T),
    ),
    (
        PhloxError,
        r"\[CalibrationError\] scores are not numbers: got nan",
        lambda: likelihood.CalibrationError()(X * np.nan, T),
    ),
    (ConfigError, r"FBeta.top_k makes no sense: got 0", lambda: counts.FBeta(top_k=0)),
    (
        ConfigError,
        r"CohenKappa.top_k makes no sense: got 2, expected 1",
        lambda: counts.CohenKappa(top_k=2),
    ),
    (ConfigError, r"FBeta.threshold makes no sense", lambda: counts.FBeta(threshold=1.0)),
    (
        ConfigError,
        r"Accuracy.classes makes no sense: got 1, expected at least 2",
        lambda: counts.Accuracy(1),
    ),
    (ConfigError, r"AUROC.thresholds makes no sense: got 1", lambda: curves.AUROC(thresholds=1)),
    (ConfigError, r"CohenKappa.task makes no sense", lambda: counts.CohenKappa(task="multilabel")),
]


@pytest.mark.parametrize(("kind", "text", "call"), WRONG, ids=[row[1] for row in WRONG])
def test_wrong_input_says_what_to_type(kind: Any, text: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind, match=text):
        call()
