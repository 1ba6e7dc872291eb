"""Random numbers have no operands to differentiate by."""

from __future__ import annotations

from typing import Final

from .._rule import Rule, none

_SOURCE = none("no operands")
RANDOM: Final[dict[str, Rule]] = {
    "random_bits": _SOURCE,
    "random_normal": _SOURCE,
    "random_uniform": _SOURCE,
}
