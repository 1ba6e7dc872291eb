"""What the environment variables PHLOX_COMPILE and PHLOX_FUSION ask for."""

from __future__ import annotations

import os
from typing import Final

from phlox_tensor import CompileError

_MODES: Final = ("check", "off", "on")


def mode_of(what: str) -> str:
    """Return the mode in the variable of ``compile`` or ``fusion``, which is on unless it says."""
    variable = f"PHLOX_{what.upper()}"
    mode = os.environ.get(variable, "on")
    if mode not in _MODES:
        expected = ", ".join(_MODES)
        raise CompileError(what, f"no such mode in {variable}", got=repr(mode), expected=expected)
    return mode
