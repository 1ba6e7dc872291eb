"""Kernels of random numbers: Philox 4x32-10 (Salmon et al., SC 2011)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from .._kernel import Kernel
from .tile import SIGNATURE
from .walk import WORKGROUP

# The four words of a block, which is counted from a counter on.
_WORDS = """\
fn philox(block: u32, counter: vec2<u32>, key: vec2<u32>) -> vec4<u32> {
  let low = counter.x + block;
  var c = vec4<u32>(low, counter.y + select(0u, 1u, low < block), 0u, 0u);
  var k = key;
  for (var round = 0u; round < 10u; round++) {
    c = vec4<u32>(
      mul_high_u(0xCD9E8D57u, c.z) ^ c.y ^ k.x, 0xCD9E8D57u * c.z,
      mul_high_u(0xD2511F53u, c.x) ^ c.w ^ k.y, 0xD2511F53u * c.x);
    k += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
"""
# One thread makes one block of four words. Uniform bounds are mixed into the text of each kernel
# below.
_MAIN = f"""\
{SIGNATURE.format(threads=WORKGROUP)}\
  let i = linear_group(group, groups) * {WORKGROUP}u + lane_index;
  if (i >= p.blocks) {{ return; }}
  let words = philox(
    i, vec2<u32>(p.counter_low, p.counter_high), vec2<u32>(p.key_low, p.key_high));
  out0[i] = VALUES;
}}
"""
_PARAMS = (
    ("blocks", "u32"),
    ("key_low", "u32"),
    ("key_high", "u32"),
    ("counter_low", "u32"),
    ("counter_high", "u32"),
    ("never", "u32"),
    ("first", "f32"),
    ("second", "f32"),
)

# first + unit * second with the product rounded: `never` is 0, which the compiler does not know, so
# it cannot fuse.
_AFFINE = """\
fn affine(unit: vec4<f32>, first: f32, second: f32, never: u32) -> vec4<f32> {
  let product = bitcast<vec4<u32>>(unit * second) ^ vec4<u32>(never);
  return first + bitcast<vec4<f32>>(product);
}
"""
_NORMAL = f"""\
fn pair(a: f32, b: f32) -> vec2<f32> {{
  let radius = sqrt(-2.0 * log_f(1.0 - a));
  let angle = {2 * math.pi!r} * b;
  return radius * vec2<f32>(cos_f(angle), sin_f(angle));
}}
fn normals(words: vec4<u32>) -> vec4<f32> {{
  let u = vec4<f32>(words >> vec4<u32>(8u)) * {2.0**-24!r};
  return vec4<f32>(pair(u.x, u.y), pair(u.z, u.w));
}}
"""
# What the kernels of random numbers take beside their operands: two parameters of the law, key
# and counter in halves, and a 0 of which the compiler does not know.
NUMBERS = ("float32", "float32", "uint32", "uint32", "uint32", "uint32", "uint32")


def _unit(words: str, dtype: str) -> str:
    """Uniforms in [0, 1): of 24 bits, of float16 11."""
    drop = 21 if dtype == "float16" else 8
    return f"(vec4<f32>({words} >> vec4<u32>({drop}u)) * {2.0 ** (drop - 32)!r})"


def _normals(words: str, _dtype: str) -> str:
    return f"normals({words})"


class _Law(NamedTuple):
    """How four words become four numbers: by a function in the text, and a call of it."""

    text: str
    call: Callable[[str, str], str]


_LAWS = {"random_normal": _Law(_NORMAL, _normals), "random_uniform": _Law("", _unit)}


def drawing(ops: Iterable[str]) -> str:
    """Functions that ``drawn`` calls for these sources."""
    laws = "".join(_LAWS[op].text for op in sorted({*ops}))
    return f"{_WORDS}{_AFFINE}{laws}"


def has_source(op: str, dtype: str) -> bool:
    """Whether there is an expression for a source of such elements."""
    return op in _LAWS and dtype in ("float16", "float32")


def drawn(op: str, dtype: str, block: str, numbers: Sequence[str]) -> str:
    """Four numbers of a source as f32: those of a block of words, by ``NUMBERS``."""
    first, second, key_low, key_high, low, high, never = numbers
    words = f"philox({block}, vec2<u32>({low}, {high}), vec2<u32>({key_low}, {key_high}))"
    return f"affine({_LAWS[op].call(words, dtype)}, {first}, {second}, {never})"


def _kernel(values: str, kind: str, functions: str = _WORDS) -> Kernel:
    text = functions + _MAIN.replace("VALUES", values)
    return Kernel(text, (), (f"vec4<{kind}>",), _PARAMS)


def bits(kind: str) -> Kernel:
    """The words as they are."""
    return _kernel(f"vec4<{kind}>(words)", kind)


def uniform(kind: str) -> Kernel:
    """First + u * second, with u of 24 bits (f16: 11)."""
    return _law("random_uniform", kind)


def normal(kind: str) -> Kernel:
    """First + z * second by Box and Muller, pairs of words to pairs of normals."""
    return _law("random_normal", kind)


def _law(op: str, kind: str) -> Kernel:
    unit = _LAWS[op].call("words", "float16" if kind == "f16" else "float32")
    values = f"vec4<{kind}>(affine({unit}, p.first, p.second, p.never))"
    return _kernel(values, kind, drawing([op]))
