"""The last product of a model and its loss in one, some rows at a time."""

from __future__ import annotations

from typing import Any

from phlox_tensor import Float, Int, ShapeError, Tensor, concat, linear, split

from .classes import OfClasses


class LinearCrossEntropyLoss(OfClasses):
    """Cross entropy of ``x @ weight + bias``, whose logits are never there all at once.

    They are made for some rows at a time, and once more for the derivative: of a model with many
    classes, such as the words of a language, they would need more memory than all else.

    Args:
        rows: how many examples there are logits of at a time.
    """

    rows: int = 256

    def _check(self) -> None:
        OfClasses._check(self)  # which runs on the config too
        self.require("rows", self.rows > 0, "at least 1")

    def forward(
        self,
        x: Tensor[Float],
        weight: Tensor[Float],
        targets: Tensor[Int],
        bias: Tensor[Float] | None = None,
    ) -> Tensor[Float]:
        """Return the loss of vectors (…, d) for class indices (…).

        Args:
            x: what the last linear map would be given.
            weight: of that map, (d, classes): ``layer.weight.value``, or ``table.mT``.
            targets: class indices.
            bias: of that map, (classes,), or None.

        Raises:
            ShapeError: when vectors, weight and targets do not fit each other.
            KindError: when targets are no integers.
            IndexOutOfRangeError: when a target is no class and no pad token.
        """
        if weight.ndim != 2 or x.shape[-1:] != weight.shape[:1] or x.shape[:-1] != targets.shape:
            raise ShapeError(
                "linear_cross_entropy",
                "vectors, weight and targets do not fit",
                got=f"{x.shape}, {weight.shape}, {targets.shape}",
                expected="(…, d), (d, classes), (…)",
                hint="layer.weight.value, or table.mT of an embedding",
            )
        rows, count = self.settings.rows, targets.size
        sizes = [min(rows, count - start) for start in range(0, count, rows)] or [0]
        parts = split(x.reshape(count, x.shape[-1]), sizes)
        wanted = split(targets.reshape(count), sizes)

        def one(x: Tensor[Float], targets: Tensor[Int]) -> Any:
            return self._each(linear(x, weight, bias), targets)

        # What records says how a part of a program is run again; this package knows no such device.
        again = getattr(x.device.recorder or weight.device.recorder, "rerun", None)
        run = one if again is None else again(one)
        found = [run(*each) for each in zip(parts, wanted, strict=True)]
        losses = concat([loss for loss, _ in found]).reshape(targets.shape)
        shares = None if found[0][1] is None else concat([share for _, share in found])
        return self._reduced(losses, shares).astype(x.dtype)
