"""Kernels of convolutions as products of matrices, whose elements are gathered as they are loaded.

Forward and for the input: weights times windows of the image, a column of b per position of the
result. For the weight: cotangents times windows, an inner index per position. A table in a buffer
says where an element of a window lies relative to the window's start, so that one kernel serves
all sizes, strides and dilations: a row holds the distance in elements, then down and right in
pixels. Outside the image is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._kernel import Kernel
from .matmul import BIAS_PARAMS, MatrixLoader, PlacedLoader, Reading, dense_epilogue
from .tile import SIGNATURE, TILE_PARAMS, Placement, Tile, thread_column, thread_row, tile_source

_LANES = "xyzw"


@dataclass(frozen=True, slots=True)
class Conv:
    """A tiled convolution.

    Channels of the result are rows, its positions over the batch are columns. ``dense``: positions
    of a channel lie together in the result, in fours when ``vector``. ``bias``: one value per
    channel. ``partial``: f32 results per split.
    """

    tile: Tile
    stored: str
    ragged: bool
    dense: bool
    vector: bool
    bias: bool
    partial: bool


@dataclass(frozen=True, slots=True)
class ConvPlain:
    """A convolution without workgroup memory: a thread computes `rows` channels at one position.

    ``padded``: zeros outside of the image take part, so that an infinite weight gives nan there;
    in a cotangent of the input they stand for nothing.
    """

    stored: str
    rows: int
    bias: bool
    padded: bool


@dataclass(frozen=True, slots=True)
class WeightGrad:
    """A tiled cotangent of the weight, whose results are stored in fours when ``vector``."""

    tile: Tile
    stored: str
    vector: bool
    partial: bool


@dataclass(frozen=True, slots=True)
class WeightPlain:
    """A cotangent of the weight: `rows` by 4 values per workgroup, whose threads share a sum."""

    stored: str
    rows: int


def _integers(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, "i32") for name in names)


_SIZES = _integers("m", "n", "k")
_WEIGHTS = _integers("a_offset", "a_batch", "a_outer", "a_depth")
_IMAGE = _integers("b_offset", "b_image", "b_group", "b_row", "b_column")
_GRID = _integers(
    *("positions", "width", "step_y", "start_y", "step_x", "start_x", "in_height", "in_width")
)
_RESULT = _integers(
    *("out_offset", "out_image", "out_group", "out_channel", "out_row", "out_column", "out_split")
)
CONV_PARAMS = (*TILE_PARAMS, *_SIZES, *_WEIGHTS, *_IMAGE, *_GRID, *_RESULT)
_COTANGENT = _integers("a_offset", "a_image", "a_group", "a_outer", "image_tiles")
WEIGHT_PARAMS = (*TILE_PARAMS, *_SIZES, *_COTANGENT, *_IMAGE, *_GRID)

INSIDE = "u32({y} + {e}.y) < u32(p.in_height) && u32({x} + {e}.z) < u32(p.in_width)"


def window(position: str, prefix: str, image: str) -> list[str]:
    """Where the window of a position starts.

    {prefix}_y, {prefix}_x and its address {prefix}_base.
    """
    return [
        f"let {prefix}_y = {position} / p.width * p.step_y + p.start_y;",
        f"let {prefix}_x = {position} % p.width * p.step_x + p.start_x;",
        f"let {prefix}_base = p.b_offset + {image} * p.b_image + batch * p.b_group"
        f" + {prefix}_y * p.b_row + {prefix}_x * p.b_column;",
    ]


class _Windows(PlacedLoader):
    """Operand b of a convolution.

    Column n is a window, the inner index goes through the table in2.
    """

    def __init__(self, tile: Tile, stored: str) -> None:
        self.place = Placement("b", tile.columns, tile.depth, tile.threads, False, False, stored)
        self.depth = tile.depth
        self.stored = stored

    def setup(self) -> list[str]:
        lines = self.place.declare()
        for q in range(4):
            n = f"b{q}_n"
            lines.append(f"  let {n} = min(column_first + {self.place.outer_at(q)}, p.n - 1);")
            own = window(f"({n} % p.positions)", f"b{q}", f"{n} / p.positions")
            lines += [f"  {line}" for line in own]
        return lines

    def load(self) -> list[str]:
        lines = []
        for slot in range(self.place.slots):
            e, q = f"e{slot // 4}", slot % 4
            inside = INSIDE.format(y=f"b{q}_y", x=f"b{q}_x", e=e)
            if not q:
                at = f"t * {self.depth} + {self.place.depth_at(slot)}"
                lines.append(f"      let {e} = in2[{at}];")
            lines += [
                f"      b{slot} = {self.stored}();",
                f"      if ({inside}) {{ b{slot} = in1[b{q}_base + {e}.x]; }}",
            ]
        return lines


class _Cotangents(PlacedLoader):
    """Operand a of a weight's cotangent: row m is a channel, the inner index a position.

    Images are padded to tiles.
    """

    def __init__(self, tile: Tile, stored: str) -> None:
        self.place = Placement("a", tile.rows, tile.depth, tile.threads, True, False, stored)
        self.depth = tile.depth

    def setup(self) -> list[str]:
        lines = [*self.place.declare(), "  let a_base = p.a_offset + batch * p.a_group;"]
        for slot in range(self.place.slots):
            row = f"min(row_first + {self.place.outer_at(slot)}, p.m - 1)"
            lines.append(f"  let a_row{slot} = a_base + {row} * p.a_outer;")
        return lines

    def load(self) -> list[str]:
        place = self.place
        lines = [
            "      let image = t / p.image_tiles;",
            f"      let first = t % p.image_tiles * {self.depth};",
            f"      let a_position = first + {place.depth_at(0)};",
            "      let a_at = image * p.a_image + a_position;",
        ]
        for slot in range(place.slots):
            load = f"a{slot} = in0[a_row{slot} + a_at];"
            lines.append(f"      a{slot} = {place.stored}();")
            lines.append(f"      if (a_position < p.positions) {{ {load} }}")
        return lines


class _Patches(PlacedLoader):
    """Operand b of a weight's cotangent.

    Column n is a row of the table, the inner index a position.
    """

    def __init__(self, tile: Tile, stored: str) -> None:
        self.place = Placement("b", tile.columns, tile.depth, tile.threads, True, False, stored)
        self.stored = stored

    def setup(self) -> list[str]:
        lines = self.place.declare()
        for slot in range(self.place.slots):
            row = f"min(column_first + {self.place.outer_at(slot)}, p.n - 1)"
            lines.append(f"  let e{slot} = in2[{row}];")
        return lines

    def load(self) -> list[str]:
        lines = ["      let b_position = first + b_low;"]
        lines += [f"      {line}" for line in window("b_position", "b", "image")]
        lines.append("      let b_in = b_position < p.positions;")
        for slot in range(self.place.slots):
            inside = INSIDE.format(y="b_y", x="b_x", e=f"e{slot}")
            lines.append(f"      b{slot} = {self.stored}();")
            load = f"b{slot} = in1[b_base + e{slot}.x];"
            lines.append(f"      if (b_in && {inside}) {{ {load} }}")
        return lines


def conv_source(spec: Conv) -> Kernel:
    """The kernel: inputs weights, image, table, bias.

    Parameters `CONV_PARAMS`, with a bias `BIAS_PARAMS`.
    """
    a = MatrixLoader("a", spec.tile, Reading(True, False), spec.stored, spec.ragged)
    prologue = ["  let a_base = p.a_offset + batch * p.a_batch;"]
    text = tile_source(spec.tile, a, _Windows(spec.tile, spec.stored), prologue, _epilogue(spec))
    inputs = (spec.stored, spec.stored, "vec4<i32>", *((spec.stored,) if spec.bias else ()))
    target = "f32" if spec.partial else spec.stored
    params = (*CONV_PARAMS, *(BIAS_PARAMS if spec.bias else ()))
    return Kernel(text, inputs, (f"vec4<{target}>" if spec.vector else target,), params)


def place_of(n: str, dense: bool) -> str:
    """The address of position `n` of channel 0, without the group's part."""
    image = f"{n} / p.positions * p.out_image"
    position = f"({n}) % p.positions"
    if dense:
        return f"{image} + {position}"
    return f"{image} + {position} / p.width * p.out_row + {position} % p.width * p.out_column"


