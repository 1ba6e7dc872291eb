"""The device on which a model runs when it is written: one with the ops that ONNX can spell."""

from __future__ import annotations

from typing import final

from phlox_tensor import Decorator, Entry, Op

from ._rows import ROWS


@final
class Spelled(Decorator):
    """A device whose ops without a row run as what they expand to."""

    name = "spelled"

    def decorate(self, op: Op, inside: Entry) -> Entry | None:
        """Return the inner device's own entry of an op with a row, or of one without expansion."""
        spelled = op.name in ROWS and self._inner.entry(op.name) is not None
        return inside if spelled or op.expand is None else None
