"""Kernels on other compilers and on adapters with no more than WebGPU promises."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phlox_wgpu import Wgpu, wgsl
from phlox_wgpu._kernel import Kernel, source
from phlox_wgpu._row_programs import SOFTMAX, norm_backward_program
from phlox_wgpu.products.plans import choose_tile
from phlox_wgpu.wgsl.row_stages import RowProgram, row_stages
from phlox_wgpu.wgsl.stages import Rows, stages_source

_SHADERS = (".py", ".wgsl")


def by_subgroups(program: RowProgram) -> Kernel:
    access = "v" * (len(program.rows) + len(program.columns))
    stages = row_stages(program, "float32", "float32", keeps=True)
    return stages_source(stages, Rows(access, 1, 64, True, 4, threads=64, subgroups=True))


def test_no_shader_writes_infinity_or_nan_as_a_constant() -> None:
    """Browsers refuse such constants; `inf_f32()` makes the number as the shader runs."""
    files = [file for file in Path(wgsl.__file__).parent.rglob("*") if file.suffix in _SHADERS]
    assert len(files) > 30
    constant = re.compile(r"bitcast<f32>\(0x[7f]f[89a-f]")
    assert constant.search("bitcast<f32>(0xff800000u)")
    assert not [file.name for file in files if constant.search(file.read_text())]


class Sent(Exception):
    """A shader reached the compiler."""


@pytest.mark.parametrize("asks", [True, False], ids=["as-specified", "without-the-line"])
def test_subgroups_are_enabled_where_the_compiler_knows_the_line(
    gpu: Wgpu, monkeypatch: pytest.MonkeyPatch, asks: bool
) -> None:
    kernel = by_subgroups(SOFTMAX)
    assert source(kernel).startswith("enable subgroups;\n")
    seen: list[str] = []

    def subgroups(_: bool) -> Any:
        return kernel

    class Compiler:
        def compiles(self, code: str) -> bool:
            return asks or "enable subgroups;" not in code

        def pipeline(self, _: str, code: str, *__: Any) -> None:
            seen.append(code)
            raise Sent

    pipelines = gpu.device.pipelines
    monkeypatch.setattr(pipelines, "_engine", Compiler())
    monkeypatch.setattr(pipelines, "_accepted", {})
    with pytest.raises(Sent):
        pipelines.get(subgroups, asks)
    assert ("enable subgroups;" in seen[-1]) is asks
    assert seen[-1].startswith(f"// subgroups({asks})\n")


def test_kernels_keep_to_the_limits_of_webgpu(gpu: Wgpu, monkeypatch: pytest.MonkeyPatch) -> None:
    device = gpu.device
    monkeypatch.setattr(device, "software", False)
    monkeypatch.setitem(device.limits, "max-compute-workgroup-storage-size", 16_384)
    for size in (8, 512, 8192):
        tile, _ = choose_tile(device, size, size, size, 1)
        assert tile.workgroup_bytes <= 16_384
    program = norm_backward_program(weight=True, centered=True)
    kernel = by_subgroups(program)
    assert len(kernel.inputs) + len(kernel.outputs) <= 8


_MEMORY = """
struct Pair { at: vec2<u32>, value: f32 }
var<workgroup> fours: array<vec4<f32>, 8>;
var<workgroup> pairs: array<Pair, 8>;
var<workgroup> one: vec2<f32>;
var<workgroup> ones: array<f32, 8>;
@group(0) @binding(0) var<storage, read_write> out0: array<vec4<f16>>;
"""


@pytest.mark.parametrize(
    ("statement", "whole"),
    [
        ("fours[i / 4][i % 4] = 1.0;", False),
        ("fours[ones[i]].y += 1.0;", False),
        ("pairs[i].at.x = 1u;", False),
        ("one.y = 1.0;", False),
        ("out0[i].w = 1.0h;", False),
        ("one[i]++;", False),
        ("fours[i] = vec4(1.0); // fours[i].x = 1.0", True),
        ("pairs[i].at = vec2(1u); pairs[i].value = 2.0;", True),
        ("ones[i] = fours[i].x; let same = fours[i][j] == fours[j].y;", True),
        ("var mine = fours[i]; mine.x = 1.0;", True),
    ],
)
def test_stores_to_a_part_of_a_shared_vector_are_found(
    component_stores: Callable[[str], list[str]], statement: str, whole: bool
) -> None:
    found = component_stores(f"{_MEMORY}fn main() {{ {statement} }}")
    assert (not found) is whole, found
