"""Losses of classes and their cotangents: a thread has a row, which is short."""

from __future__ import annotations

from .._kernel import Kernel
from .tile import SIGNATURE
from .walk import WORKGROUP, index_of

_PARAMS = (("rows", "u32"), ("length", "i32"), ("x_offset", "u32"))
_PLACES = tuple((f"{name}_{part}", "i32") for name in ("t", "g") for part in ("offset", "step"))


def _row(index: str) -> str:
    """What both need of a row: where it begins, its class, its largest element, its sum."""
    return f"""\
fn at(k: u32) -> f32 {{ return f32(in0[k]); }}
{SIGNATURE.format(threads=WORKGROUP)}\
  let row = linear_group(group, groups) * {WORKGROUP}u + lane_index;
  if (row >= p.rows) {{ return; }}
  let first = p.x_offset + row * u32(p.length);
  let given = {index_of(index, "in1[p.t_offset + i32(row) * p.t_step]")};
  let chosen = checked_index(given, p.length);
  var top = -inf_f32();
  for (var j = 0u; j < u32(p.length); j++) {{ top = max_f(top, at(first + j)); }}
  let safe = select(top, 0.0, bitcast<u32>(top) == 0xff800000u);
  var total = 0.0;
  for (var j = 0u; j < u32(p.length); j++) {{ total += exp_f(at(first + j) - safe); }}
"""


def cross_entropy(stored: str, index: str) -> Kernel:
    """Minus the logarithm of the softmax of each row at its class.

    Inputs x, which is dense, and target. Parameters `_PARAMS`, then offset and step of target.
    """
    body = f"""\
{_row(index)}\
  let shift = select(log_f(total), 0.0, total == 0.0);
  out0[row] = {stored}(shift - (at(first + chosen) - safe));
}}
"""
    params = (*_PARAMS, *_PLACES[:2])
    return Kernel(body, (stored, index), (stored,), params, index_errors="cross_entropy")


def cross_entropy_backward(stored: str, index: str) -> Kernel:
    """The softmax of each row, less 1 at its class, times g.

    Inputs x, which is dense, target, g. Parameters `_PARAMS`, then offset and step of the others.
    """
    body = f"""\
{_row(index)}\
  let scale = 1.0 / select(total, 1.0, total == 0.0);
  let g = f32(in2[p.g_offset + i32(row) * p.g_step]);
  for (var j = 0u; j < u32(p.length); j++) {{
    let share = exp_f(at(first + j) - safe) * scale;
    out0[row * u32(p.length) + j] = {stored}((share - select(0.0, 1.0, j == chosen)) * g);
  }}
}}
"""
    op = "cross_entropy_backward"
    return Kernel(body, (stored, index, stored), (stored,), (*_PARAMS, *_PLACES), index_errors=op)
