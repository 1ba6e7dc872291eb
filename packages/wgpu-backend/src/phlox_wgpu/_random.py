"""Random numbers: Philox 4x32-10 (Salmon et al., SC 2011), the same bits as on every backend."""

from __future__ import annotations

import math

from phlox_tensor import DType, uint32

from ._array import WGSL_TYPES, GpuArray
from ._kernel import Kernel
from ._runtime import GpuDevice
from ._table import Entries

_WORKGROUP = 256
_MASK = 0xFFFFFFFF

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
@compute @workgroup_size({_WORKGROUP})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {{
  let i = linear_group(group, groups) * {_WORKGROUP}u + lane;
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


def _fill(
    device: GpuDevice,
    key: tuple[str, ...],
    body: str,
    out: GpuArray,
    stream: tuple[int, int],
    bounds: tuple[float, float],
) -> GpuArray:
    """Launch a thread per block of four words; the last may write past the array, in its buffer."""
    blocks = -(-out.size // 4)
    philox, counter = stream
    words = (philox & _MASK, (philox >> 32) & _MASK, counter & _MASK, (counter >> 32) & _MASK)
    device.launch(
        ("random", *key),
        lambda: Kernel(body + _PHILOX, (), (f"vec4<{out.wgsl}>",), _PARAMS),
        [],
        [out],
        (blocks, *words, 0, *bounds),
        -(-blocks // _WORKGROUP),
    )
    return out


def random_bits(
    device: GpuDevice, count: int, key: int, counter: int, dtype: DType = uint32
) -> GpuArray:
    """The words of the stream of `key` from block `counter` on."""
    out = device.empty((count,), dtype)
    body = (
        f"fn values(words: vec4<u32>) -> vec4<{out.wgsl}> {{ return vec4<{out.wgsl}>(words); }}\n"
    )
    return _fill(device, ("bits", out.wgsl), body, out, (key, counter), (0.0, 0.0))


def random_uniform(
    device: GpuDevice,
    shape: tuple[int, ...],
    low: float,
    high: float,
    dtype: DType,
    key: int,
    counter: int,
) -> GpuArray:
    """Uniforms: low + u * (high - low), with u of 24 bits (float16: 11)."""
    drop = 21 if dtype.name == "float16" else 8
    kind = WGSL_TYPES[dtype.name]
    body = f"""\
{_AFFINE}\
fn values(words: vec4<u32>) -> vec4<{kind}> {{
  return vec4<{kind}>(affine(vec4<f32>(words >> vec4<u32>({drop}u)) * {2.0 ** (drop - 32)!r}));
}}
"""
    out = device.empty(shape, dtype)
    return _fill(device, ("uniform", kind), body, out, (key, counter), (low, high - low))


def random_normal(
    device: GpuDevice,
    shape: tuple[int, ...],
    mean: float,
    std: float,
    dtype: DType,
    key: int,
    counter: int,
) -> GpuArray:
    """Normals: mean + std * z by Box and Muller, pairs of words to pairs of normals."""
    kind = WGSL_TYPES[dtype.name]
    body = f"""\
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
    out = device.empty(shape, dtype)
    return _fill(device, ("normal", kind), body, out, (key, counter), (mean, std))


ENTRIES: Entries = {
    "random_bits": random_bits,
    "random_normal": random_normal,
    "random_uniform": random_uniform,
}
