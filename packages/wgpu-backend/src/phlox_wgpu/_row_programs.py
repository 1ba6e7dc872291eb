"""The programs over rows: softmax, norms, logsumexp and distances as expressions by name."""

from __future__ import annotations

import math

from .wgsl.row_stages import Reduction, RowProgram, Step

_TOP = Step(
    reduce=(("top", "max", "x"),),
    row=(("safe", "select(top, 0.0, bitcast<u32>(top) == 0xff800000u)"),),
)
SOFTMAX = RowProgram(
    "softmax",
    ("x",),
    (
        _TOP,
        Step(
            each=(("e", "exp_f(x - safe)"),),
            reduce=(("total", "sum", "e"),),
            row=(("scale", "1.0 / select(total, 1.0, total == 0.0)"),),
        ),
    ),
    results=("e * scale",),
)
LOG_SOFTMAX = RowProgram(
    "log_softmax",
    ("x",),
    (
        _TOP,
        Step(
            reduce=(("total", "sum", "exp_f(x - safe)"),),
            row=(("shift", "select(log_f(total), 0.0, total == 0.0)"),),
        ),
    ),
    results=("(x - safe) - shift",),
)
SOFTMAX_BACKWARD = RowProgram(
    "softmax_backward",
    ("g", "y"),
    (Step(reduce=(("inner", "sum", "g * y"),)),),
    results=("y * (g - inner)",),
)
LOG_SOFTMAX_BACKWARD = RowProgram(
    "log_softmax_backward",
    ("g", "y"),
    (Step(reduce=(("total", "sum", "g"),)),),
    results=("g - exp_f(y) * total",),
)
LOGSUMEXP = RowProgram(
    "logsumexp",
    ("x",),
    (
        Step(reduce=(("top", "max", "x"),), row=(("safe", "select(top, 0.0, is_inf_f32(top))"),)),
        Step(reduce=(("total", "sum", "exp_f(x - safe)"),)),
    ),
    totals=("log_f(total) + safe",),
)
# Distances from the first element: equal elements have variance 0, whatever the mean rounds to.
# The mean is two floats, `near` and what is left of it: rounded to one it would shift all elements.
_NEAR = Step(
    reduce=(("total", "sum", "x - x_first"),), row=(("near", "x_first + total / p.divisor"),)
)
_SPREAD = Step(
    each=(("d", "x - near"),),
    reduce=(("left", "sum", "d"), ("raw", "sum", "d * d")),
    row=(("squares", "max_f(raw - left * (left / p.divisor), 0.0)"),),
)
_VAR_TOTALS = ("squares / divisor",)
VAR = RowProgram("var", ("x",), (_NEAR, _SPREAD), totals=_VAR_TOTALS, scalars=("divisor",))


# Norms take distances of a large row in a unit of its size, whose squares do not overflow.
def _sized(unit: str) -> Step:
    top: tuple[str, Reduction, str] = ("top", "max", "abs(x - x_first)")
    return Step(reduce=(*_NEAR.reduce, top), row=(*_NEAR.row, ("unit", f"{unit}(top)")))


_SIZED = _sized("unit_of_row")
_SIZED_SPREAD = Step(each=(("d", "(x - near) * unit"),), reduce=_SPREAD.reduce, row=_SPREAD.row)
STD = RowProgram(
    "std",
    ("x",),
    (_sized("unit_of_spread"), _SIZED_SPREAD),
    totals=("sqrt_f(squares / divisor) / unit",),
    scalars=("divisor",),
)
_SCALE = ("scale", "rsqrt_f(squares / p.divisor + epsilon * unit * unit)")
_SCALED = Step(
    each=_SIZED_SPREAD.each,
    reduce=_SPREAD.reduce,
    row=(*_SPREAD.row, ("rest", "left / p.divisor"), _SCALE),
)
# The root mean square is the deviation from 0.
_ROOT_STEPS = (
    Step(reduce=(("top", "max", "abs(x)"),), row=(("unit", "unit_of_row(top)"),)),
    Step(each=(("d", "x * unit"),), reduce=(("squares", "sum", "d * d"),), row=(_SCALE,)),
)


