"""How elementwise ops are spelled in ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from phlox_tensor import DType, int64

from ._writer import Call, Writer

Row = Callable[[Writer, Call], Any]


def plain(op: str, **words: Any) -> Row:
    """The same op under another name."""
    return lambda w, c: w.add(op, operands(w, c), **words)


def operands(w: Writer, c: Call) -> list[str]:
    """The inputs; numbers become constants of the type of the others."""
    dtype = next((d for d in c.dtypes if d is not None and d.kind != "Bool"), None)
    dtype = dtype or next(d for d in c.dtypes if d is not None)
    return [i if isinstance(i, str) else w.number(i, dtype) for i in c.inputs]


def logical(op: str, bitwise: str) -> Row:
    """The first op for bools, the second one for integers."""
    return lambda w, c: w.add(op if c.dtypes[0].kind == "Bool" else bitwise, operands(w, c))


def _logaddexp(w: Writer, c: Call) -> Any:
    """``max + log1p(exp(-|x - y|))``; for equal numbers, infinite ones too, ``max + log 2``."""
    names, dtype = operands(w, c), c.outs[0][1]
    off = w.add("Neg", [w.add("Abs", [w.add("Sub", names)])])
    rest = _log1p(w, w.add("Exp", [off]), dtype)
    rest = w.add("Where", [w.add("Equal", names), w.number(math.log(2), dtype), rest])
    return w.add("Add", [w.add("Max", names), rest])


def _where(w: Writer, c: Call) -> Any:
    condition, *rest = c.inputs
    dtype = c.outs[0][1]
    return w.add(
        "Where", [condition, *(v if isinstance(v, str) else w.number(v, dtype) for v in rest)]
    )


def _expm1(w: Writer, c: Call) -> Any:
    """Near 0, where ``exp(x) - 1`` loses digits, ``2 t / (1 - t)`` with ``t = tanh(x / 2)``."""
    x, one = c.inputs[0], w.number(1, c.dtypes[0])
    half = w.add("Tanh", [w.add("Mul", [x, w.number(0.5, c.dtypes[0])])])
    near = w.add("Div", [w.add("Add", [half, half]), w.add("Sub", [one, half])])
    small = w.add("Less", [w.add("Abs", [x]), one])
    return w.add("Where", [small, near, w.add("Sub", [w.add("Exp", [x]), one])])


def _log1p(w: Writer, x: str, dtype: DType) -> str:
    """Near 0 ``log(u) * x / (u - 1)`` with ``u = 1 + x``. Kahan, HP-15C handbook, 1982."""
    one = w.number(1, dtype)
    whole = w.add("Add", [x, one])
    log, off = w.add("Log", [whole]), w.add("Sub", [whole, one])
    near = w.add("Div", [w.add("Mul", [log, x]), off])
    near = w.add("Where", [w.add("Equal", [whole, one]), x, near])
    small = w.add("Less", [w.add("Abs", [x]), one])
    return str(w.add("Where", [small, near, log]))


def _hard_sigmoid(w: Writer, c: Call) -> Any:
    alpha, beta = c.attributes
    return w.add("HardSigmoid", [c.inputs[0]], alpha=float(alpha), beta=float(beta))


def _floor_divide(w: Writer, c: Call) -> Any:
    names = operands(w, c)
    if c.outs[0][1].kind == "Float":
        return w.add("Floor", [w.add("Div", names)])
    whole = w.add("Sub", [names[0], w.add("Mod", names)])  # Div rounds toward 0
    return w.add("Div", [whole, names[1]])


def _remainder(w: Writer, c: Call) -> Any:
    """The remainder with the sign of the divisor, which Mod gives only for whole numbers."""
    names, dtype = operands(w, c), c.outs[0][1]
    if dtype.kind == "Int":
        return w.add("Mod", names)
    left, zero = w.add("Mod", names, fmod=1), w.number(0, dtype)
    signs = [w.add("Less", [n, zero]) for n in (left, names[1])]
    none = w.add("Equal", [left, zero])
    other = w.add("And", [w.add("Xor", signs), w.add("Not", [none])])
    return w.add("Where", [other, w.add("Add", [left, names[1]]), left])


def shift(direction: str) -> Row:
    """A shift of bits; BitShift takes only unsigned integers, others go by powers of 2 in int64."""

    def run(w: Writer, c: Call) -> Any:
        dtype, zero = c.outs[0][1], w.count(0)
        width = dtype.itemsize * 8 - (direction == "RIGHT" and dtype.signed)
        x, count = operands(w, c)
        by = w.cast(count, int64)
        inside = w.add(
            "And", [w.add("GreaterOrEqual", [by, zero]), w.add("Less", [by, w.count(width)])]
        )
        by = w.add("Where", [inside, by, zero])
        if not dtype.signed:
            moved = w.add("BitShift", [x, w.cast(by, dtype)], direction=direction)
            return w.add("Where", [inside, moved, w.number(0, dtype)])
        x, power, beyond = w.cast(x, int64), w.add("Pow", [w.count(2), by]), zero
        if direction == "LEFT":
            moved = w.add("Mul", [x, power])
        else:  # Div rounds toward 0
            moved = w.add("Div", [w.add("Sub", [x, w.add("Mod", [x, power])]), power])
            beyond = w.add("Where", [w.add("Less", [x, zero]), w.count(-1), zero])
        return w.cast(w.add("Where", [inside, moved, beyond]), dtype)

    return run


def _clip(w: Writer, c: Call) -> Any:
    given = [*c.inputs[1:], *c.attributes]
    bounds = [v if isinstance(v, str) or v is None else w.number(v, c.dtypes[0]) for v in given]
    return w.add("Clip", [c.inputs[0], *(b or "" for b in bounds)])


def _elu(w: Writer, c: Call) -> Any:
    return w.add("Elu", [c.inputs[0]], alpha=float(c.attributes[0]) if c.attributes else 1.0)


def _isfinite(w: Writer, c: Call) -> Any:
    odd = w.add("Or", [w.add("IsNaN", [c.inputs[0]]), w.add("IsInf", [c.inputs[0]])])
    return w.add("Not", [odd])


# Ops of which ONNX has one under the same name.
_SAME: Final = """
Abs Acos Acosh Add Asin Asinh Atan Atanh Ceil Cos Cosh Equal Erf Exp Floor Greater IsInf
IsNaN Less Log Mish Pow Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softplus Softsign
Sqrt Tan Tanh"""
ROWS: Final[dict[str, Row]] = {
    **{name.lower(): plain(name) for name in _SAME.split()},
    "bitwise_and": logical("And", "BitwiseAnd"),
    "bitwise_invert": logical("Not", "BitwiseNot"),
    "bitwise_left_shift": shift("LEFT"),
    "bitwise_or": logical("Or", "BitwiseOr"),
    "bitwise_right_shift": shift("RIGHT"),
    "bitwise_xor": logical("Xor", "BitwiseXor"),
    "clip": _clip,
    "divide": plain("Div"),
    "elu": _elu,
    "expm1": _expm1,
    "floor_divide": _floor_divide,
    "gelu": plain("Gelu", approximate="none"),
    "gelu_tanh": plain("Gelu", approximate="tanh"),
    "greater_equal": plain("GreaterOrEqual"),
    "hard_sigmoid": _hard_sigmoid,
    "hard_swish": plain("HardSwish"),
    "isfinite": _isfinite,
    "leaky_relu": lambda w, c: w.add("LeakyRelu", [c.inputs[0]], alpha=float(c.attributes[0])),
    "less_equal": plain("LessOrEqual"),
    "log1p": lambda w, c: _log1p(w, c.inputs[0], c.dtypes[0]),
    "log_sigmoid": lambda w, c: w.add("Neg", [w.add("Softplus", [w.add("Neg", [c.inputs[0]])])]),
    "logaddexp": _logaddexp,
    "logical_and": plain("And"),
    "logical_not": plain("Not"),
    "logical_or": plain("Or"),
    "logical_xor": plain("Xor"),
    "maximum": plain("Max"),
    "minimum": plain("Min"),
    "multiply": plain("Mul"),
    "negative": plain("Neg"),
    "not_equal": lambda w, c: w.add("Not", [w.add("Equal", operands(w, c))]),
    "positive": plain("Identity"),
    "remainder": _remainder,
    "rsqrt": lambda w, c: w.add("Reciprocal", [w.add("Sqrt", [c.inputs[0]])]),
    "silu": lambda w, c: w.add("Mul", [c.inputs[0], w.add("Sigmoid", [c.inputs[0]])]),
    "square": lambda w, c: w.add("Mul", [c.inputs[0], c.inputs[0]]),
    "subtract": plain("Sub"),
    "where": _where,
}
