"""Convolutions of float16 on tensor cores, and their cotangents, with sums in float32.

The products of `cooperative`, whose operand b is found in images, as `conv` tells: four positions
at a time, each of which may lie outside of the image, where there is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._kernel import Kernel
from .conv import CONV_PARAMS, INSIDE, WEIGHT_PARAMS, place_of, window
from .cooperative import (
    ENABLES,
    CooperativeTile,
    Side,
    results_memory,
    rows_out,
    squares_source,
)
from .matmul import BIAS_PARAMS

_LANES = "xyzw"


@dataclass(frozen=True, slots=True)
class CooperativeConv:
    """A convolution: see `conv.Conv`. Weights lie along the inner dimension, in fours."""

    tile: CooperativeTile
    ragged: bool
    dense: bool
    vector: bool
    bias: bool


@dataclass(frozen=True, slots=True)
class _Windows(Side):
    """Operand b: a column is a window, the inner index goes through the table in2."""

    def setup(self) -> list[str]:
        """Where the windows of this thread start."""
        lines = [*self.places(), *(f"  var b{slot} = vec4<f16>();" for slot in self.slots)]
        for q in range(4):
            lines.append(f"  let n{q} = min(column_first + 4 * b_near + {q}, p.n - 1);")
            lines.append(f"  let position{q} = n{q} % p.positions;")
            lines += [f"  {x}" for x in window(f"position{q}", f"b{q}", f"n{q} / p.positions")]
        return lines

    def load(self) -> list[str]:
        """Four pixels for each line."""
        lines = []
        for slot in self.slots:
            row = f"t * {self.tile.depth} + b_line + {slot * self.apart}"
            lines.append(f"      {{ let e = in2[{row}]; b{slot} = vec4<f16>();")
            for q, part in enumerate(_LANES):
                inside = INSIDE.format(y=f"b{q}_y", x=f"b{q}_x", e="e")
                lines.append(f"      if ({inside}) {{ b{slot}.{part} = in1[b{q}_base + e.x]; }}")
            lines.append("      }")
        return lines


@dataclass(frozen=True, slots=True)
class _Cotangents(Side):
    """Operand a of a weight's cotangent: a row is a channel, the inner index a position.

    Images are padded to tiles.
    """

    def load(self) -> list[str]:
        """Four positions of each channel."""
        lines = [
            "      let image = t / p.image_tiles;",
            f"      let position = t % p.image_tiles * {self.tile.depth} + 4 * a_near;",
            "      let a_at = image * p.a_image + position / 4;",
        ]
        for slot in self.slots:
            load = f"a{slot} = in0[a_base + a_row{slot} + a_at];"
            lines.append(f"      a{slot} = vec4<f16>();")
            lines.append(f"      if (position < p.positions) {{ {load} }}")
        return ["      {", *lines, "      }"]


@dataclass(frozen=True, slots=True)
class _Patches(Side):
    """Operand b of a weight's cotangent: a column is a row of the table."""

    def setup(self) -> list[str]:
        """Which rows of the table this thread has."""
        lines = self.places()
        for slot in self.slots:
            row = f"min(column_first + b_line + {slot * self.apart}, p.n - 1)"
            lines += [f"  let e{slot} = in2[{row}];", f"  var b{slot} = vec4<f16>();"]
        return lines

    def load(self) -> list[str]:
        """Four positions of each of them."""
        lines = [
            "      let image = t / p.image_tiles;",
            f"      let position = t % p.image_tiles * {self.tile.depth} + 4 * b_near;",
            "      let b_in = position < p.positions;",
        ]
        for q in range(4):
            own = window(f"(position + {q})", f"b{q}", "image")
            lines += [f"      {line}" for line in own]
        for slot in self.slots:
            lines.append(f"      b{slot} = vec4<f16>();")
            for q, part in enumerate(_LANES):
                inside = INSIDE.format(y=f"b{q}_y", x=f"b{q}_x", e=f"e{slot}")
                load = f"b{slot}.{part} = in1[b{q}_base + e{slot}.x];"
                lines.append(f"      if (b_in && {inside}) {{ {load} }}")
        return ["      {", *lines, "      }"]


def cooperative_conv(spec: CooperativeConv) -> Kernel:
    """The kernel: inputs weights, image, table, bias; parameters as of `conv_source`."""
    tile = spec.tile
    a = Side("a", tile, True, spec.ragged, False, False)
    b = _Windows("b", tile, False, False, False, False)
    store = ["let line = out_base + row * p.out_channel;"]
    if spec.bias:
        bias = "p.bias_offset + (batch * p.m + row) * p.bias_stride"
        store.append(f"value += f32(in3[{bias}]);")
    if spec.vector:
        store.append(f"out0[(line + {place_of('column', True)}) / 4] = vec4<f16>(value);")
    else:
        for q, part in enumerate(_LANES):
            at = f"line + {place_of(f'(column + {q})', spec.dense)}"
            store.append(f"if (column + {q} < p.n) {{ out0[{at}] = f16(value.{part}); }}")
    prologue = [
        "  let a_base = p.a_offset + batch * p.a_batch;",
        "  let out_base = p.out_offset + batch * p.out_group;",
    ]
    text = results_memory(tile) + squares_source(tile, a, b, prologue, rows_out(tile, store))
    inputs = ("vec4<f16>", "f16", "vec4<i32>", *(("f16",) if spec.bias else ()))
    out = "vec4<f16>" if spec.vector else "f16"
    params = (*CONV_PARAMS, *(BIAS_PARAMS if spec.bias else ()))
    return Kernel(text, inputs, (out,), params, enables=ENABLES)


def cooperative_weight(tile: CooperativeTile) -> Kernel:
    """The kernel of a weight's cotangent: inputs and parameters as of `weight_source`.

    The result is float32, the part of each split after the one before.
    """
    a = _Cotangents("a", tile, True, False, False, False)
    b = _Patches("b", tile, True, False, False, False)
    store = [
        f"if (column + {q} < p.n) {{ out0[out_base + row * p.n + column + {q}] = value.{part}; }}"
        for q, part in enumerate(_LANES)
    ]
    prologue = [
        "  let a_base = p.a_offset + batch * p.a_group;",
        "  let out_base = (split * p.batches + batch) * p.m * p.n;",
    ]
    text = results_memory(tile) + squares_source(tile, a, b, prologue, rows_out(tile, store))
    return Kernel(text, ("vec4<f16>", "f16", "vec4<i32>"), ("f32",), WEIGHT_PARAMS, enables=ENABLES)
