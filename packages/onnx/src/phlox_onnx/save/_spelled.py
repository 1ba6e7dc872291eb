"""The device on which a model runs when it is written: one with the ops that ONNX can spell."""

from __future__ import annotations

from typing import Any, final

from phlox_tensor import Decorator, Entry, Op
from phlox_tensor.capture import recording

from ._rows import ROWS


@final
class Spelled(Decorator):
    """A device whose ops without a row run as what they expand to; one with a row is noted."""

    name = "spelled"

    def decorate(self, op: Op, inside: Entry) -> Entry | None:
        """Return what notes an op with a row; the inner device's of one without expansion."""
        if op.name not in ROWS:
            return inside if op.expand is None else None
        if self._inner.entry(op.name) is not None:  # which is noted there
            return inside
        base = self._inner

        def noted(*args: Any) -> Any:
            made = recording()
            return inside(*args) if made is None else made.run(base, op, inside, args)

        return noted
