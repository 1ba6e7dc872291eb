"""Rows over pictures, features and boxes beside scikit-image, SciPy and pycocotools."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from phlox_tensor import PhloxError
from phlox_train.metrics import detection, features, images

Check = Callable[..., None]
sk: Any = import_module("skimage.metrics")
ndimage: Any = import_module("scipy.ndimage")
linalg: Any = import_module("scipy.linalg")
coco: Any = import_module("pycocotools.coco")
cocoeval: Any = import_module("pycocotools.cocoeval")


def pictures(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Smooth pictures, and noisy ones of them."""
    shape = (count % 4 + 1, 2, int(chance.integers(11, 17)), 15)
    targets = ndimage.gaussian_filter(chance.random(shape), (0, 0, 1, 1))
    return np.clip(targets + chance.normal(0, 0.1, shape), 0, 1), targets


def large(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    shape = (count % 2 + 1, 2, 46, 48)
    targets = ndimage.gaussian_filter(chance.random(shape), (0, 0, 2, 2))
    return targets + chance.normal(0, 0.02, shape), targets


def each(score: Any, **settings: Any) -> Callable[..., Any]:
    """The mean of a score of one picture."""
    return lambda p, t: np.mean([score(b, a, **settings) for a, b in zip(p, t, strict=True)])


SSIM: Any = {
    "data_range": 1.0,
    "channel_axis": 0,
    "gaussian_weights": True,
    "sigma": 1.5,
    "use_sample_covariance": False,
}


def scales(betas: tuple[float, ...]) -> Callable[..., Any]:
    """Likeness at several scales, by Gaussian filters of SciPy."""

    def of_one(p: Any, t: Any) -> Any:
        found: Any = 1.0
        for scale, beta in enumerate(betas):
            if scale:
                p, t = (x.reshape(len(x) // 2, 2, -1, 2).mean(axis=(1, 3)) for x in (p, t))

            def mean(x: Any) -> Any:
                return ndimage.gaussian_filter(x, 1.5, radius=5)[5:-5, 5:-5]

            m, n, c1, c2 = mean(p), mean(t), 1e-4, 9e-4
            likeness = (2 * (mean(p * t) - m * n) + c2) / (
                mean(p * p) - m * m + mean(t * t) - n * n + c2
            )
            if scale == len(betas) - 1:
                likeness = likeness * (2 * m * n + c1) / (m * m + n * n + c1)
            found = found * max(likeness.mean(), 0) ** beta
        return found

    return lambda p, t: np.mean(
        [
            of_one(*xy)
            for xy in zip(p.reshape(-1, *p.shape[2:]), t.reshape(-1, *t.shape[2:]), strict=True)
        ]
    )


def sets(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    shift, wide = chance.normal(size=3), chance.normal(size=(3, 3))
    return chance.normal(size=(count, 3)) @ wide + shift, chance.normal(size=(count, 3)) * 2


def frechet(x: Any, y: Any) -> Any:
    c1, c2 = np.cov(x.T), np.cov(y.T)
    mixed = np.trace(linalg.sqrtm(c1 @ c2)).real
    return np.sum((x.mean(0) - y.mean(0)) ** 2) + np.trace(c1) + np.trace(c2) - 2 * mixed


def boxes(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Pictures with up to six boxes of three classes, found more or less; two may be no boxes."""
    count = count % 5 + 2

    def drawn(many: int) -> Any:
        low = chance.integers(0, 200, (count, many, 2))
        return np.concatenate([low, low + chance.integers(4, 120, (count, many, 2))], axis=2) * 1.0

    right, labels = drawn(6), chance.integers(-1, 3, (count, 6))
    moved = right + chance.integers(-8, 9, right.shape) * chance.integers(0, 2, (count, 6, 1))
    moved[..., 2:] = np.maximum(moved[..., 2:], moved[..., :2] + 1)
    found = np.concatenate([moved, drawn(3)], axis=1)
    said = np.concatenate([labels, chance.integers(-1, 3, (count, 3))], axis=1)
    said = np.where(chance.random(said.shape) < 0.1, chance.integers(-1, 3, said.shape), said)
    return (
        found,
        chance.random(said.shape),
        said,
        right,
        labels,
        chance.integers(0, 6, (count, 6)) == 0,
    )


def challenge(place: int, **changes: Any) -> Callable[..., Any]:
    """A number of pycocotools."""

    def oracle(
        found: Any, scores: Any, said: Any, right: Any, labels: Any, crowd: Any = None
    ) -> Any:
        crowd = np.zeros(labels.shape, bool) if crowd is None else crowd

        def entry(i: int, box: Any, label: Any, **more: Any) -> dict[str, Any]:
            x, y, X, Y = box.tolist()
            size = {"bbox": [x, y, X - x, Y - y], "area": (X - x) * (Y - y)}
            return {"image_id": i + 1, "category_id": int(label) + 1, **size, **more}

        targets = [
            entry(i, right[i, j], labels[i, j], iscrowd=int(crowd[i, j]))
            for i, j in np.argwhere(labels >= 0)
        ]
        results = [
            entry(i, found[i, j], said[i, j], score=float(scores[i, j]))
            for i, j in np.argwhere(said >= 0)
        ]
        with contextlib.redirect_stdout(io.StringIO()):
            api = coco.COCO()
            api.dataset = {
                "info": {},
                "images": [{"id": i + 1} for i in range(len(found))],
                "categories": [{"id": c + 1} for c in range(3)],
                "annotations": [{**one, "id": n + 1} for n, one in enumerate(targets)],
            }
            api.createIndex()
            run = cocoeval.COCOeval(api, api.loadRes(results), "bbox")
            for name, value in changes.items():
                setattr(run.params, name, value)
            run.evaluate()
            run.accumulate()
            run.summarize()
        return run.stats[place] if run.stats[place] > -1 else np.nan

    return oracle


SIX = (*detection.MeanAveragePrecision().takes, "crowd")
ROWS: list[tuple[Any, Any, Callable[..., Any]]] = [
    (images.MultiScaleSSIM(betas=(0.3, 0.7)), large, scales((0.3, 0.7))),
    (images.PSNR(), pictures, each(sk.peak_signal_noise_ratio, data_range=1.0)),
    (images.SSIM(), pictures, each(sk.structural_similarity, **SSIM)),
    (features.FrechetDistance(), sets, frechet),
    (detection.MeanAveragePrecision(takes=SIX), boxes, challenge(0)),
    (detection.MeanAveragePrecision(0.5, takes=SIX), boxes, challenge(1)),
    (detection.MeanAveragePrecision(0.75, takes=SIX), boxes, challenge(2)),
    (detection.MeanAveragePrecision(area="small", takes=SIX), boxes, challenge(3)),
    (detection.MeanAveragePrecision(area="medium", takes=SIX), boxes, challenge(4)),
    (detection.MeanAveragePrecision(area="large", takes=SIX), boxes, challenge(5)),
    (detection.MeanAverageRecall(most=1, takes=SIX), boxes, challenge(6)),
    (detection.MeanAverageRecall(takes=SIX), boxes, challenge(8)),
]


@pytest.mark.parametrize(
    ("metric", "draw", "oracle"), ROWS, ids=[f"{i}-{row[0].name}" for i, row in enumerate(ROWS)]
)
def test_pictures_score_as_elsewhere(
    metric: Any, draw: Any, oracle: Callable[..., Any], check: Check
) -> None:
    check(metric, draw, oracle)


def test_bytes_are_pictures_too() -> None:
    p, t = pictures(np.random.default_rng(0), 3)
    whole, right = (np.round(x * 255).astype(np.uint8) for x in (p, t))
    expected = each(sk.peak_signal_noise_ratio)(whole, right)
    assert abs(images.PSNR()(whole, right) - expected) < 1e-9
    assert abs(images.PSNR(510.0)(whole, right) - expected - 20 * np.log10(2)) < 1e-9
    assert images.PSNR()(t, t) == np.inf


def test_corners_and_sizes_are_the_same_boxes() -> None:
    found, scores, said, right, labels, _ = boxes(np.random.default_rng(3), 4)
    sized = [np.concatenate([x[..., :2], x[..., 2:] - x[..., :2]], axis=-1) for x in (found, right)]
    middle = [np.concatenate([x[..., :2] + x[..., 2:] / 2, x[..., 2:]], axis=-1) for x in sized]
    row = detection.MeanAveragePrecision
    expected = row()(found, scores, said, right, labels)
    assert 0 < expected < 1
    assert row(form="xywh")(sized[0], scores, said, sized[1], labels) == expected
    assert row(form="cxcywh")(middle[0], scores, said, middle[1], labels) == expected
    each_class = row(average=None)(found, scores, said, right, labels)
    assert each_class.shape == (3,)
    assert each_class.mean() == expected


def test_equal_scores_do_not_depend_on_the_order_of_pictures() -> None:
    found, scores, said, right, labels, _ = boxes(np.random.default_rng(1), 4)
    given = found, scores.round(1), said, right, labels
    row = detection.MeanAveragePrecision(0.5)
    assert row(*given) == row(*(x[::-1] for x in given))


def test_few_features_are_nan() -> None:
    one, two = np.zeros((1, 3)), np.zeros((2, 3))
    assert np.isnan(features.FrechetDistance()(one, two))
    assert features.FrechetDistance()(two, two) == 0


FLAT, ONE = np.zeros((2, 3)), np.zeros((1, 2))
NONE = np.zeros((1, 2, 4)), ONE, ONE, np.zeros((1, 2, 4)), ONE
WRONG: list[tuple[Any, str, tuple[Any, ...]]] = [
    (images.SSIM(), r"\[SSIM\] not pictures: got \(2, 3\)", (FLAT, FLAT)),
    (images.PSNR(), r"hint: predictions\[None\]", (NONE[0], NONE[0])),
    (images.SSIM(), r"too small: got 9 x 20, expected 11", (np.zeros((1, 1, 9, 20)),) * 2),
    (features.FrechetDistance(), r"not features: got \(2, 3\), \(1, 2\)", (FLAT, ONE)),
    (detection.MeanAverageRecall(), r"boxes do not fit what", (NONE[0], FLAT, *NONE[2:])),
    (
        detection.MeanAverageRecall(),
        r"are not numbers: got nan",
        (NONE[0], ONE * np.nan, *NONE[2:]),
    ),
]


@pytest.mark.parametrize(("metric", "said", "given"), WRONG, ids=[row[1] for row in WRONG])
def test_wrong_pictures_are_refused(metric: Any, said: str, given: tuple[Any, ...]) -> None:
    with pytest.raises(PhloxError, match=said):
        metric(*given)
