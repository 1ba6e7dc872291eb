"""What scores decide, and what targets are: binary, one of several classes, or many labels."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import (
    KindError,
    ShapeError,
    Tensor,
    sigmoid,
    softmax,
    topk,
)

from .metric import State
from .row import Parts, Row

Task: TypeAlias = Literal["binary", "multiclass", "multilabel"]
Scores: TypeAlias = Literal["logits", "probabilities"]


class Labeled(Row, takes=("logits", "targets")):
    """Base of rows over scores and the classes that are right.

    | task | scores | targets |
    | --- | --- | --- |
    | multiclass | (…, classes) | (…), from 0 to classes - 1 |
    | binary | (…) | (…), 0 or 1 |
    | multilabel | (…, labels) | (…, labels), 0 or 1 |

    Attributes:
        classes: how many classes or labels there are; by default as many as scores have.
        task: one of the three above.
        scores: what a step gives: ``"logits"``, or ``"probabilities"`` from 0 to 1.
        ignore_index: the target of what does not count, such as padding.
    """

    classes: int | None = None
    _: KW_ONLY
    task: Task = "multiclass"
    scores: Scores = "logits"
    ignore_index: int | None = None

    def validate(self) -> None:
        """Refuse settings that contradict each other."""
        self._limits()
        least = 2 if self.task == "multiclass" else 1
        enough = self.classes is None or self.classes >= least
        self.require("classes", enough, f"at least {least} for task={self.task!r}")
        single = self.task != "binary" or self.classes in (None, 1)
        self.require("classes", single, 'none for task="binary"')

    def _limits(self) -> None:
        """Refuse settings of a row."""

    def fit(self, scores: Tensor[Any], targets: Tensor[Any]) -> int:
        """Return how many classes scores have.

        Raises:
            ShapeError: where scores do not fit the targets, or the classes.
        """
        if targets.dtype.kind == "Float":
            raise KindError(
                type(self).__name__,
                "targets are not classes",
                got=targets.dtype,
                expected="Int or Bool",
                hint="targets.astype(px.int64)",
            )
        several, shape, expected = self.task == "multiclass", scores.shape, tuple(targets.shape)
        classes = shape[-1] if shape and self.task != "binary" else 1
        needed = (*expected, self.classes or "classes") if several else expected
        if shape[: scores.ndim - several] != expected or (several and not shape):
            axis_1 = several and scores.ndim > 2 and shape[:1] + shape[2:] == expected
            raise ShapeError(
                type(self).__name__,
                "scores do not fit the targets",
                got=f"scores {shape}, targets {expected}",
                expected=f"scores {needed}",
                hint="logits.moveaxis(1, -1), where classes are on axis 1" if axis_1 else None,
            )
        if self.classes is not None and classes != self.classes:
            raise ShapeError(
                type(self).__name__,
                "scores of another number of classes",
                got=classes,
                expected=self.classes,
                hint=f"train.{type(self).__name__}({classes})",
            )
        return int(classes)

    def extremes(self, scores: Tensor[Any], targets: Tensor[Any]) -> Parts:
        """Return the least score that counts, nan where one is, and the largest, for ``refuse``."""
        if not scores.size:
            return {}
        if self.ignore_index is not None:
            counts = targets != self.ignore_index
            counts = counts.expand_dims(axis=-1) if self.task == "multiclass" else counts
            scores = counts.where(scores, 0.5)
        more = {"high": scores.max()} if self.scores == "probabilities" else {}
        return {"low": scores.min(), **more}

    def refuse(self, extremes: State) -> None:
        """Refuse scores that are not numbers, and probabilities that are none.

        Raises:
            ArgumentError: with the score.
        """
        low, high = float(extremes.get("low", 0)), float(extremes.get("high", 0))
        if np.isnan(low):
            hint = "px.detect_nan() finds their op"
            self.fail("scores are not numbers", "nan", "numbers", hint)
        if self.scores == "probabilities" and (low < 0 or high > 1):
            hint = f'train.{type(self).__name__}(scores="logits")'
            self.fail("a score is no probability", low if low < 0 else high, "0 to 1", hint)

    def probabilities(self, scores: Tensor[Any]) -> Tensor[Any]:
        """Return scores as probabilities."""
        wide = scores.to_full_precision()
        if self.scores == "probabilities":
            return wide
        return softmax(wide, axis=-1) if self.task == "multiclass" else sigmoid(wide)

    def counted(self, targets: NDArray[Any], classes: int) -> NDArray[np.bool_]:
        """Return which targets count.

        Raises:
            ArgumentError: for one that is no class.
        """
        counts = np.asarray(targets != self.ignore_index)
        most = classes - 1 if self.task == "multiclass" else 1
        wrong = targets[counts & ((targets < 0) | (targets > most))]
        if wrong.size:
            got = wrong.reshape(-1)[0]
            hint = f"train.{type(self).__name__}(ignore_index={got}) leaves such targets out"
            self.fail("a target is out of range", got, f"0 to {most}", hint)
        return counts


class Decided(Labeled):
    """Base of rows over what scores decide: the largest, or all above a threshold.

    Attributes:
        threshold: the probability above which a label is taken, of binary and multilabel tasks.
        top_k: how many of the largest scores are taken, of multiclass tasks.
    """

    threshold: float = 0.5
    top_k: int = 1

    many: ClassVar[bool] = True  # whether more than one prediction means something
    multilabel: ClassVar[bool] = True  # whether labels of which several may be right do

    def _limits(self) -> None:
        single = self.multilabel or self.task != "multilabel"
        self.require("task", single, '"binary" or "multiclass"')
        self.require("threshold", 0 < self.threshold < 1, "0 < threshold < 1")
        several = self.many and self.task == "multiclass"
        expected = "at least 1" if several else "1"
        self.require("top_k", self.top_k == 1 or (several and self.top_k > 1), expected)

    def part(self, logits: Tensor[Any], targets: Tensor[Any]) -> Parts:
        """Return what is decided; integers and bools are taken for decisions."""
        if logits.dtype.kind != "Float":
            return {
                "predicted": logits,
                "targets": targets,
                "classes": self._given(logits, targets),
            }
        classes = self.fit(logits, targets)
        if self.task != "multiclass":
            odds = self.threshold / (1 - self.threshold)
            said: Tensor[Any] = logits > (
                np.log(odds) if self.scores == "logits" else self.threshold
            )
        elif self.top_k == 1:
            said = logits.argmax(axis=-1)
        else:
            said = topk(logits, min(self.top_k, classes))[1]
        found = {"predicted": said, "targets": targets, "classes": classes}
        return {**found, **self.extremes(logits, targets)}

    def _given(self, predicted: Tensor[Any], targets: Tensor[Any]) -> int:
        """Return how many classes there are, of decisions."""
        self.same_shapes(predictions=predicted, targets=targets)
        if self.task == "multilabel":
            return self.fit(predicted, targets)
        if self.classes is None and self.task == "multiclass":
            hint = f"train.{type(self).__name__}(10)"
            self.fail("integers do not say how many classes there are", "none", "classes", hint)
        return self.classes or 1

    def decided(self, part: State) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_], int]:
        """Return what is decided and right, which of it counts, and how many classes there are.

        Arrays are (examples, decisions) and (examples,) for classes, else (examples, labels).

        Raises:
            ArgumentError: for targets and decisions that are no classes, and scores of nan.
        """
        self.refuse(part)
        classes, targets = int(part["classes"]), part["targets"].astype(np.int64)
        predicted = part["predicted"].astype(np.int64)
        several = self.task == "multiclass"
        most = classes - 1 if several else 1
        wrong = predicted[(predicted < 0) | (predicted > most)]
        if wrong.size:
            self.fail("a prediction is out of range", wrong[0], f"0 to {most}")
        taken = predicted.size // max(targets.size, 1) if several else classes
        targets = targets.reshape(targets.size if several else (-1, classes))
        predicted = predicted.reshape((len(targets), taken))
        return predicted, targets, self.counted(targets, classes), classes
