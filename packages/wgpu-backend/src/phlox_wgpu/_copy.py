"""Materialising a strided view."""

from __future__ import annotations

from ._array import GpuArray
from ._kernel import Kernel
from ._runtime import GpuDevice

WORKGROUP = 256


def copy(device: GpuDevice, x: GpuArray) -> GpuArray:
    """A dense copy, bit for bit."""
    out = device.empty(x.shape, x.dtype)
    if not x.size:
        return out
    shape, strides = collapse(x.shape, x.strides)
    element = "u32" if x.item_bytes == 4 else "f16"
    rank = len(shape)
    params = (x.size, x.offset, *shape, *strides)
    device.launch(
        ("copy", element, rank), lambda: _strided(element, rank), [x], [out], params, -(-x.size // WORKGROUP)
    )
    return out


def collapse(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The same walk with fewer axes: length 1 dropped, neighbours that step as one merged."""
    lengths: list[int] = []
    steps: list[int] = []
    for length, stride in zip(shape, strides, strict=True):
        if length == 1:
            continue
        if steps and steps[-1] == length * stride:
            lengths[-1] *= length
            steps[-1] = stride
        else:
            lengths.append(length)
            steps.append(stride)
    return tuple(lengths), tuple(steps)


def _strided(element: str, rank: int) -> Kernel:
    lines = ["  var rest = i;", "  var at = p.offset;"]
    for axis in range(rank - 1, -1, -1):
        lines.append(f"  at += i32(rest % p.n{axis}) * p.s{axis};")
        lines.append(f"  rest /= p.n{axis};")
    body = f"""\
@compute @workgroup_size({WORKGROUP})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {{
  let i = linear_group(group, groups) * {WORKGROUP}u + lane;
  if (i >= p.size) {{ return; }}
{chr(10).join(lines)}
  out0[i] = in0[at];
}}
"""
    params = (
        ("size", "u32"),
        ("offset", "i32"),
        *((f"n{axis}", "u32") for axis in range(rank)),
        *((f"s{axis}", "i32") for axis in range(rank)),
    )
    return Kernel(body, (element,), (element,), params)
