"""Derivatives of integers times a scale; ``dequantize`` follows its expansion."""

from __future__ import annotations

from typing import Final

from .._rule import Rule, none

QUANTIZATION: Final[dict[str, Rule]] = {
    "quantize": none("the result is an integer; fake_quantize has a gradient"),
}
