"""What the environment may say to the kernels; anything else is refused when they are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from phlox_tensor import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

_LEVELS: Final = ("avx2", "avx512", "avx512_bf16", "baseline")
_MOST_BYTES: Final = 2**64 - 1
_MOST_DIGITS: Final = len(str(_MOST_BYTES))
# The least and the most that a number may be, and one to type.
_NUMBERS: Final = {
    "PHLOX_CACHE_BYTES": (0, _MOST_BYTES, 1_073_741_824),
    "PHLOX_NUM_THREADS": (1, 256, 2),
    "PHLOX_PACKED_BYTES": (0, _MOST_BYTES, 1_073_741_824),
    "PHLOX_SPIN_US": (0, 2**32 - 1, 300),
}


def require_known(environment: Mapping[str, str]) -> None:
    """Refuse settings that kernels would not understand.

    Raises:
        ArgumentError: no such instruction set, or no number in its bounds.
    """
    level = environment.get("PHLOX_SIMD")
    if level is not None and level not in _LEVELS:
        raise ArgumentError(
            "cpu",
            "no such level in PHLOX_SIMD",
            got=repr(level),
            expected=", ".join(_LEVELS),
            hint="PHLOX_SIMD=avx2 python program.py",
        )
    for name, (least, most, such) in _NUMBERS.items():
        text = environment.get(name)
        if text is None or (_is_short_number(text) and least <= int(text) <= most):
            continue
        raise ArgumentError(
            "cpu",
            f"no such number in {name}",
            got=repr(text),
            expected=f"a whole number from {least} to {most}",
            hint=f"{name}={such} python program.py",
        )


def _is_short_number(text: str) -> bool:
    """Whether these are digits, of which Python reads no more than some thousand."""
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
