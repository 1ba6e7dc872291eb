"""A compute kernel as data: WGSL text, what it binds, its parameters."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

_FORMATS = {"f32": "f", "i32": "i", "u32": "I"}

# Constants that WGSL cannot spell (a NaN or infinity literal is a compile error): made from bits through a variable,
# so that the shader compiler does not evaluate them.
_SPECIALS = """\
fn nan_f32() -> f32 { var bits = 0x7fc00000u; return bitcast<f32>(bits); }
fn inf_f32() -> f32 { var bits = 0x7f800000u; return bitcast<f32>(bits); }
fn is_nan_f32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn is_inf_f32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }
fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.y + group.y) * groups.x + group.x;
}
"""

_CHECKED_INDEX = """\
fn report_index(index: i32, length: i32) {
  let was = atomicCompareExchangeWeak(&index_error[0], 0u, PHLOX_OP);
  if (was.exchanged) {
    atomicStore(&index_error[1], bitcast<u32>(index));
    atomicStore(&index_error[2], bitcast<u32>(length));
  }
}
fn checked_index(index: i32, length: i32) -> u32 {
  var i = index;
  if (i < 0) { i = i + length; }
  if (i < 0 || i >= length) {
    report_index(index, length);
    i = 0;
  }
  return u32(i);
}
"""


@dataclass(frozen=True, slots=True)
class Kernel:
    """What one pipeline is made of.

    ``body`` holds the functions and the entry point ``main`` (with its ``@compute @workgroup_size(...)``). The runtime
    puts in front of it: ``struct Params`` and ``p`` (a uniform) from ``params``; ``in0, in1, ...`` and ``out0, ...``,
    runtime-sized arrays of the WGSL types in ``inputs`` (read only) and ``outputs`` (read and write; ``atomic<u32>`` is
    fine); the helpers nan_f32, inf_f32, is_nan_f32, is_inf_f32, linear_group; and, when ``index_errors`` names an op,
    ``checked_index(index: i32, length: i32) -> u32``, which takes negative indices and records the ones out of range.
    """

    body: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    params: tuple[tuple[str, str], ...] = ()
    index_errors: str = ""
    enables: tuple[str, ...] = ()


def source(kernel: Kernel, op_code: int = 0) -> str:
    """The whole WGSL module."""
    types = (*kernel.inputs, *kernel.outputs)
    enables = set(kernel.enables)
    if any("f16" in t for t in types) or "f16" in kernel.body:
        enables.add("f16")
    lines = [f"enable {name};" for name in sorted(enables)]
    binding = 0
    if kernel.params:
        fields = ", ".join(f"{name}: {kind}" for name, kind in kernel.params)
        lines += [f"struct Params {{ {fields} }}", "@group(0) @binding(0) var<uniform> p: Params;"]
        binding = 1
    for mode, prefix, group in (("read", "in", kernel.inputs), ("read_write", "out", kernel.outputs)):
        for position, kind in enumerate(group):
            lines.append(f"@group(0) @binding({binding}) var<storage, {mode}> {prefix}{position}: array<{kind}>;")
            binding += 1
    text = "\n".join(lines) + "\n" + _SPECIALS
    if kernel.index_errors:
        text += f"@group(0) @binding({binding}) var<storage, read_write> index_error: array<atomic<u32>, 4>;\n"
        text += f"const PHLOX_OP = {op_code}u;\n" + _CHECKED_INDEX
    return text + kernel.body


def packer(kernel: Kernel) -> struct.Struct:
    """Packs the parameters, in order, as the uniform's bytes (all fields are 4 bytes, so there is no padding)."""
    return struct.Struct("<" + "".join(_FORMATS[kind] for _, kind in kernel.params))


@dataclass(slots=True)
class Pipeline:
    """A compiled kernel and what the recorder needs of it."""

    gpu: Any
    handle: Any
    layout: Layout
    packer: struct.Struct
    slot: int
    text: str
    index_errors: bool


@dataclass(slots=True)
class Layout:
    """A bind group layout, shared by all kernels that bind the same number of things."""

    serial: int
    gpu: Any
    pipeline_layout: Any
    inputs: int
    outputs: int
    slot: int
    index_errors: bool
