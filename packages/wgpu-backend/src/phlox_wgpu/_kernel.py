"""A compute kernel as data: WGSL text, what it binds, its parameters."""

from __future__ import annotations

from dataclasses import dataclass

from .wgsl import helpers

FEATURES = ("shader-f16", "subgroup", "timestamp-query")
"""What kernels ask of an adapter, where it has it."""
_FORMATS = {"f32": "f", "i32": "i", "u32": "I"}


@dataclass(frozen=True, slots=True)
class Kernel:
    """What one pipeline is made of.

    ``body`` holds the functions and the entry point ``main`` (with its ``@compute
    @workgroup_size(...)``). The runtime puts in front of it: ``struct Params`` and ``p`` (a
    uniform) from ``params``; ``in0, in1, ...`` and ``out0, ...``, runtime-sized arrays of the WGSL
    types in ``inputs`` (read only) and ``outputs`` (read and write; ``atomic<u32>`` is fine); and
    every helper of wgsl/*.wgsl that the body names (exp_f, max_f, nan_f32, linear_group, ...). When
    ``index_errors`` names an op, ``checked_index(index: i32, length: i32) -> u32`` may be used: it
    takes negative indices and records the ones out of range. ``enables``: extensions that the body
    needs, of which a device is spared the line where its compiler refuses it.
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
    for mode, prefix, group in (
        ("read", "in", kernel.inputs),
        ("read_write", "out", kernel.outputs),
    ):
        for position, kind in enumerate(group):
            lines.append(_bind(binding, mode, f"{prefix}{position}: array<{kind}>"))
            binding += 1
    if kernel.index_errors:
        lines.append(_bind(binding, "read_write", "error_words: array<atomic<u32>, 4>"))
        lines.append(f"const PHLOX_OP = {op_code}u;")
    return "\n".join(lines) + "\n" + helpers.required(kernel.body) + kernel.body


def _bind(binding: int, mode: str, variable: str) -> str:
    return f"@group(0) @binding({binding}) var<storage, {mode}> {variable};"


def numbers(kernel: Kernel) -> str:
    """The format of the parameters, as of `struct`; fields of 4 bytes need no padding."""
    return "".join(_FORMATS[kind] for _, kind in kernel.params)
