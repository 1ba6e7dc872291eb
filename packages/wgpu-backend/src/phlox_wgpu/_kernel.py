"""A compute kernel as data: WGSL text, what it binds, its parameters."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from .wgsl import helpers

_FORMATS = {"f32": "f", "i32": "i", "u32": "I"}

@dataclass(frozen=True, slots=True)
class Kernel:
    """What one pipeline is made of.

    ``body`` holds the functions and the entry point ``main`` (with its ``@compute @workgroup_size(...)``). The runtime
    puts in front of it: ``struct Params`` and ``p`` (a uniform) from ``params``; ``in0, in1, ...`` and ``out0, ...``,
    runtime-sized arrays of the WGSL types in ``inputs`` (read only) and ``outputs`` (read and write; ``atomic<u32>`` is
    fine); and every helper of wgsl/*.wgsl that the body names (exp_f, max_f, nan_f32, linear_group, ...). When
    ``index_errors`` names an op, ``checked_index(index: i32, length: i32) -> u32`` may be used: it takes negative
    indices and records the ones out of range.
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
    if kernel.index_errors:
        lines.append(f"@group(0) @binding({binding}) var<storage, read_write> error_words: array<atomic<u32>, 4>;")
        lines.append(f"const PHLOX_OP = {op_code}u;")
    return "\n".join(lines) + "\n" + helpers.required(kernel.body) + kernel.body


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