def _epilogue(spec: Conv) -> list[str]:
    tile, target = spec.tile, "f32" if spec.partial else spec.stored
    lines = ["  let out_base = p.out_offset + split * p.out_split + batch * p.out_group;"]
    columns = range(tile.thread_columns // 4)
    lanes = range(1 if spec.vector else 4)
    for j in columns:
        for lane in lanes:
            n = f"n{j}_{lane}"
            lines.append(f"  let {n} = {thread_column(tile, j)} + {lane};")
            lines.append(f"  let at{j}_{lane} = {place_of(n, spec.dense)};")
    for i in range(tile.thread_rows):
        lines.append(f"  let m{i} = {thread_row(tile, i)};")
        lines.append(f"  if (m{i} < p.m) {{")
        lines.append(f"    let row = out_base + m{i} * p.out_channel;")
        if spec.bias:
            lines.append(f"    let bias = f32(in3[{_bias(f'm{i}')}]);")
        for j in columns:
            value = f"c{i}_{j} + bias" if spec.bias else f"c{i}_{j}"
            lines.append(f"    let v{j} = {value};")
            for lane in lanes:
                at = f"row + at{j}_{lane}"
                store = f"out0[{at}] = {target}(v{j}.{_LANES[lane]});"
                if spec.vector:
                    store = f"out0[({at}) / 4] = vec4<{target}>(v{j});"
                lines.append(f"    if (n{j}_{lane} < p.n) {{ {store} }}")
        lines.append("  }")
    return lines


def _bias(m: str) -> str:
    return f"p.bias_offset + (batch * p.m + {m}) * p.bias_stride"


def conv_plain(spec: ConvPlain) -> Kernel:
    """The kernel: inputs and parameters as for `conv_source`.

    `column_tiles` counts 64 positions, `tiles` is unused.
    """
    wide = "f32"
    rows = range(spec.rows)
    inside = INSIDE.format(y="b_y", x="b_x", e="e")
    load = f"x = {wide}(in1[b_base + e.x]);"
    step = [
        "      var x = 0.0;" if spec.padded else f"    if ({inside}) {{",
        f"      if ({inside}) {{ {load} }}" if spec.padded else f"      let {load}",
        *[f"      c{i} += {wide}(in0[a{i} + k * p.a_depth]) * x;" for i in rows],
    ]
    lines = [
        SIGNATURE.format(threads=64).rstrip(),
        "  let id = linear_group(group, groups);",
        "  if (id >= p.groups) { return; }",
        "  let n = (i32(id) % p.column_tiles) * 64 + lane;",
        "  let above = i32(id) / p.column_tiles;",
        f"  let m = (above % p.row_tiles) * {spec.rows};",
        "  let batch = above / p.row_tiles;",
        "  if (n >= p.n) { return; }",
        "  let b_position = n % p.positions;",
        *[f"  {line}" for line in window("b_position", "b", "n / p.positions")],
        *[
            f"  var a{i} = p.a_offset + batch * p.a_batch + min(m + {i}, p.m - 1) * p.a_outer;"
            for i in rows
        ],
        *[f"  var c{i} = 0.0;" for i in rows],
        "  for (var k = 0; k < p.k; k++) {",
        "    let e = in2[k];",
        *step,
        *([] if spec.padded else ["    }"]),
        "  }",
        f"  let at = p.out_offset + batch * p.out_group + {place_of('n', False)};",
    ]
    for i in rows:
        value = f"c{i} + f32(in3[{_bias(f'(m + {i})')}])" if spec.bias else f"c{i}"
        store = f"out0[at + (m + {i}) * p.out_channel] = {spec.stored}({value});"
        lines.append(f"  if (m + {i} < p.m) {{ {store} }}")
    lines.append("}\n")
    inputs = (spec.stored, spec.stored, "vec4<i32>", *((spec.stored,) if spec.bias else ()))
    params = (*CONV_PARAMS, *(BIAS_PARAMS if spec.bias else ()))
    return Kernel("\n".join(lines), inputs, (spec.stored,), params)


def weight_source(spec: WeightGrad) -> Kernel:
    """The kernel: inputs cotangent, image, table; parameters `WEIGHT_PARAMS`."""
    a = _Cotangents(spec.tile, spec.stored)
    target = "f32" if spec.partial else spec.stored
    epilogue = dense_epilogue(spec.tile, target, spec.vector, bias=False)
    text = tile_source(spec.tile, a, _Patches(spec.tile, spec.stored), [], epilogue)
    out = f"vec4<{target}>" if spec.vector else target
    return Kernel(text, (spec.stored, spec.stored, "vec4<i32>"), (out,), WEIGHT_PARAMS)


def weight_plain(spec: WeightPlain) -> Kernel:
    """The kernel: inputs and parameters as for `weight_source`, the cotangent read by elements.

    K counts positions.
    """
    rows, columns = range(spec.rows), range(4)
    count = spec.rows * 4
    step = [
        "    let image = k / p.positions;",
        "    let position = k % p.positions;",
        *[f"    {line}" for line in window("position", "b", "image")],
        *[f"    let x{i} = f32(in0[a{i} + image * p.a_image + position]);" for i in rows],
    ]
    for j in columns:
        inside = INSIDE.format(y="b_y", x="b_x", e=f"e{j}")
        step.append(f"    var y{j} = 0.0;")
        step.append(f"    if ({inside}) {{ y{j} = f32(in1[b_base + e{j}.x]); }}")
        step += [f"    c{i}_{j} += x{i} * y{j};" for i in rows]
    row = "p.a_offset + batch * p.a_group + min(m + {}, p.m - 1) * p.a_outer"
    lines = [
        f"var<workgroup> parts: array<f32, {count * 64}>;",
        SIGNATURE.format(threads=64).rstrip(),
        "  let id = linear_group(group, groups);",
        "  if (id >= p.groups) { return; }",
        "  let n = (i32(id) % p.column_tiles) * 4;",
        "  let above = i32(id) / p.column_tiles;",
        f"  let m = (above % p.row_tiles) * {spec.rows};",
        "  let batch = above / p.row_tiles;",
        *[f"  let a{i} = {row.format(i)};" for i in rows],
        *[f"  let e{j} = in2[min(n + {j}, p.n - 1)];" for j in columns],
        *[f"  var c{i}_{j} = 0.0;" for i in rows for j in columns],
        "  for (var k = lane; k < p.k; k += 64) {",
        *step,
        "  }",
        *[f"  parts[{(i * 4 + j) * 64} + lane] = c{i}_{j};" for i in rows for j in columns],
        "  workgroupBarrier();",
        f"  if (lane < {count} && m + lane / 4 < p.m && n + lane % 4 < p.n) {{",
        "    var total = 0.0;",
        "    for (var i = 0; i < 64; i++) { total += parts[lane * 64 + (i + lane) % 64]; }",
        f"    out0[((batch * p.m) + m + lane / 4) * p.n + n + lane % 4] = {spec.stored}(total);",
        "  }",
        "}\n",
    ]
    inputs = (spec.stored, spec.stored, "vec4<i32>")
    return Kernel("\n".join(lines), inputs, (spec.stored,), WEIGHT_PARAMS)
