"""Errors for numbers that a function catches: plain numbers would not have led it there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from phlox_tensor import PhloxError
from phlox_tensor.capture import Recording

from .cells import Inputs, Pin, StartAgain


@contextmanager
def refusals(made: Recording, inputs: Inputs) -> Iterator[None]:
    """Look which numbers are at hand wherever a ``TypeError`` is raised and caught.

    Functions of other languages take no numbers but Python's own: ``json.dumps(n)`` says so by this
    error, and none but a function for tracing sees it where an ``except`` goes on behind it.

    Raises:
        StartAgain: with these as plain values; nothing is left in cells then.
    """
    found: set[Pin] = set()

    def entered(frame: FrameType, event: str, arg: Any) -> Any:
        del event, arg
        frame.f_trace_lines = False
        return None if frame.f_globals.get("__name__", "").startswith("phlox") else raised

    def raised(frame: FrameType, event: str, arg: Any) -> Any:
        refuses = event == "exception" and issubclass(arg[0], TypeError)
        if refuses and not issubclass(arg[0], PhloxError):  # in each frame up to the ``except``
            found.update(inputs.near(made, frame))
        return raised

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        yield
    finally:
        sys.settrace(before)
    if found:
        made.outcomes.clear()
        raise StartAgain(inputs.pins | found)
