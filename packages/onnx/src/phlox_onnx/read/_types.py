"""Element types: the numbers that ONNX has for them, and their names."""

from __future__ import annotations

from typing import Any, Final

from phlox_tensor import DTYPES

from .._errors import OnnxError

# Names are phlox's; int4 and uint4 are read into bytes. Plain numbers, since source copies them.
TYPES: Final[dict[int, str]] = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16", 21: "uint8",
    22: "int8",
}  # fmt: skip
LACKING: Final[dict[int, str]] = {
    8: "string", 14: "complex64", 15: "complex128", 17: "float8e4m3fn", 18: "float8e4m3fnuz",
    19: "float8e5m2", 20: "float8e5m2fnuz", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2",
    26: "int2", 27: "float6e2m3", 28: "float6e3m2",
}  # fmt: skip
# The bounds of what has four bits, and lies in bytes.
FOUR_BITS: Final[dict[int, tuple[int, int]]] = {21: (0, 15), 22: (-8, 7)}
CODES: Final[dict[str, int]] = {name: code for code, name in reversed(TYPES.items())} | {
    "uint4": 21, "int4": 22,
}  # fmt: skip


def type_name(code: int) -> str:
    """The name of an element type, as ONNX has it where phlox lacks it."""
    return TYPES.get(code) or LACKING.get(code, f"type {code}")


def to_type(code: int) -> Any:
    """The element type of phlox behind a number of ONNX.

    Raises:
        OnnxError: when phlox has none.
    """
    if code not in TYPES:
        expected = ", ".join(DTYPES)
        raise OnnxError("Cast", "no such element type", got=type_name(code), expected=expected)
    return DTYPES[TYPES[code]]
