"""Kernels that write one place of an axis, whose number is on the device."""

from __future__ import annotations

from .._kernel import Kernel
from .walk import index_of, walk_params, walk_source

_PARAMS = (
    *(("v_offset", "i32"), ("i_offset", "i32"), ("x_offset", "i32"), ("length", "i32")),
    ("step", "i32"),
)


def one(word: str, index: str, rank: int) -> Kernel:
    """Write values at their place of out0; elsewhere it stays."""
    names = ("v", "x")
    body = f"""\
  let k = {_place(index)};
  if (k >= 0 && k < p.length) {{
    out0[p.x_offset + at_x + k * p.step] = in0[p.v_offset + at_v];
  }}
"""
    params = (*walk_params(names, rank), *_PARAMS)
    return Kernel(walk_source(names, rank, body), (word, index), (word,), params)


def whole(word: str, index: str, rank: int) -> Kernel:
    """The first places of in2, then values, then zeros."""
    names = ("v", "x", "d")
    body = f"""\
  let k = {_place(index)};
  var value = {word}(0);
  if (at_d < k) {{
    value = in2[p.x_offset + at_x];
  }} else if (at_d == k) {{
    value = in0[p.v_offset + at_v];
  }}
  out0[i] = value;
"""
    params = (*walk_params(names, rank), *_PARAMS)
    return Kernel(walk_source(names, rank, body), (word, index, word), (word,), params)


def _place(index: str) -> str:
    return f"i32({index_of(index, 'in1[p.i_offset]')})"
