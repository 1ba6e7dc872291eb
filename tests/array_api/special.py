"""The lists "Special cases" of the array API standard 2025.12, for real numbers: rows of a table.

A row has the operands and what the text demands; zeros have signs. Where the text leaves a choice
to the implementation, as for ``inf // 1``, there is no row.
"""

from __future__ import annotations

from math import inf, nan, pi
from typing import Final

FUNCTIONS_OF_ONE: Final[dict[str, dict[float, float]]] = {
    "abs": {-0.0: 0.0, -inf: inf, inf: inf},
    "acos": {1.5: nan, -1.5: nan, 1.0: 0.0},
    "acosh": {0.5: nan, 1.0: 0.0, inf: inf, -inf: nan},
    "asin": {1.5: nan, -1.5: nan},
    "asinh": {inf: inf, -inf: -inf},
    "atan": {inf: pi / 2, -inf: -pi / 2},
    "atanh": {-1.5: nan, 1.5: nan, -1.0: -inf, 1.0: inf},
    "ceil": {3.0: 3.0, inf: inf, -inf: -inf},
    "conj": {3.0: 3.0, inf: inf, -inf: -inf},
    "cos": {inf: nan, -inf: nan},
    "cosh": {inf: inf, -inf: inf},
    "exp": {inf: inf, -inf: 0.0},
    "expm1": {inf: inf, -inf: -1.0},
    "floor": {3.0: 3.0, inf: inf, -inf: -inf},
    "log": {-1.0: nan, -inf: nan, 1.0: 0.0, inf: inf},
    "log10": {-1.0: nan, -inf: nan, 1.0: 0.0, inf: inf},
    "log1p": {-1.5: nan, -1.0: -inf, inf: inf},
    "log2": {-1.0: nan, -inf: nan, 1.0: 0.0, inf: inf},
    "negative": {inf: -inf, -inf: inf},
    "positive": {inf: inf, -inf: -inf},
    "real": {3.0: 3.0, inf: inf, -inf: -inf},
    "reciprocal": {inf: 0.0, -inf: -0.0},
    "round": {3.0: 3.0, 0.5: 0.0, 1.5: 2.0, 2.5: 2.0, -0.5: -0.0, inf: inf, -inf: -inf},
    "sign": {-3.0: -1.0, 3.0: 1.0, inf: 1.0, -inf: -1.0},
    "sin": {inf: nan, -inf: nan},
    "sinh": {inf: inf, -inf: -inf},
    "sqrt": {-1.0: nan, -inf: nan, inf: inf},
    "square": {inf: inf, -inf: inf},
    "tan": {inf: nan, -inf: nan},
    "tanh": {inf: 1.0, -inf: -1.0},
    "trunc": {3.0: 3.0, inf: inf, -inf: -inf},
}  # fmt: skip
# What becomes of +0 and -0, which are one key of a dict.
OF_ZEROS: Final[dict[str, tuple[float, float]]] = {
    "abs": (0.0, 0.0),
    "asin": (0.0, -0.0),
    "asinh": (0.0, -0.0),
    "atan": (0.0, -0.0),
    "atanh": (0.0, -0.0),
    "ceil": (0.0, -0.0),
    "conj": (0.0, -0.0),
    "cos": (1.0, 1.0),
    "cosh": (1.0, 1.0),
    "exp": (1.0, 1.0),
    "expm1": (0.0, -0.0),
    "floor": (0.0, -0.0),
    "log": (-inf, -inf),
    "log10": (-inf, -inf),
    "log1p": (0.0, -0.0),
    "log2": (-inf, -inf),
    "negative": (-0.0, 0.0),
    "positive": (0.0, -0.0),
    "real": (0.0, -0.0),
    "reciprocal": (inf, -inf),
    "round": (0.0, -0.0),
    "sin": (0.0, -0.0),
    "sinh": (0.0, -0.0),
    "sqrt": (0.0, -0.0),
    "square": (0.0, 0.0),
    "tan": (0.0, -0.0),
    "tanh": (0.0, -0.0),
    "trunc": (0.0, -0.0),
}
TRUTHS_OF_ONE: Final[dict[str, tuple[tuple[float, bool], ...]]] = {
    "isfinite": ((inf, False), (-inf, False), (nan, False), (3.0, True), (-0.0, True)),
    "isinf": ((inf, True), (-inf, True), (nan, False), (3.0, False)),
    "isnan": ((nan, True), (inf, False), (3.0, False)),
    "signbit": ((0.0, False), (-0.0, True), (inf, False), (-inf, True), (3.0, False), (-3.0, True)),
}
Rows = tuple[tuple[float, float, float], ...]
_DIVIDE: Final[Rows] = (
    (inf, inf, nan), (inf, -inf, nan), (-inf, inf, nan), (-inf, -inf, nan),
    (0.0, 0.0, nan), (0.0, -0.0, nan), (-0.0, 0.0, nan), (-0.0, -0.0, nan),
    (0.0, 3.0, 0.0), (-0.0, 3.0, -0.0), (0.0, -3.0, -0.0), (-0.0, -3.0, 0.0),
    (3.0, 0.0, inf), (3.0, -0.0, -inf), (-3.0, 0.0, -inf), (-3.0, -0.0, inf),
    (3.0, inf, 0.0), (-3.0, -inf, 0.0),
)  # fmt: skip
FUNCTIONS_OF_TWO: Final[dict[str, Rows]] = {
    "add": (
        (inf, -inf, nan), (-inf, inf, nan), (inf, inf, inf), (-inf, -inf, -inf), (inf, 3.0, inf),
        (-inf, 3.0, -inf), (3.0, inf, inf), (3.0, -inf, -inf), (-0.0, -0.0, -0.0),
        (-0.0, 0.0, 0.0), (0.0, -0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 3.0, 3.0), (-0.0, 3.0, 3.0),
        (3.0, 0.0, 3.0), (3.0, -0.0, 3.0), (3.0, -3.0, 0.0),
    ),
    "atan2": (
        (3.0, 0.0, pi / 2), (3.0, -0.0, pi / 2), (0.0, 3.0, 0.0), (0.0, 0.0, 0.0),
        (0.0, -0.0, pi), (0.0, -3.0, pi), (-0.0, 3.0, -0.0), (-0.0, 0.0, -0.0),
        (-0.0, -0.0, -pi), (-0.0, -3.0, -pi), (-3.0, 0.0, -pi / 2), (-3.0, -0.0, -pi / 2),
        (3.0, inf, 0.0), (3.0, -inf, pi), (-3.0, inf, -0.0), (-3.0, -inf, -pi),
        (inf, 3.0, pi / 2), (-inf, 3.0, -pi / 2), (inf, inf, pi / 4), (inf, -inf, 3 * pi / 4),
        (-inf, inf, -pi / 4), (-inf, -inf, -3 * pi / 4),
    ),
    "copysign": (
        (3.0, -1.0, -3.0), (3.0, -0.0, -3.0), (-3.0, 0.0, 3.0), (-3.0, 1.0, 3.0),
        (0.0, -1.0, -0.0), (inf, -inf, -inf), (-inf, inf, inf),
    ),
    "divide": (
        *_DIVIDE, (inf, 3.0, inf), (inf, -3.0, -inf), (-inf, 3.0, -inf), (-inf, -3.0, inf),
        (3.0, -inf, -0.0), (-3.0, inf, -0.0),
    ),
    "floor_divide": _DIVIDE,
    "hypot": (
        (inf, nan, inf), (-inf, nan, inf), (nan, inf, inf), (nan, -inf, inf), (inf, 3.0, inf),
        (3.0, -inf, inf), (0.0, -3.0, 3.0), (-0.0, 3.0, 3.0), (3.0, -0.0, 3.0), (-0.0, -0.0, 0.0),
    ),
    "logaddexp": ((inf, 3.0, inf), (3.0, inf, inf), (inf, -inf, inf), (inf, inf, inf)),
    "maximum": ((3.0, inf, inf), (-inf, 3.0, 3.0)),
    "minimum": ((3.0, inf, 3.0), (-inf, 3.0, -inf)),
    "multiply": (
        (inf, 0.0, nan), (-inf, 0.0, nan), (inf, -0.0, nan), (0.0, inf, nan), (-0.0, -inf, nan),
        (inf, inf, inf), (inf, -inf, -inf), (-inf, -inf, inf), (inf, 3.0, inf), (inf, -3.0, -inf),
        (-3.0, inf, -inf), (-3.0, -inf, inf), (-0.0, 3.0, -0.0), (-0.0, -3.0, 0.0),
    ),
    "nextafter": ((3.0, 3.0, 3.0), (0.0, -0.0, -0.0), (-0.0, 0.0, 0.0), (inf, inf, inf)),
    "pow": (
        (nan, 0.0, 1.0), (nan, -0.0, 1.0), (3.0, 0.0, 1.0), (3.0, -0.0, 1.0), (inf, 0.0, 1.0),
        (3.0, inf, inf), (-3.0, inf, inf), (3.0, -inf, 0.0), (-3.0, -inf, 0.0), (-1.0, inf, 1.0),
        (-1.0, -inf, 1.0), (1.0, inf, 1.0), (1.0, -inf, 1.0), (1.0, 3.5, 1.0), (0.5, inf, 0.0),
        (-0.5, inf, 0.0), (0.5, -inf, inf), (-0.5, -inf, inf), (inf, 3.0, inf), (inf, -3.0, 0.0),
        (-inf, 3.0, -inf), (-inf, 2.0, inf), (-inf, 2.5, inf), (-inf, -3.0, -0.0),
        (-inf, -2.0, 0.0), (-inf, -2.5, 0.0), (0.0, 3.0, 0.0), (0.0, -3.0, inf), (-0.0, 3.0, -0.0),
        (-0.0, 2.0, 0.0), (-0.0, 2.5, 0.0), (-0.0, -3.0, -inf), (-0.0, -2.0, inf),
        (-0.0, -2.5, inf), (-3.0, 2.5, nan), (-3.0, -0.5, nan),
    ),
    "remainder": (
        (inf, 3.0, nan), (-inf, 3.0, nan), (inf, inf, nan), (3.0, 0.0, nan), (3.0, -0.0, nan),
        (0.0, 3.0, 0.0), (-0.0, 3.0, 0.0), (0.0, -3.0, -0.0), (-0.0, -3.0, -0.0), (3.0, inf, 3.0),
        (3.0, -inf, -inf), (-3.0, inf, inf), (-3.0, -inf, -3.0), (0.0, 0.0, nan),
    ),
    "subtract": ((inf, inf, nan), (-inf, -inf, nan), (inf, -inf, inf), (-0.0, 0.0, -0.0)),
}  # fmt: skip
# Of these nan on one side alone does not give nan; the rows above say when.
NAN_IS_NOT_ALL: Final = {"hypot", "pow"}
TRUTHS_OF_TWO: Final[dict[str, tuple[tuple[float, float, bool], ...]]] = {
    "equal": ((nan, 3.0, False), (nan, nan, False), (inf, inf, True), (-0.0, 0.0, True)),
    "greater": ((nan, 3.0, False), (3.0, nan, False), (inf, 3.0, True), (0.0, -0.0, False)),
    "greater_equal": ((nan, nan, False), (-inf, -inf, True), (-0.0, 0.0, True)),
    "less": ((nan, 3.0, False), (3.0, nan, False), (-inf, inf, True), (-0.0, 0.0, False)),
    "less_equal": ((nan, nan, False), (inf, inf, True), (0.0, -0.0, True)),
    "not_equal": ((nan, 3.0, True), (nan, nan, True), (inf, inf, False), (-0.0, 0.0, False)),
}
# Reductions: of nothing, of nan beside numbers, of one number with correction=1.
OF_NOTHING: Final = {"mean": nan, "prod": 1.0, "std": nan, "sum": 0.0, "var": nan}
NAN_WINS: Final = ("max", "mean", "min", "prod", "std", "sum", "var")
