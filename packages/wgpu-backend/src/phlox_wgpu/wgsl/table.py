"""One row per elementwise op: its WGSL expression.

``{x}`` is the operand of a unary op; ``{x1}``, ``{x2}`` (and ``{c}``, the condition) those of the
others, ``{0}``, ``{1}`` and so on those of ops with more; a scalar attribute is one more operand.
An expression is over scalars: f32 (float16 is computed in float32), i32, u32 or bool, and may name
any helper of the .wgsl files. ``{t}`` is the letter of the operands' type: f, i, u or b. A row that
differs by type is a dict by that letter; "iu" stands for both integer types.
"""

from __future__ import annotations

Row = str | dict[str, str]

ELEMENTWISE: dict[str, Row] = {
    "abs": {"f": "abs({x})", "i": "abs({x})", "u": "{x}"},
    "acos": "acos_f({x})",
    "acosh": "acosh_f({x})",
    "add": "{x1} + {x2}",
    "asin": "asin_f({x})",
    "asinh": "asinh_f({x})",
    "atan": "atan_f({x})",
    "atan2": "atan2_f({x1}, {x2})",
    "atanh": "atanh_f({x})",
    "bitwise_and": {"b": "{x1} && {x2}", "iu": "{x1} & {x2}"},
    "bitwise_invert": {"b": "!{x}", "iu": "~{x}"},
    "bitwise_left_shift": "shift_left_{t}({x1}, {x2})",
    "bitwise_or": {"b": "{x1} || {x2}", "iu": "{x1} | {x2}"},
    "bitwise_right_shift": "shift_right_{t}({x1}, {x2})",
    "bitwise_xor": {"b": "{x1} != {x2}", "iu": "{x1} ^ {x2}"},
    "ceil": {"f": "ceil_f({x})", "iu": "{x}"},
    "cos": "cos_f({x})",
    "cosh": "cosh_f({x})",
    "divide": {"f": "divide_f({x1}, {x2})", "iu": "f32({x1}) / f32({x2})"},
    "elu": "select({x2} * expm1_f({x1}), {x1}, {x1} > 0.0)",
    "equal": {"f": "equal_f({x1}, {x2})", "biu": "{x1} == {x2}"},
    "erf": "erf_f({x})",
    "exp": "exp_f({x})",
    "expm1": "expm1_f({x})",
    "floor": {"f": "floor({x})", "iu": "{x}"},
    "floor_divide": "floor_divide_{t}({x1}, {x2})",
    "fmod": "fmod_{t}({x1}, {x2})",
    "gelu": "gelu_f({x})",
    "gelu_backward": "gelu_backward_f({x1}, {x2})",
    "gelu_tanh": "gelu_tanh_f({x})",
    "gelu_tanh_backward": "gelu_tanh_backward_f({x1}, {x2})",
    "greater": {"f": "less_f({x2}, {x1})", "iu": "{x1} > {x2}"},
    "greater_equal": {"f": "less_equal_f({x2}, {x1})", "iu": "{x1} >= {x2}"},
    "hypot": "hypot_f({x1}, {x2})",
    "isfinite": {"f": "is_finite_f32({x})", "iu": "true"},
    "isinf": {"f": "is_inf_f32({x})", "iu": "false"},
    "isnan": {"f": "is_nan_f32({x})", "iu": "false"},
    "leaky_relu": "select({x1} * {x2}, {x1}, {x1} >= 0.0)",
    "less": {"f": "less_f({x1}, {x2})", "iu": "{x1} < {x2}"},
    "less_equal": {"f": "less_equal_f({x1}, {x2})", "iu": "{x1} <= {x2}"},
    "log": "log_f({x})",
    "log10": "log10_f({x})",
    "log1p": "log1p_f({x})",
    "log2": "log2_f({x})",
    "log_sigmoid": "-softplus_f(-{x})",
    "logaddexp": "logaddexp_f({x1}, {x2})",
    "logical_and": "{x1} && {x2}",
    "logical_not": "!{x}",
    "logical_or": "{x1} || {x2}",
    "logical_xor": "{x1} != {x2}",
    "masked_scale": "select(0.0, {x1} * {x2}, {c})",
    "maximum": {"f": "max_f({x1}, {x2})", "iu": "max({x1}, {x2})"},
    "minimum": {"f": "min_f({x1}, {x2})", "iu": "min({x1}, {x2})"},
    "moving_average": "keep_f({0} * (1.0 - {2})) + keep_f({1} * ({3} * {2}))",
    "multiply": "{x1} * {x2}",
    "negative": {"f": "-{x}", "i": "-{x}", "u": "0u - {x}"},
    "not_equal": {"f": "!equal_f({x1}, {x2})", "biu": "{x1} != {x2}"},
    "positive": "{x}",
    "pow": "pow_{t}({x1}, {x2})",
    "reciprocal": "1.0 / {x}",
    "relu": {"f": "max_f({x}, 0.0)", "i": "max({x}, 0)", "u": "{x}"},
    "remainder": "remainder_{t}({x1}, {x2})",
    "round": {"f": "round_f({x})", "iu": "{x}"},
    "rsqrt": "rsqrt_f({x})",
    "sigmoid": "sigmoid_f({x})",
    "sign": {"f": "sign_f({x})", "i": "sign({x})", "u": "min({x}, 1u)"},
    "silu": "silu_f({x})",
    "silu_backward": "silu_backward_f({x1}, {x2})",
    "sin": "sin_f({x})",
    "sinh": "sinh_f({x})",
    "softplus": "softplus_f({x})",
    "sqrt": "sqrt_f({x})",
    "square": "{x} * {x}",
    "subtract": "{x1} - {x2}",
    "tan": "tan_f({x})",
    "tanh": "tanh_f({x})",
    "trunc": {"f": "trunc_f({x})", "iu": "{x}"},
    "where": "select({x2}, {x1}, {c})",
}

# Ops that may report an error, by operand letter.
REPORTING = {("pow", "i")}


def expression(op: str, letter: str) -> str:
    """The row of an op for operands of one type, with ``{t}`` filled in.

    Raises:
        KeyError: the op has no row, or none for this type.
    """
    row = ELEMENTWISE[op]
    if isinstance(row, dict):
        row = next((text for letters, text in row.items() if letter in letters), "")
        if not row:
            raise KeyError(f"no WGSL row for {op} on type {letter}")
    return row.replace("{t}", letter)