def layer_norm_program(weight: bool, bias: bool) -> RowProgram:
    """Layer norm with the vectors that there are."""
    value = "(d - rest) * scale" + " * weight" * weight + " + bias" * bias
    columns = ("weight",) * weight + ("bias",) * bias
    steps = (_SIZED, _SCALED)
    return RowProgram("layer_norm", ("x",), steps, (value,), (), columns, ("epsilon",))


def rms_norm_program(weight: bool) -> RowProgram:
    """Rms norm with its vector or without."""
    value = "d * scale" + " * weight" * weight
    columns = ("weight",) * weight
    return RowProgram("rms_norm", ("x",), _ROOT_STEPS, (value,), (), columns, ("epsilon",))


_SCALE_OF = "clamp({}, 1.17549435e-38, 3.40282347e+38)"  # no 0 to divide by, and nothing infinite


def norm_program(rows: tuple[str, ...], gap: str, p: float) -> RowProgram:
    """The p-norm of a vector, whose powers are taken of parts of its largest element."""
    name, size = f"norm of {gap}, {p if p in (0, 1, 2, math.inf) else 'p'}", f"abs({gap})"
    if p in (0, 1, math.inf):
        term = f"select(1.0, 0.0, equal_f({gap}, 0.0))" if p == 0 else size
        step = Step(reduce=(("out", "max" if p == math.inf else "sum", term),))
        return RowProgram(name, rows, (step,), totals=("out",))
    power, root = ("part * part", "sqrt_f(all)") if p == 2 else _POWERS
    return RowProgram(
        name,
        rows,
        (
            Step(
                (("size", size),), (("top", "max", "size"),), (("unit", _SCALE_OF.format("top")),)
            ),
            Step((("part", "part_f(size, unit)"),), (("all", "sum", power),)),
        ),
        totals=(f"{root} * unit",),
        scalars=() if p == 2 else ("order",),
    )


_POWERS = "pow_f(part, order)", "pow_f(all, 1.0 / order)"
VECTOR_NORM = norm_program(("x",), "x", 2)
COSINE = RowProgram(
    "cosine_similarity",
    ("x1", "x2"),
    (
        Step(
            reduce=(("top1", "max", "abs(x1)"), ("top2", "max", "abs(x2)")),
            row=(("unit1", _SCALE_OF.format("top1")), ("unit2", _SCALE_OF.format("top2"))),
        ),
        Step(
            each=(("a", "part_f(x1, unit1)"), ("b", "part_f(x2, unit2)")),
            reduce=(("aa", "sum", "a * a"), ("bb", "sum", "b * b"), ("ab", "sum", "a * b")),
            row=(
                ("size1", "max_f(sqrt_f(aa), divide_f(epsilon, unit1))"),
                ("size2", "max_f(sqrt_f(bb), divide_f(epsilon, unit2))"),
            ),
        ),
    ),
    totals=("divide_f(divide_f(ab, size1), size2)",),
    scalars=("epsilon",),
)


def norm_backward_program(weight: bool, *, centered: bool) -> RowProgram:
    """The cotangent of x; mean and scale of each row are kept for those of weight and bias.

    `centered`: of layer norm; else of rms norm, whose rows have the mean 0.
    """
    mean: tuple[str, Reduction, str] = ("first", "sum", "pull")
    pull = Step(
        each=(
            ("normal", f"({'d - rest' if centered else 'd'}) * scale"),
            ("pull", "g * weight" if weight else "g"),
        ),
        reduce=(("second", "sum", "pull * normal"), *(mean,) * centered),
    )
    steps = (*((_SIZED, _SCALED) if centered else _ROOT_STEPS), pull)
    first = " - first / p.divisor" * centered
    return RowProgram(
        "layer_norm_backward" if centered else "rms_norm_backward",
        ("g", "x"),
        steps,
        (f"(scale * unit) * (pull{first} - normal * (second / p.divisor))",),
        (*("near", "rest / unit") * centered, "scale * unit"),
        ("weight",) * weight,
        ("epsilon",),
    )
