"""How well boxes are found, as the COCO challenge counts it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import Tensor

from .metric import State
from .row import Merge, Parts, Row, Value

_IOUS: Final = np.linspace(0.5, 0.95, 10)
_RECALLS: Final = np.linspace(0, 1, 101)
# Pixels from and to, of the challenge.
_AREAS: Final = {
    "all": (0, 1e10),
    "small": (0, 1024),
    "medium": (1024, 9216),
    "large": (9216, 1e10),
}
_NAMES: Final[tuple[str, ...]] = (
    "boxes",
    "scores",
    "labels",
    "target_boxes",
    "target_labels",
    "crowd",
)


class Boxes(Row, takes=_NAMES[:5], better="higher"):
    """Base of rows over boxes of (batch, boxes, 4), scores and labels, and the right boxes.

    A label below 0 says that there is no box, as where pictures have different numbers of them. A
    sixth output in ``takes``, (batch, boxes), says which right boxes are crowds, whose boxes are
    neither right nor wrong. In a picture the box with the highest score takes the right box that
    it overlaps most. Of equal scores in several pictures wrong boxes come first. Lin et al.,
    "Microsoft COCO: common objects in context", 2014, https://arxiv.org/abs/1405.0312

    Attributes:
        iou: the overlap from which a box is right; None for the mean over 0.5, 0.55, … 0.95.
        average: ``"macro"``, the mean over classes that are there; None, an array by label.
        form: ``"xyxy"`` two corners, ``"xywh"`` a corner and a size, ``"cxcywh"`` center and size.
        most: how many boxes of a class and picture count.
        area: which right boxes count, by the area of boxes: ``"small"`` up to 32 x 32 pixels,
            ``"medium"`` up to 96 x 96, ``"large"``.
    """

    iou: float | None = None
    _: KW_ONLY
    average: Literal["macro"] | None = "macro"
    form: Literal["xyxy", "xywh", "cxcywh"] = "xyxy"
    most: int = 100
    area: Literal["all", "small", "medium", "large"] = "all"

    merges: ClassVar[Merge] = "keep"

    def validate(self) -> None:
        """Refuse what is no overlap."""
        self.require("iou", self.iou is None or 0 < self.iou <= 1, "0 < iou <= 1, or None")
        self.require("most", self.most >= 1, "at least 1")

    def part(self, *given: Tensor[Any]) -> Parts:
        """Return boxes, scores and labels."""
        found = dict(zip(_NAMES, given, strict=False))
        for side, names in (("boxes", _NAMES[:3]), ("target_boxes", _NAMES[3:])):
            shape, expected = tuple(found[side].shape), "(batch, boxes, 4), (batch, boxes), …"
            others = [tuple(found[name].shape) for name in names if name in found and name != side]
            if len(shape) != 3 or shape[2] != 4 or any(other != shape[:2] for other in others):
                got = ", ".join(map(str, [shape, *others]))
                self.fail(f"{side} do not fit what belongs to them", got, expected)
        return found

    def tally(self, part: State) -> Mapping[str, Any]:
        """Return score, label and rightness of each box, and the labels of right boxes.

        Rightness (boxes, overlaps) is 1, 0, or -1 for what does not count.
        """
        self.numbers("scores", part["scores"])
        ours, right = (self._corners(part[name]) for name in ("boxes", "target_boxes"))
        crowd = part.get("crowd", np.zeros(part["target_labels"].shape)).astype(bool)
        rows, there = [], [np.zeros(0, np.int64)]
        for i, labels in enumerate(part["labels"]):
            targets = part["target_labels"][i]
            for label in np.unique(np.r_[labels, targets]):
                if label < 0:
                    continue
                mine, its = np.flatnonzero(labels == label), np.flatnonzero(targets == label)
                order = np.argsort(-part["scores"][i][mine], kind="stable")[: self.most]
                mine = mine[order]
                found, counts = self._match(ours[i][mine], right[i][its], crowd[i][its])
                there.append(np.full(counts, label, np.int64))
                rows.append((part["scores"][i][mine], np.full(len(mine), label, np.int64), found))
        none = np.zeros(0), np.zeros(0, np.int64), np.zeros((0, len(self._ious())), np.int8)
        scores, labels, found = (np.concatenate(each) for each in zip(none, *rows, strict=True))
        return {"scores": scores, "labels": labels, "right": found, "there": np.concatenate(there)}

    def value(self, state: State) -> Value:
        """Return the mean over overlaps and classes; NaN where no box is to be found."""
        labels, counts = np.unique(state["there"], return_counts=True)
        found = np.full(labels.max(initial=-1) + 1, np.nan)
        for label, count in zip(labels, counts, strict=True):
            mine = state["labels"] == label
            scores, right = state["scores"][mine], state["right"][mine]
            found[label] = np.mean([self._of(*each, count) for each in _falling(scores, right)])
        if self.average is None:
            return found
        return float(np.nanmean(found)) if labels.size else np.nan

    @abstractmethod
    def _of(self, hits: NDArray[Any], boxes: NDArray[Any], count: int) -> float:
        """Return the value from right ones and all among the first boxes, of so many to find."""

    def _ious(self) -> NDArray[Any]:
        return _IOUS if self.iou is None else np.asarray([self.iou])

    def _corners(self, boxes: NDArray[Any]) -> NDArray[Any]:
        first, second = np.split(boxes.astype(np.float64), 2, axis=-1)
        if self.form == "xyxy":
            return np.concatenate([first, second], axis=-1)
        first = first - second / 2 if self.form == "cxcywh" else first
        return np.concatenate([first, first + second], axis=-1)

    def _match(
        self, boxes: NDArray[Any], targets: NDArray[Any], crowd: NDArray[np.bool_]
    ) -> tuple[NDArray[Any], int]:
        """Return rightness of boxes, highest score first, and how many targets count."""
        low, high = _AREAS[self.area]
        sizes, areas = _area(boxes), _area(targets)
        left_out = crowd | (areas < low) | (areas > high)
        overlap = _overlaps(boxes, targets, crowd)
        ious = np.minimum(self._ious(), 1 - 1e-10)[:, None]
        taken = np.zeros((len(ious), len(targets)), bool)
        right = np.zeros((len(boxes), len(ious)), np.int8)
        for place, row in enumerate(overlap):
            free = (~taken | crowd) & (row >= ious)
            real = free & ~left_out
            free = np.where(real.any(axis=1)[:, None], real, free)  # others only without real ones
            hit = free.any(axis=1)
            if hit.any():
                best = len(targets) - 1 - np.argmax(np.where(free, row, -1)[:, ::-1], axis=1)
                taken[hit, best[hit]] = True
                right[place, hit] = np.where(left_out[best[hit]], -1, 1)
            if not low <= sizes[place] <= high:
                right[place, ~hit] = -1
        return right, int((~left_out).sum())


class MeanAveragePrecision(Boxes):
    """The mean over classes and overlaps of average precision, at 101 values of recall.

    Precision at a recall is the best one at that recall or a higher one.

    Example:
        >>> boxes = px.asarray([[[0.0, 0.0, 2.0, 2.0], [4.0, 4.0, 6.0, 6.0]]])
        >>> scores, labels = px.asarray([[0.9, 0.8]]), px.asarray([[0, 0]])
        >>> MeanAveragePrecision()(boxes, scores, labels, boxes[:, 1:], labels[:, 1:])
        0.5
    """

    def _of(self, hits: NDArray[Any], boxes: NDArray[Any], count: int) -> float:
        precision = np.maximum.accumulate((hits / boxes)[::-1])[::-1]
        places = np.searchsorted(hits / count, _RECALLS)
        return float(np.mean(np.r_[precision, 0.0][np.minimum(places, len(precision))]))


class MeanAverageRecall(Boxes):
    """The mean over classes and overlaps of the share of right boxes that is found.

    Example:
        >>> boxes = px.asarray([[[0.0, 0.0, 2.0, 2.0], [4.0, 4.0, 6.0, 6.0]]])
        >>> scores, labels = px.asarray([[0.9, 0.8]]), px.asarray([[0, 0]])
        >>> MeanAverageRecall()(boxes[:, 1:], scores[:, 1:], labels[:, 1:], boxes, labels)
        0.5
    """

    def _of(self, hits: NDArray[Any], boxes: NDArray[Any], count: int) -> float:
        return float(hits[-1] / count) if len(hits) else 0.0


def _falling(
    scores: NDArray[Any], right: NDArray[Any]
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """For each overlap, how many of the first boxes are right, and how many there are."""
    for each in right.T:
        order = np.lexsort((each, -scores))
        counted = each[order][each[order] >= 0]
        yield np.cumsum(counted, dtype=np.int64), np.arange(1, len(counted) + 1)


def _area(boxes: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.prod(boxes[:, 2:] - boxes[:, :2], axis=1))


def _overlaps(boxes: NDArray[Any], targets: NDArray[Any], crowd: NDArray[np.bool_]) -> NDArray[Any]:
    """Intersection over union; of a crowd over the box."""
    low = np.maximum(boxes[:, None, :2], targets[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], targets[None, :, 2:])
    both = np.prod(np.maximum(high - low, 0), axis=2)
    mine, theirs = _area(boxes)[:, None], _area(targets)[None]
    under = np.where(crowd[None], mine, mine + theirs - both)
    return np.divide(both, under, out=np.zeros(both.shape), where=under > 0)
