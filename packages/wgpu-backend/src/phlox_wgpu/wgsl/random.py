"""Kernels of random numbers: Philox 4x32-10 (Salmon et al., SC 2011)."""

from __future__ import annotations

import math

from .._kernel import Kernel
from .tile import SIGNATURE
from .walk import WORKGROUP

# One thread makes one block of four words. Uniform bounds are mixed into the text of each kernel
# below.
_PHILOX = f"""\
fn philox(block: u32) -> vec4<u32> {{
  let low = p.counter_low + block;
  var c = vec4<u32>(low, p.counter_high + select(0u, 1u, low < block), 0u, 0u);
  var k = vec2<u32>(p.key_low, p.key_high);
  for (var round = 0u; round < 10u; round++) {{
    c = vec4<u32>(
      mul_high_u(0xCD9E8D57u, c.z) ^ c.y ^ k.x, 0xCD9E8D57u * c.z,
      mul_high_u(0xD2511F53u, c.x) ^ c.w ^ k.y, 0xD2511F53u * c.x);
    k += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
  }}
  return c;
}}
{SIGNATURE.format(threads=WORKGROUP)}\
  let i = linear_group(group, groups) * {WORKGROUP}u + lane_index;
  if (i < p.blocks) {{ out0[i] = values(philox(i)); }}
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
fn affine(unit: vec4<f32>) -> vec4<f32> {
  let product = bitcast<vec4<u32>>(unit * p.second) ^ vec4<u32>(p.never);
  return p.first + bitcast<vec4<f32>>(product);
}
"""


def _kernel(values: str, kind: str) -> Kernel:
    return Kernel(values + _PHILOX, (), (f"vec4<{kind}>",), _PARAMS)


def bits(kind: str) -> Kernel:
    """The words as they are."""
    values = f"fn values(words: vec4<u32>) -> vec4<{kind}> {{ return vec4<{kind}>(words); }}\n"
    return _kernel(values, kind)


def uniform(kind: str) -> Kernel:
    """First + u * second, with u of 24 bits (f16: 11)."""
    drop = 21 if kind == "f16" else 8
    values = f"""\
{_AFFINE}\
fn values(words: vec4<u32>) -> vec4<{kind}> {{
  return vec4<{kind}>(affine(vec4<f32>(words >> vec4<u32>({drop}u)) * {2.0 ** (drop - 32)!r}));
}}
"""
    return _kernel(values, kind)


def normal(kind: str) -> Kernel:
    """First + z * second by Box and Muller, pairs of words to pairs of normals."""
    values = f"""\
{_AFFINE}\
fn pair(a: f32, b: f32) -> vec2<f32> {{
  let radius = sqrt(-2.0 * log_f(1.0 - a));
  let angle = {2 * math.pi!r} * b;
  return radius * vec2<f32>(cos_f(angle), sin_f(angle));
}}
fn values(words: vec4<u32>) -> vec4<{kind}> {{
  let u = vec4<f32>(words >> vec4<u32>(8u)) * {2.0**-24!r};
  return vec4<{kind}>(affine(vec4<f32>(pair(u.x, u.y), pair(u.z, u.w))));
}}
"""
    return _kernel(values, kind)
