"""Products of float16 on tensor cores, with sums in float32.

A subgroup holds squares of the result of 16 by 16 and multiplies with squares of the operands.
These come from workgroup memory, as lines of the operands as they lie: rows or columns, whichever
are contiguous. The next tile is fetched into registers during the products of this one. Workgroups
go down bands of eight tiles, so that neighbours share what they read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .._kernel import Kernel
from .matmul import BASES, BIAS_PARAMS, SIZE_PARAMS
from .tile import SIGNATURE, TILE_PARAMS

SQUARE = 16
_BAND = 8
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

    @property
    def workgroup_bytes(self) -> int:
        """Workgroup memory at most: two tiles of lines along the inner dimension, and results."""
        lines = (self.rows + self.columns) * (self.depth // 4 + _FREE)
        return 8 * lines + 4 * self.subgroups * SQUARE * self.own_columns


@dataclass(frozen=True, slots=True)
class Cooperative:
    """A product of float16.

    ``a_deep``, ``b_deep``: neighbours along the inner dimension lie together in memory, else those
    along the rows of a or the columns of b. ``ragged``: the inner length is no multiple of the
    tile's. ``bias``: a vector over the columns is added.
    """

    tile: CooperativeTile
    a_deep: bool
    b_deep: bool
    ragged: bool
    bias: bool


@dataclass(frozen=True, slots=True)
class _Side:
    """How one operand comes to workgroup memory, and from there to subgroups."""

    name: str
    tile: CooperativeTile
    deep: bool
    ragged: bool
    outer: int = field(init=False)

    def __post_init__(self) -> None:
        """Keep how many rows or columns a tile has."""
        outer = self.tile.rows if self.name == "a" else self.tile.columns
        object.__setattr__(self, "outer", outer)

    @property
    def _near(self) -> int:
        """Vectors of a line."""
        return (self.tile.depth if self.deep else self.outer) // 4

    @property
    def _lines(self) -> int:
        return self.outer if self.deep else self.tile.depth

    @property
    def _pitch(self) -> int:
        return self._near + _FREE

    @property
    def _slots(self) -> range:
        return range(self._lines * self._near // self.tile.threads)

    def memory(self) -> str:
        """The declaration of the workgroup memory."""
        return f"var<workgroup> tile_{self.name}: array<vec4<f16>, {self._lines * self._pitch}>;"

    def setup(self) -> list[str]:
        """Where each load starts; rows and columns past the end are the last ones."""
        name, first = self.name, "row_first" if self.name == "a" else "column_first"
        count = "p.m" if name == "a" else "p.n"
        lines = [f"  let {name}_pitch = {self._pitch}u;"]
        for slot in self._slots:
            lines.append(f"  let {name}_e{slot} = lane + {slot * self.tile.threads};")
            line, near = f"{name}_e{slot} / {self._near}", f"{name}_e{slot} % {self._near}"
            if self.deep:
                outer = f"min({first} + {line}, {count} - 1) * p.{name}_outer"
                depth = near
            else:
                outer = f"min({first} + 4 * ({near}), {count} - 4) / 4"
                depth = f"({line}) * p.{name}_depth"
            lines.append(f"  var {name}_at{slot} = {name}_base + {outer} + {depth};")
            lines.append(f"  var {name}{slot} = vec4<f16>();")
        return lines

    def load(self) -> list[str]:
        """The next tile to registers; zeros past the end of the inner dimension."""
        lines = []
        depth = self.tile.depth
        step = f"{depth // 4}" if self.deep else f"{depth} * p.{self.name}_depth"
        for slot in self._slots:
            name = f"{self.name}{slot}"
            at, element = f"{self.name}_at{slot}", f"{self.name}_e{slot}"
            buffer = "in0" if self.name == "a" else "in1"
            load = f"{name} = {buffer}[{at}];"
            if self.ragged:
                near, line = f"4 * ({element} % {self._near})", f"{element} / {self._near}"
                inside = f"t * {depth} + {near if self.deep else line} < p.k"
                load = f"{name} = vec4<f16>(); if ({inside}) {{ {load} }}"
            lines.append(f"      {load}")
            lines.append(f"      {at} += {step};")
        return lines

    def store(self) -> list[str]:
        """Registers to workgroup memory."""
        lines = []
        for slot in self._slots:
            element = f"{self.name}_e{slot}"
            place = f"({element} / {self._near}) * {self._pitch} + {element} % {self._near}"
            lines.append(f"      tile_{self.name}[{place}] = {self.name}{slot};")
        return lines

    def square(self, k: int, i: int) -> str:
        """Square `i` of this subgroup at inner index `k`; the index is a `let`, as naga asks."""
        name, own = self.name, "own_row" if self.name == "a" else "own_column"
        role = "A" if name == "a" else "B"
        outer = f"{own} + {SQUARE * i}"
        if self.deep:
            index = f"({outer}) * {self._pitch} + {k // 4}"
        else:
            index = f"{k * self._pitch} + ({outer}) / 4"
        # By rows of the square: of a those lie along the inner dimension, of b across.
        load = "coopLoadT" if self.deep == (name == "a") else "coopLoad"
        kind = f"coop_mat{SQUARE}x{SQUARE}<f16,{role}>"
        at = f"{name}_i{k}_{i}"
        value = f"{load}<{kind}>(&tile_{name}[{at}], {name}_pitch)"
        return f"      let {at} = {index}; let {name}_s{k}_{i} = {value};"


def cooperative_source(spec: Cooperative) -> Kernel:
    """The kernel: inputs a, b and the bias where there is one; parameters as of `matmul_source`."""
    tile = spec.tile
    a = _Side("a", tile, spec.a_deep, spec.ragged)
    b = _Side("b", tile, spec.b_deep, spec.ragged)
    squares = [(i, j) for i in range(tile.own_rows // SQUARE) for j in _columns(tile)]
    sums = f"coop_mat{SQUARE}x{SQUARE}<f32,C>"
    lines = [
        a.memory(),
        b.memory(),
        f"var<workgroup> results: array<f32, {tile.subgroups * SQUARE * tile.own_columns}>;",
        SIGNATURE.format(threads=tile.threads).rstrip(),
        # Groups past the end do again what the last one does: products ask that none returns.
        "  let id = i32(min(linear_group(group, groups), p.groups - 1));",
        *_place(tile),
        *BASES,
        *a.setup(),
        *b.setup(),
        *[f"  var c{i}_{j} = {sums}();" for i, j in squares],
        "  var t = 0;",
        *a.load(),
        *b.load(),
        *a.store(),
        *b.store(),
        "  workgroupBarrier();",
        "  for (t = 1; t <= p.tiles; t++) {",
        "    if (t < p.tiles) {",
        *a.load(),
        *b.load(),
        "    }",
        *_products(tile, a, b, squares),
        "    workgroupBarrier();",
        "    if (t < p.tiles) {",
        *a.store(),
        *b.store(),
        "    }",
        "    workgroupBarrier();",
        "  }",
        *_epilogue(spec),
        "}\n",
    ]
    inputs = ("vec4<f16>", "vec4<f16>", *(("f16",) if spec.bias else ()))
    params = (*TILE_PARAMS, *SIZE_PARAMS, *(BIAS_PARAMS if spec.bias else ()))
    enables = ("wgpu_cooperative_matrix",)
    return Kernel("\n".join(lines), inputs, ("vec4<f16>",), params, enables=enables)


def _columns(tile: CooperativeTile) -> range:
    return range(tile.own_columns // SQUARE)


def _place(tile: CooperativeTile) -> list[str]:
    across = tile.columns // tile.own_columns
    return [
        "  let batch = id / (p.row_tiles * p.column_tiles);",
        "  let within = id % (p.row_tiles * p.column_tiles);",
        f"  let band = within / ({_BAND} * p.column_tiles);",
        f"  let high = min({_BAND}, p.row_tiles - {_BAND} * band);",
        f"  let rest = within - band * {_BAND} * p.column_tiles;",
        f"  let row_first = ({_BAND} * band + rest % high) * {tile.rows};",
        f"  let column_first = rest / high * {tile.columns};",
        f"  let subgroup = lane / {tile.lanes};",
        f"  let own_row = subgroup / {across} * {tile.own_rows};",
        f"  let own_column = subgroup % {across} * {tile.own_columns};",
    ]


def _products(
    tile: CooperativeTile, a: _Side, b: _Side, squares: list[tuple[int, int]]
) -> list[str]:
    lines = []
    for k in range(0, tile.depth, SQUARE):
        lines += [a.square(k, i) for i in range(tile.own_rows // SQUARE)]
        lines += [b.square(k, j) for j in _columns(tile)]
        lines += [
            f"      c{i}_{j} = coopMultiplyAdd(a_s{k}_{i}, b_s{k}_{j}, c{i}_{j});"
            for i, j in squares
        ]
    return lines


def _epilogue(spec: Cooperative) -> list[str]:
    """Squares to workgroup memory, a row of them at a time, and from there to the result."""
    tile = spec.tile
    wide = tile.own_columns
    lines = [
        f"  let mine = subgroup * {SQUARE * wide};",
        f"  let results_pitch = {wide}u;",
        f"  let own_lane = lane % {tile.lanes};",
        "  let out_base = batch * p.m * p.n;",
    ]
    for i in range(tile.own_rows // SQUARE):
        for j in _columns(tile):
            at = f"at{i}_{j}"
            lines.append(f"  let {at} = mine + {SQUARE * j};")
            lines.append(f"  coopStoreT(c{i}_{j}, &results[{at}], results_pitch);")
        lines.append("  workgroupBarrier();")
        lines += [
            f"  for (var e = own_lane; e < {SQUARE * wide // 4}; e += {tile.lanes}) {{",
            f"    let row = row_first + own_row + {SQUARE * i} + e / {wide // 4};",
            f"    let column = column_first + own_column + 4 * (e % {wide // 4});",
            "    let first = mine + 4 * e;",
            "    var value = vec4<f32>(results[first], results[first + 1], results[first + 2],"
            " results[first + 3]);",
            "    if (row < p.m && column < p.n) {",
        ]
        if spec.bias:
            near = [f"f32(in2[p.bias_offset + (column + {q}) * p.bias_stride])" for q in range(4)]
            lines.append(f"      value += vec4<f32>({', '.join(near)});")
        lines += [
            "      out0[(out_base + row * p.n + column) / 4] = vec4<f16>(value);",
            "    }",
            "  }",
            "  workgroupBarrier();",
        ]
    return lines
