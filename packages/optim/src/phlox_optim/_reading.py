"""What reads from the device at each step, which no compiled function can repeat."""

from __future__ import annotations

from phlox_tensor import CompileError
from phlox_tensor.capture import line_of_user, recording, refuse


def refuse_recorded(what: str, hint: str) -> None:
    """Refuse to be a part of a compiled function."""
    if recording() is not None:
        refuse(
            CompileError(
                "compile",
                f"{what} decides by numbers on the device, which a replay could not read",
                got=f"a call at {line_of_user()}",
                expected="loss and gradients in the compiled function, this call outside",
                hint=hint,
            )
        )
