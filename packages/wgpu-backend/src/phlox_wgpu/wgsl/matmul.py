"""Kernels of matrix products.

Loaders and epilogues for the tiles of ``tile.py``, plain loops, and the sum of a split's parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .._kernel import Kernel
from .tile import SIGNATURE, TILE_PARAMS, Placement, Tile, thread_column, thread_row, tile_source

_LANES = "xyzw"
Side = Literal["a", "b"]


@dataclass(frozen=True, slots=True)
class Reading:
    """How an operand of a tiled product is read.

    ``k_contiguous``: neighbours along the inner dimension lie together, else those along the rows
    of a or the columns of b. ``vector``: four at a time, which needs multiples of four in every
    other stride, the offset and the length.
    """

    k_contiguous: bool
    vector: bool


@dataclass(frozen=True, slots=True)
class Matmul:
    """A tiled product of matrices of one stored type (f32 or f16).

    ``ragged``: the inner length is no multiple of the tile's. ``vector``: the result is stored
    four columns at a time. ``bias``: a vector over the columns is added. ``partial``: f32 results
    per split, which `sum_parts` adds up. ``unscaled``: only tiles with a row or column that
    `line_scales` gave no scale; those of all rows and columns are the last two inputs.
    """

    tile: Tile
    stored: str
    a: Reading
    b: Reading
    ragged: bool
    vector: bool
    bias: bool
    partial: bool
    unscaled: bool = False


class PlacedLoader:
    """The part of a loader that its placement decides."""

    place: Placement

    @property
    def pitch(self) -> int:
        """Vectors from one inner index to the next in workgroup memory."""
        return self.place.pitch

    def memory(self) -> str:
        """The declaration of the workgroup memory."""
        return self.place.memory()

    def store(self) -> list[str]:
        """Registers to workgroup memory."""
        return self.place.store()


class MatrixLoader(PlacedLoader):
    """An operand with two strides.

    Parameters {name}_outer and {name}_depth, in vectors where it is read by vectors.
    """

    def __init__(self, side: Side, tile: Tile, walk: Reading, stored: str, ragged: bool) -> None:
        """Place the loads of operand `side`, bound as in0 or in1."""
        outer = tile.rows if side == "a" else tile.columns
        self.place = Placement(
            side, outer, tile.depth, tile.threads, walk.k_contiguous, walk.vector, stored
        )
        self.depth = tile.depth
        self.ragged = ragged
        self.buffer = "in0" if side == "a" else "in1"
        self.first, self.count = ("row_first", "p.m") if side == "a" else ("column_first", "p.n")

    def setup(self) -> list[str]:
        """Where each load starts.

        Rows past the end read the last one, whose results are not stored.
        """
        place, name = self.place, self.place.name
        lines = place.declare()
        four = 4 if place.vector else 1
        for slot in range(place.slots):
            outer = f"{self.first} + {place.outer_at(slot)}"
            depth = f"tile_first * {self.depth} + {place.depth_at(slot)}"
            outer = f"min({outer}, {self.count} - {four})"
            outer += " / 4" if place.vector else f" * p.{name}_outer"
            depth = f"({depth}) * p.{name}_depth"
            lines.append(f"  var {name}_at{slot} = {name}_base + {outer} + {depth};")
        return lines

    def load(self) -> list[str]:
        """Loads without a bound, but for the last tile of a ragged inner length."""
        place, name = self.place, self.place.name
        plain, bounded = [], []
        for slot in range(place.slots):
            line = f"{name}{slot} = {self.buffer}[{name}_at{slot}];"
            plain.append(f"        {line}")
            zero = f"vec4<{place.stored}>()" if place.vector else f"{place.stored}()"
            bounded.append(f"        {name}{slot} = {zero};")
            inside = f"t * {self.depth} + {place.depth_at(slot)} < p.k"
            bounded.append(f"        if ({inside}) {{ {line} }}")
        step = f"{self.depth} * p.{name}_depth"
        advance = [f"      {name}_at{slot} += {step};" for slot in range(place.slots)]
        if not self.ragged:
            return plain + advance
        full = f"      if ((t + 1) * {self.depth} <= p.k) {{"
        return [full, *plain, "      } else {", *bounded, "      }", *advance]


BASES = [
    f"  let {x}_base = p.{x}_offset + batch / p.inner * p.{x}_batch1"
    f" + batch % p.inner * p.{x}_batch0;"
    for x in "ab"
]
_OPERAND_PARAMS = tuple(
    (f"{x}_{field}", "i32")
    for x in "ab"
    for field in ("offset", "batch1", "batch0", "outer", "depth")
)
SIZE_PARAMS = (("m", "i32"), ("n", "i32"), ("k", "i32"), ("inner", "i32"), *_OPERAND_PARAMS)
BIAS_PARAMS = (("bias_offset", "i32"), ("bias_stride", "i32"))


def matmul_source(spec: Matmul) -> Kernel:
    """The kernel of a tiled product.

    Inputs: a, b and the bias where there is one. Parameters: `TILE_PARAMS`, `SIZE_PARAMS`, with a
    bias `BIAS_PARAMS`.
    """
    tile = spec.tile
    a = MatrixLoader("a", tile, spec.a, spec.stored, spec.ragged)
    b = MatrixLoader("b", tile, spec.b, spec.stored, spec.ragged)
    target = "f32" if spec.partial else spec.stored
    epilogue = dense_epilogue(tile, target, spec.vector, spec.bias)
    inputs = [f"vec4<{spec.stored}>" if walk.vector else spec.stored for walk in (spec.a, spec.b)]
    if spec.bias:
        inputs.append(spec.stored)
    prologue, memory = BASES, ""
    if spec.unscaled:
        prologue = [*_unscaled(tile, len(inputs)), *BASES]
        memory = "var<workgroup> found: atomic<u32>;\nvar<workgroup> needed: u32;\n"
        inputs += ["f32", "f32"]
    text = memory + tile_source(tile, a, b, prologue, epilogue)
    params = (*TILE_PARAMS, *SIZE_PARAMS, *(BIAS_PARAMS if spec.bias else ()))
    return Kernel(text, tuple(inputs), (f"vec4<{target}>" if spec.vector else target,), params)


def _unscaled(tile: Tile, first: int) -> list[str]:
    """End a workgroup whose rows and columns all have scales, in inputs from the `first` on."""
    lines = ["  if (lane == 0) { atomicStore(&found, 0u); }", "  workgroupBarrier();"]
    for outer, start, count, scales in (
        (tile.rows, "row_first", "p.m", f"in{first}"),
        (tile.columns, "column_first", "p.n", f"in{first + 1}"),
    ):
        scale = f"{scales}[batch * {count} + min({start} + i, {count} - 1)]"
        lines += [
            f"  for (var i = lane; i < {outer}; i += {tile.threads}) {{",
            f"    if ({scale} == 0.0) {{ atomicStore(&found, 1u); }}",
            "  }",
        ]
    return [
        *lines,
        "  workgroupBarrier();",
        "  if (lane == 0) { needed = atomicLoad(&found); }",
        "  if (workgroupUniformLoad(&needed) == 0u) { return; }",
    ]


def dense_epilogue(tile: Tile, target: str, vector: bool, bias: bool) -> list[str]:
    """Store the thread's part.

    The result is dense, the part of each split after the one before.
    """
    lines = ["  let out_base = (split * p.batches + batch) * p.m;"]
    columns = range(tile.thread_columns // 4)
    for j in columns:
        lines.append(f"  let n{j} = {thread_column(tile, j)};")
        if bias:
            at = f"p.bias_offset + min(n{j} + {{}}, p.n - 1) * p.bias_stride"
            parts = ", ".join(f"f32(in2[{at.format(lane)}])" for lane in range(4))
            lines.append(f"  let bias{j} = vec4<f32>({parts});")
    for i in range(tile.thread_rows):
        lines.append(f"  let m{i} = {thread_row(tile, i)};")
        lines.append(f"  if (m{i} < p.m) {{")
        lines.append(f"    let row = (out_base + m{i}) * p.n;")
        for j in columns:
            value = f"c{i}_{j} + bias{j}" if bias else f"c{i}_{j}"
            if vector:
                store = f"out0[(row + n{j}) / 4] = vec4<{target}>({value});"
                lines.append(f"    if (n{j} < p.n) {{ {store} }}")
                continue
            lines.append(f"    let v{j} = {value};")
            for lane, letter in enumerate(_LANES):
                store = f"out0[row + n{j} + {lane}] = {target}(v{j}.{letter});"
                lines.append(f"    if (n{j} + {lane} < p.n) {{ {store} }}")
        lines.append("  }")
    return lines


# Rows and columns per thread of the plain kernel; its workgroup is 4 threads high and 16 wide.
PLAIN_ROWS, PLAIN_COLUMNS = 4, 4


@dataclass(frozen=True, slots=True)
class Plain:
    """A product without workgroup memory.

    Integers, and software adapters, where a barrier costs more than it saves.
    """

    stored: str
    bias: bool


def plain_source(spec: Plain) -> Kernel:
    """The kernel of a plain product, any strides.

    Parameters: groups, row_tiles, column_tiles, then as `matmul_source`.
    """
    wide = "f32" if spec.stored == "f16" else spec.stored
    rows, columns = range(PLAIN_ROWS), range(PLAIN_COLUMNS)
    step = []
    step += [f"    let x{i} = {wide}(in0[a{i}]);" for i in rows]
    step += [f"    let y{j} = {wide}(in1[b{j}]);" for j in columns]
    step += [f"    c{i}_{j} += x{i} * y{j};" for i in rows for j in columns]
    step += [f"    a{i} += p.a_depth;" for i in rows] + [f"    b{j} += p.b_depth;" for j in columns]
    lines = [
        SIGNATURE.format(threads=64).rstrip(),
        "  let id = linear_group(group, groups);",
        "  if (id >= p.groups) { return; }",
        f"  let n = (i32(id) % p.column_tiles) * {16 * PLAIN_COLUMNS} + lane % 16;",
        "  let above = i32(id) / p.column_tiles;",
        f"  let m = (above % p.row_tiles) * {4 * PLAIN_ROWS} + lane / 16;",
        "  let batch = above / p.row_tiles;",
        *BASES,
        *[f"  var a{i} = a_base + min(m + {4 * i}, p.m - 1) * p.a_outer;" for i in rows],
        *[f"  var b{j} = b_base + min(n + {16 * j}, p.n - 1) * p.b_outer;" for j in columns],
        *[f"  var c{i}_{j} = {wide}();" for i in rows for j in columns],
        "  for (var k = 0; k < p.k; k++) {",
        *step,
        "  }",
    ]
    for i in rows:
        for j in columns:
            value = f"c{i}_{j}"
            if spec.bias:
                value += f" + {wide}(in2[p.bias_offset + (n + {16 * j}) * p.bias_stride])"
            place = f"out0[(batch * p.m + m + {4 * i}) * p.n + n + {16 * j}]"
            inside = f"m + {4 * i} < p.m && n + {16 * j} < p.n"
            lines.append(f"  if ({inside}) {{ {place} = {spec.stored}({value}); }}")
    lines.append("}\n")
    params = (*TILE_PARAMS[:3], *SIZE_PARAMS, *(BIAS_PARAMS if spec.bias else ()))
    inputs = (spec.stored,) * (3 if spec.bias else 2)
    return Kernel("\n".join(lines), inputs, (spec.stored,), params)


def sum_parts(stored: str, bias: bool) -> Kernel:
    """The sum over the parts of a split, in order.

    A bias has `channels` values, each over `inner` elements.
    """
    value = "total"
    if bias:
        value += " + f32(in1[p.bias_offset + (i / p.inner % p.channels) * p.bias_stride])"
    body = f"""\
{SIGNATURE.format(threads=256)}\
  let i = i32(linear_group(group, groups)) * 256 + lane;
  if (i >= p.size) {{ return; }}
  var total = in0[i];
  for (var part = 1; part < p.parts; part++) {{ total += in0[part * p.size + i]; }}
  out0[i] = {stored}({value});
}}
"""
    params = [("size", "i32"), ("parts", "i32")]
    if bias:
        params += [("inner", "i32"), ("channels", "i32"), *BIAS_PARAMS]
    return Kernel(body, ("f32", stored) if bias else ("f32",), (stored,), tuple(params))
