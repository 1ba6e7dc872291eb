"""Products on tensor cores, of float16 or of float32 by halves, with sums in float32.

A subgroup holds squares of the result of 16 by 16 and multiplies with squares of the operands.
These come from workgroup memory, as lines of the operands as they lie: rows or columns, whichever
are contiguous. The next tile is fetched into registers during the products of this one. Workgroups
go down bands of eight tiles, so that neighbours share what they read.

By halves: a number x, scaled by its row or column, is high + low / 2048 in float16, to 22 bits.
The product is high high + (high low + low high) / 2048. Tensor cores cut sums off where others
round them, so each tile of the inner dimension is summed for itself and then added. Ootomo and
Yokota, "Recovering single precision accuracy from Tensor Cores", 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from .._kernel import Kernel
from .matmul import BASES, BIAS_PARAMS, SIZE_PARAMS
from .tile import SIGNATURE, TILE_PARAMS

SQUARE = 16
_SUMS = f"coop_mat{SQUARE}x{SQUARE}<f32,C>"
_BAND = 8
ENABLES = ("wgpu_cooperative_matrix",)
LOW = 2048  # what the low half is multiplied by, so that it is no denormal
_HALF_UNIT, _KEPT = "vec4(0x1000u)", "vec4(0xffffe000u)"  # of float32 as float16 has it
_WAITING = 32
_FREE = 2  # vectors of a line that stay empty, against bank conflicts


@dataclass(frozen=True, slots=True)
class CooperativeTile:
    """What a workgroup takes at once; what a subgroup of it has of the result."""

    rows: int
    columns: int
    depth: int
    own_rows: int
    own_columns: int
    lanes: int

    @property
    def subgroups(self) -> int:
        """Subgroups of a workgroup."""
        return self.rows * self.columns // (self.own_rows * self.own_columns)

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return self.lanes * self.subgroups

    def cut(self, rows: int, columns: int) -> tuple[int, int]:
        """How many of it cover so many rows and columns."""
        return -(-rows // self.rows), -(-columns // self.columns)

    def workgroup_bytes(self, *, partial: bool, halves: bool = False) -> int:
        """Workgroup memory at most: lines along the inner dimension, and results that wait."""
        lines = (self.rows + self.columns) * (self.depth // 4 + _FREE)
        return 8 * lines * (1 + halves) + 4 * self.results * (not partial)

    @property
    def results(self) -> int:
        """Elements of the result that a workgroup has in its memory at once."""
        return self.subgroups * SQUARE * self.waiting

    @property
    def waiting(self) -> int:
        """Columns of a subgroup that wait there at once."""
        return min(self.own_columns, _WAITING)


@dataclass(frozen=True, slots=True)
class Cooperative:
    """A product of float16, or with ``halves`` of float32, which two more inputs scale by lines.

    ``a_deep``, ``b_deep``: neighbours along the inner dimension lie together in memory, else those
    along the rows of a or the columns of b. ``ragged``: the inner length is no multiple of the
    tile's. ``whole``: tiles cover no more than the result. ``bias``: a vector over the
    columns is added. ``partial``: float32 results per split, of whole tiles, for a second kernel.
    """

    tile: CooperativeTile
    a_deep: bool
    b_deep: bool
    ragged: bool
    whole: bool
    bias: bool
    partial: bool = False
    halves: bool = False


@dataclass(frozen=True, slots=True)
class Side:
    """How one operand comes to workgroup memory, and from there to subgroups."""

    name: str
    tile: CooperativeTile
    deep: bool
    ragged: bool
    whole: bool
    halves: bool

    @property
    def outer(self) -> int:
        """Rows or columns of a tile."""
        return self.tile.rows if self.name == "a" else self.tile.columns

    @property
    def near(self) -> int:
        """Vectors of a line."""
        return (self.tile.depth if self.deep else self.outer) // 4

    @property
    def _lines(self) -> int:
        return self.outer if self.deep else self.tile.depth

    @property
    def pitch(self) -> int:
        """Vectors from one line to the next in workgroup memory."""
        return self.near + _FREE

    @property
    def slots(self) -> range:
        """The loads of a thread."""
        return range(self._lines * self.near // self.tile.threads)

    def memory(self) -> str:
        """The declaration of the workgroup memory."""
        size = self._lines * self.pitch
        tiles = (f"tile_{self.name}{half}" for half in ("", "_low")[: 1 + self.halves])
        return "\n".join(f"var<workgroup> {tile}: array<vec4<f16>, {size}>;" for tile in tiles)

    @property
    def kind(self) -> str:
        """What it is read by."""
        return "vec4<f32>" if self.halves else "vec4<f16>"

    @property
    def _step(self) -> str:
        depth = self.tile.depth
        return str(depth // 4) if self.deep else f"{depth} * {self.name}_stride"

    @property
    def apart(self) -> int:
        """Lines between two loads of a thread."""
        return self.tile.threads // self.near

    def places(self) -> list[str]:
        """Which line of the tile a thread has, which vector of it, and where that goes."""
        name = self.name
        return [
            f"  let {name}_pitch = {self.pitch}u;",
            f"  let {name}_line = lane / {self.near};",
            f"  let {name}_near = lane % {self.near};",
            f"  let {name}_to = {name}_line * {self.pitch} + {name}_near;",
        ]

    def setup(self) -> list[str]:
        """Where each load starts; rows and columns past the end are the last ones."""
        name, first = self.name, "row_first" if self.name == "a" else "column_first"
        count = "p.m" if name == "a" else "p.n"
        lines = [
            *self.places(),
            f"  let {name}_stride = p.{name}_{'outer' if self.deep else 'depth'};",
            f"  let {name}_step = {self._step};",
        ]
        if not self.deep:
            outer = f"min({first} + 4 * {name}_near, {count} - 4) / 4"
            lines.append(f"  let {name}_at = {name}_base + {outer} + {name}_line * {name}_stride;")
        elif self.whole:
            outer = f"({first} + {name}_line) * {name}_stride"
            lines.append(f"  let {name}_at = {name}_base + {outer} + {name}_near;")
        else:
            lines.append(f"  let {name}_at = {name}_base + {name}_near;")
            for slot in self.slots:
                outer = f"min({first} + {name}_line + {slot * self.apart}, {count} - 1)"
                lines.append(f"  let {name}_row{slot} = {outer} * {name}_stride;")
        lines += [f"  var {name}{slot} = {self.kind}();" for slot in self.slots]
        return lines + self._scales(first, count) * self.halves

    def _scales(self, first: str, count: str) -> list[str]:
        """What each load is multiplied by."""
        name, scales = self.name, "in2" if self.name == "a" else "in3"
        if not self.deep:
            near = f"batch * {count} + min({first} + 4 * {name}_near, {count} - 4)"
            four = ", ".join(f"{scales}[{name}_four + {q}]" for q in range(4))
            return [f"  let {name}_four = {near};", f"  let {name}_scale = vec4<f32>({four});"]
        lines = []
        for slot in self.slots:
            line = f"min({first} + {name}_line + {slot * self.apart}, {count} - 1)"
            lines.append(f"  let {name}_scale{slot} = {scales}[batch * {count} + {line}];")
        return lines

    def load(self) -> list[str]:
        """Tile `t` to registers; zeros past the end of the inner dimension.

        Addresses are made anew from `t`: counters in addition would not fit the registers.
        """
        name, depth = self.name, self.tile.depth
        buffer = "in0" if name == "a" else "in1"
        lines = []
        for slot in self.slots:
            away = f"{slot * self.apart} * {name}_stride"
            if self.deep and not self.whole:
                away = f"{name}_row{slot}"
            load = f"{name}{slot} = {buffer}[u32({name}_at + t * {name}_step + {away})];"
            if self.ragged:
                line = f"{name}_line + {slot * self.apart}"
                inside = f"t * {depth} + {f'4 * {name}_near' if self.deep else line} < p.k"
                load = f"{name}{slot} = {self.kind}(); if ({inside}) {{ {load} }}"
            lines.append(f"      {load}")
        return lines

    def store(self) -> list[str]:
        """Registers to workgroup memory."""
        name, lines = self.name, []
        for slot in self.slots:
            to, x = f"[{name}_to + {slot * self.apart * self.pitch}]", f"{name}{slot}"
            if not self.halves:
                lines.append(f"      tile_{name}{to} = {x};")
                continue
            scale, high = f"{name}_scale{slot if self.deep else ''}", f"{name}_high{slot}"
            rest = f"{name}_x{slot} - {high}"
            lines += [
                f"      let {name}_x{slot} = {x} * {scale};",
                # To 11 bits, on the bits: compilers drop a conversion to float16 and back.
                f"      let {name}_bits{slot} = bitcast<vec4<u32>>({name}_x{slot}) + {_HALF_UNIT};",
                f"      let {high} = bitcast<vec4<f32>>({name}_bits{slot} & {_KEPT});",
                f"      tile_{name}{to} = vec4<f16>({high});",
                f"      tile_{name}_low{to} = vec4<f16>(({rest}) * {LOW}.0);",
            ]
        return lines

    def square(self, k: int, i: int, half: str = "") -> str:
        """Square `i` of this subgroup at inner index `k`; the index is a `let`, as naga asks."""
        name, own = self.name, "own_row" if self.name == "a" else "own_column"
        role = "A" if name == "a" else "B"
        outer = f"{own} + {SQUARE * i}"
        if self.deep:
            index = f"({outer}) * {self.pitch} + {k // 4}"
        else:
            index = f"{k * self.pitch} + ({outer}) / 4"
        # By rows of the square: of a those lie along the inner dimension, of b across.
        load = "coopLoadT" if self.deep == (name == "a") else "coopLoad"
        kind = f"coop_mat{SQUARE}x{SQUARE}<f16,{role}>"
        at = f"{name}_i{half}{k}_{i}"
        value = f"{load}<{kind}>(&tile_{name}{half}[{at}], {name}_pitch)"
        return f"      let {at} = {index}; let {name}_s{half}{k}_{i} = {value};"


def cooperative_source(spec: Cooperative) -> Kernel:
    """The kernel: inputs a, b and the bias where there is one; parameters as of `matmul_source`."""
    tile = spec.tile
    a = Side("a", tile, spec.a_deep, spec.ragged, spec.whole, spec.halves)
    b = Side("b", tile, spec.b_deep, spec.ragged, spec.whole, spec.halves)
    products = _products_of_halves if spec.halves else _products
    epilogue = _squares_out(tile) if spec.partial else _epilogue(spec)
    text = squares_source(tile, a, b, BASES, epilogue, products(tile, a, b, squares_of(tile)))
    if not spec.partial:
        text = results_memory(tile) + text
    inputs = (a.kind, b.kind, *(("f16",) if spec.bias else ()), *(("f32", "f32") * spec.halves))
    params = (*TILE_PARAMS, *SIZE_PARAMS, *(BIAS_PARAMS if spec.bias else ()))
    out = "f32" if spec.partial else "vec4<f16>"
    return Kernel(text, inputs, (out,), params, enables=ENABLES)


def squares_of(tile: CooperativeTile) -> list[tuple[int, int]]:
    """The squares of the result that a subgroup holds."""
    return [(i, j) for i in range(tile.own_rows // SQUARE) for j in _columns(tile)]


def results_memory(tile: CooperativeTile) -> str:
    """Where squares wait for `rows_out`."""
    return f"var<workgroup> results: array<f32, {tile.results}>;\n"


def squares_source(
    tile: CooperativeTile,
    a: Side,
    b: Side,
    prologue: list[str],
    epilogue: list[str],
    products: list[str] | None = None,
) -> str:
    """The text of a kernel: two operands, and what becomes of the sums `c{i}_{j}`."""
    squares = squares_of(tile)
    lines = [
        a.memory(),
        b.memory(),
        SIGNATURE.format(threads=tile.threads).rstrip(),
        # Groups past the end do again what the last one does: products ask that none returns.
        "  let id = i32(min(linear_group(group, groups), p.groups - 1));",
        *_place(tile),
        *prologue,
        *a.setup(),
        *b.setup(),
        *[f"  var c{i}_{j} = {_SUMS}();" for i, j in squares],
        "  var t = tile_first;",
        *a.load(),
        *b.load(),
        *a.store(),
        *b.store(),
        "  workgroupBarrier();",
        # The last tile is fetched twice: branches around fetches take a fifth of the rate.
        "  for (var next = tile_first + 1; next <= tile_last; next++) {",
        "    t = min(next, tile_last - 1);",
        *a.load(),
        *b.load(),
        *(products or _products(tile, a, b, squares)),
        "    workgroupBarrier();",
        *a.store(),
        *b.store(),
        "    workgroupBarrier();",
        "  }",
        *epilogue,
        "}\n",
    ]
    return "\n".join(lines)


def _columns(tile: CooperativeTile) -> range:
    return range(tile.own_columns // SQUARE)


def _place(tile: CooperativeTile) -> list[str]:
    across = tile.columns // tile.own_columns
    return [
        "  let above = id / (p.row_tiles * p.column_tiles);",
        "  let within = id % (p.row_tiles * p.column_tiles);",
        "  let batch = above % p.batches;",
        "  let split = above / p.batches;",
        "  let tile_first = split * p.tiles_per_split;",
        "  let tile_last = min(tile_first + p.tiles_per_split, p.tiles);",
        f"  let band = within / ({_BAND} * p.column_tiles);",
        f"  let high = min({_BAND}, p.row_tiles - {_BAND} * band);",
        f"  let rest = within - band * {_BAND} * p.column_tiles;",
        f"  let row_first = ({_BAND} * band + rest % high) * {tile.rows};",
        f"  let column_first = rest / high * {tile.columns};",
        f"  let subgroup = lane / {tile.lanes};",
        f"  let own_row = subgroup / {across} * {tile.own_rows};",
        f"  let own_column = subgroup % {across} * {tile.own_columns};",
    ]


def _products(tile: CooperativeTile, a: Side, b: Side, squares: list[tuple[int, int]]) -> list[str]:
    lines = []
    for k in range(0, tile.depth, SQUARE):
        lines += [a.square(k, i) for i in range(tile.own_rows // SQUARE)]
        lines += [b.square(k, j) for j in _columns(tile)]
        lines += [
            f"      c{i}_{j} = coopMultiplyAdd(a_s{k}_{i}, b_s{k}_{j}, c{i}_{j});"
            for i, j in squares
        ]
    return lines


def _products_of_halves(
    tile: CooperativeTile, a: Side, b: Side, squares: list[tuple[int, int]]
) -> list[str]:
    """Mixed products of the tile first, to be scaled, then those of the high halves."""
    lines = [f"      var t{i}_{j} = {_SUMS}();" for i, j in squares]

    def add(k: int, a_half: str, b_half: str) -> list[str]:
        return [
            f"      t{i}_{j} = coopMultiplyAdd(a_s{a_half}{k}_{i}, b_s{b_half}{k}_{j}, t{i}_{j});"
            for i, j in squares
        ]

    depths = range(0, tile.depth, SQUARE)
    for k in depths:
        for half in ("", "_low"):
            lines += [a.square(k, i, half) for i in range(tile.own_rows // SQUARE)]
            lines += [b.square(k, j, half) for j in _columns(tile)]
        lines += add(k, "_low", "") + add(k, "", "_low")
    lines += [f"      t{i}_{j} = t{i}_{j} * {1 / LOW};" for i, j in squares]
    for k in depths:
        lines += add(k, "", "")
    return lines + [f"      c{i}_{j} = c{i}_{j} + t{i}_{j};" for i, j in squares]


def _squares_out(tile: CooperativeTile) -> list[str]:
    """Squares to whole tiles, the part of each split after the one before."""
    lines = [
        f"  let out_columns = p.column_tiles * {tile.columns};",
        f"  let out_row = (split * p.batches + batch) * p.row_tiles * {tile.rows} + row_first;",
        "  let out_first = (out_row + own_row) * out_columns + column_first + own_column;",
        "  let out_pitch = u32(out_columns);",
    ]
    for i, j in squares_of(tile):
        lines.append(f"  let at{i}_{j} = out_first + {SQUARE * i} * out_columns + {SQUARE * j};")
        lines.append(f"  coopStoreT(c{i}_{j}, &out0[at{i}_{j}], out_pitch);")
    return lines


def _epilogue(spec: Cooperative) -> list[str]:
    store = []
    if spec.bias:
        near = [f"f32(in2[p.bias_offset + (column + {q}) * p.bias_stride])" for q in range(4)]
        store.append(f"value += vec4<f32>({', '.join(near)});")
    store.append("out0[(out_base + row * p.n + column) / 4] = vec4<f16>(value);")
    return ["  let out_base = batch * p.m * p.n;", *rows_out(spec.tile, store)]


def rows_out(tile: CooperativeTile, store: list[str]) -> list[str]:
    """Squares to workgroup memory, some of a row at a time, and from there to the result.

    `store` has `row`, `column`, and the `value` of four columns from there.
    """
    wide = tile.waiting
    lines = [
        f"  let mine = subgroup * {SQUARE * wide};",
        f"  let results_pitch = {wide}u;",
        f"  let own_lane = lane % {tile.lanes};",
        *[f"  let waits{j} = mine + {SQUARE * j};" for j in range(wide // SQUARE)],
    ]
    for i, first in product(range(tile.own_rows // SQUARE), range(0, tile.own_columns, wide)):
        for j in range(wide // SQUARE):
            square = f"c{i}_{first // SQUARE + j}"
            lines.append(f"  coopStoreT({square}, &results[waits{j}], results_pitch);")
        lines += [
            "  workgroupBarrier();",
            f"  for (var e = own_lane; e < {SQUARE * wide // 4}; e += {tile.lanes}) {{",
            f"    let row = row_first + own_row + {SQUARE * i} + e / {wide // 4};",
            f"    let column = column_first + own_column + {first} + 4 * (e % {wide // 4});",
            "    let at = mine + 4 * e;",
            "    var value = vec4<f32>(results[at], results[at + 1], results[at + 2],"
            " results[at + 3]);",
            "    if (row < p.m && column < p.n) {",
            *[f"      {line}" for line in store],
            "    }",
            "  }",
            "  workgroupBarrier();",
        ]
    return lines
