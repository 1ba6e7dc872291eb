"""The core of matrix products and convolutions: a tile of the result per workgroup.

The text of one kernel is put together from two loaders (how an element of either operand is
found), this core, and an epilogue. The loop over the inner dimension holds, for one tile of it:
bring the next tile into registers, multiply the tile in workgroup memory, then store the registers
there. The product of a tile is straight-line code: compilers do not unroll what naga makes of a
loop (measured on an H200: 30 TFLOP/s rolled, 36 unrolled, 43 with the registers). The last tile is
fetched twice: without branches around fetches convolutions are a fifth faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Protocol

_LANES = "xyzw"


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows, columns and inner indices that a workgroup takes at once; a thread's share."""

    rows: int
    columns: int
    depth: int
    thread_rows: int
    thread_columns: int

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return self.rows * self.columns // (self.thread_rows * self.thread_columns)

    def cut(self, rows: int, columns: int) -> tuple[int, int]:
        """How many of it cover so many rows and columns."""
        return -(-rows // self.rows), -(-columns // self.columns)

    @property
    def workgroup_bytes(self) -> int:
        """Workgroup memory that the two operands take at most."""
        return 16 * self.depth * (self.rows // 4 + self.columns // 4 + 2)


class Loader(Protocol):
    """How one operand gets into workgroup memory."""

    def setup(self) -> list[str]:
        """Statements before the loop; `tile_first` is known."""
        ...

    def load(self) -> list[str]:
        """Statements that bring tile `t` into registers."""
        ...

    def store(self) -> list[str]:
        """Statements that put the registers into workgroup memory."""
        ...

    def memory(self) -> str:
        """The declaration of the workgroup memory."""
        ...

    @property
    def pitch(self) -> int:
        """Vectors from one inner index to the next in workgroup memory."""
        ...


@dataclass(frozen=True, slots=True)
class Placement:
    """Which elements of an operand's tile each thread brings in.

    The tile has `outer` rows (of a) or columns (of b) and `depth` inner indices; workgroup memory
    holds vectors along the outer one. Neighbouring threads take neighbours along the inner
    dimension (`k_contiguous`) or the outer one, whichever lies together in memory. A thread loads
    all four elements of a vector, one after the other or as a `vector`: to store a component may
    touch the others. Registers and counters start with `name`.
    """

    name: str
    outer: int
    depth: int
    threads: int
    k_contiguous: bool
    vector: bool
    stored: str

    def __post_init__(self) -> None:
        """Refuse a tile that the threads do not divide evenly, and vectors that lie across.

        Raises:
            ValueError: loads would be left out or done twice, or would have to be turned.
        """
        if self.threads % self._row or self.outer * self.depth // 4 % self.threads:
            raise ValueError(
                f"{self.threads} threads do not fit a tile read by rows of {self._row}"
            )
        if self.vector and self.k_contiguous:
            raise ValueError("vectors along the inner dimension do not lie as they are stored")

    @property
    def pitch(self) -> int:
        """Vectors per inner index.

        One is left free where stores step along it, against bank conflicts.
        """
        return self.outer // 4 + self.k_contiguous

    @property
    def slots(self) -> int:
        """Loads per thread."""
        return self.together * (self.outer * self.depth // 4 // self.threads)

    @property
    def together(self) -> int:
        """Loads that fill a vector."""
        return 1 if self.vector else 4

    @property
    def _row(self) -> int:
        return self.depth if self.k_contiguous else self.outer // 4

    def memory(self) -> str:
        """The declaration of the workgroup memory."""
        return f"var<workgroup> tile_{self.name}: array<vec4<f32>, {self.depth * self.pitch}>;"

    def declare(self) -> list[str]:
        """Where this thread stands in a tile, and its registers."""
        name, kind = self.name, f"vec4<{self.stored}>" if self.vector else self.stored
        lines = [
            f"  let {name}_low = lane % {self._row};",
            f"  let {name}_high = lane / {self._row};",
        ]
        return lines + [f"  var {name}{slot}: {kind};" for slot in range(self.slots)]

    def _fours(self, slot: int) -> str:
        if not self.k_contiguous:
            return f"{self.name}_low"
        return self._far(slot)

    def _far(self, slot: int) -> str:
        return _plus(f"{self.name}_high", slot // self.together * (self.threads // self._row))

    def outer_at(self, slot: int) -> str:
        """The row or column of a load, the first of four of a vector."""
        return _plus(f"4 * ({self._fours(slot)})", slot % self.together)

    def depth_at(self, slot: int) -> str:
        """The inner index of a load."""
        return f"{self.name}_low" if self.k_contiguous else self._far(slot)

    def store(self) -> list[str]:
        """Registers to workgroup memory."""
        name, lines = self.name, []
        for slot in range(0, self.slots, self.together):
            parts = (f"{name}{slot + q}" for q in range(4))
            value = f"{name}{slot}" if self.vector else ", ".join(f"f32({x})" for x in parts)
            place = f"({self.depth_at(slot)}) * {self.pitch} + {self._fours(slot)}"
            lines.append(f"      tile_{name}[{place}] = vec4<f32>({value});")
        return lines


def _plus(place: str, step: int) -> str:
    return f"{place} + {step}" if step else place


SIGNATURE = """\
@compute @workgroup_size({threads})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane_index: u32) {{
  let lane = i32(lane_index);
"""


def sums_of_threads(count: int, threads: int) -> str:
    """Add up `parts`, in which every thread has a number for each sum: sum `lane` is its `total`.

    Several threads share a sum first, then one has it: fewer than `count` go on.
    """
    share = 1 << (min(threads // count, isqrt(threads)).bit_length() - 1)
    return f"""\
  workgroupBarrier();
  if (lane < {count * share}) {{
    let at = lane / {share} * {threads} + lane % {share};
    for (var i = {share}; i < {threads}; i += {share}) {{ parts[at] += parts[at + i]; }}
  }}
  workgroupBarrier();
  if (lane >= {count}) {{ return; }}
  var total = 0.0;
  for (var i = 0; i < {share}; i++) {{ total += parts[lane * {threads} + i]; }}
"""


# The parameters that `tile_source` needs.
TILE_PARAMS = (
    ("groups", "u32"),
    ("row_tiles", "i32"),
    ("column_tiles", "i32"),
    ("batches", "i32"),
    ("tiles", "i32"),
    ("tiles_per_split", "i32"),
)


def tile_source(tile: Tile, a: Loader, b: Loader, prologue: list[str], epilogue: list[str]) -> str:
    """The kernel's text.

    The prologue, then the loaders, then the epilogue may use `lane`, `batch`, `split`,
    `row_first`, `column_first` (of this workgroup) and `tile_first`; the epilogue has `c{i}_{j}`,
    the vector of columns `4 j` of the thread's row `i`, and `tx`, `ty`.
    """
    lines = [
        a.memory(),
        b.memory(),
        SIGNATURE.format(threads=tile.threads).rstrip(),
        "  let id = linear_group(group, groups);",
        "  if (id >= p.groups) { return; }",
        f"  let column_first = (i32(id) % p.column_tiles) * {tile.columns};",
        "  let above = i32(id) / p.column_tiles;",
        f"  let row_first = (above % p.row_tiles) * {tile.rows};",
        "  let batch = above / p.row_tiles % p.batches;",
        "  let split = above / p.row_tiles / p.batches;",
        "  let tile_first = split * p.tiles_per_split;",
        "  let tile_last = min(tile_first + p.tiles_per_split, p.tiles);",
        f"  let tx = lane % {tile.columns // tile.thread_columns};",
        f"  let ty = lane / {tile.columns // tile.thread_columns};",
        *prologue,
        *a.setup(),
        *b.setup(),
        *[f"  var {c} = vec4<f32>();" for c in _accumulators(tile)],
        "  var t = tile_first;",
        "  if (t < tile_last) {",
        *a.load(),
        *b.load(),
        *a.store(),
        *b.store(),
        "  }",
        "  workgroupBarrier();",
        "  for (var next = tile_first + 1; next <= tile_last; next++) {",
        "    t = min(next, tile_last - 1);",
        "    {",
        *a.load(),
        *b.load(),
        "    }",
        *_product(tile, a.pitch, b.pitch),
        "    workgroupBarrier();",
        *a.store(),
        *b.store(),
        "    workgroupBarrier();",
        "  }",
        *epilogue,
        "}\n",
    ]
    return "\n".join(lines)


def _accumulators(tile: Tile) -> list[str]:
    return [f"c{i}_{j}" for i in range(tile.thread_rows) for j in range(tile.thread_columns // 4)]


def thread_row(tile: Tile, i: int) -> str:
    """The row of the result of a thread's row `i`: fours of a thread lie `ty` fours apart."""
    block, rest = divmod(i, 4)
    return f"row_first + {block * tile.rows * 4 // tile.thread_rows + rest} + 4 * ty"


def thread_column(tile: Tile, j: int) -> str:
    """The first column of a thread's vector `j`."""
    return f"column_first + {j * tile.columns * 4 // tile.thread_columns} + 4 * tx"


def _product(tile: Tile, a_pitch: int, b_pitch: int) -> list[str]:
    lines = []
    rows, columns = tile.thread_rows // 4, tile.thread_columns // 4
    for k in range(tile.depth):
        for i in range(rows):
            at = k * a_pitch + i * tile.rows // tile.thread_rows
            lines.append(f"      let x{k}_{i} = tile_a[{at} + ty];")
        for j in range(columns):
            at = k * b_pitch + j * tile.columns // tile.thread_columns
            lines.append(f"      let y{k}_{j} = tile_b[{at} + tx];")
        for i in range(tile.thread_rows):
            x = f"x{k}_{i // 4}.{_LANES[i % 4]}"
            lines += [f"      c{i}_{j} += {x} * y{k}_{j};" for j in range(columns)]
    return lines
