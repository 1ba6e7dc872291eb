"""Attention of float16 on tensor cores, by tiles of keys, with sums in float32.

A subgroup has sixteen queries. Its products are scores by keys and queries, so that keys and values
are read as they lie. These go through workgroup memory to threads, of which two have a query, and
come back as weights. What is summed is scaled anew only when a largest score
grows by more than `_GROWTH`: weights up to then fit float16, and few tiles make it grow.
Dao et al., 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._kernel import Kernel
from .attention import LEAST, Attention, attention_params, base, hide, own_tile
from .cooperative import SQUARE
from .tile import SIGNATURE

_GROWTH = 8.0  # of an exponent: e^8 is 2981
_FREE = 2  # vectors of a line that stay empty, against bank conflicts
_PITCH = 20  # floats of a line of scores: four lines further is half of the banks further
LANES = 32
_SUMS = f"coop_mat{SQUARE}x{SQUARE}<f32,C>"


@dataclass(frozen=True, slots=True)
class CooperativeAttentionTile:
    """Subgroups of a workgroup, and keys that it takes at once.

    A subgroup has sixteen queries, or sixteen keys where the others are queries.
    """

    subgroups: int
    keys: int

    @property
    def own(self) -> int:
        """Queries of a workgroup."""
        return SQUARE * self.subgroups

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return LANES * self.subgroups

    @property
    def fours(self) -> range:
        """Fours of keys of a thread: two threads share a query."""
        return range(self.keys // 8)

    @property
    def scores(self) -> int:
        """Scores of a subgroup."""
        return self.keys * _PITCH

    @property
    def weights(self) -> int:
        """Vectors of weights of a subgroup."""
        return SQUARE * (self.keys // 4 + _FREE)

    def workgroup_bytes(self, depth: int, columns: int, twice: int = 1) -> int:
        """Workgroup memory: keys and values, scores and weights, of which there may be more."""
        own = self.subgroups * (4 * self.scores + 8 * self.weights) * twice
        return 8 * self.keys * ((depth + columns) // 4 + 2 * _FREE) + own


Cooperative = Attention[CooperativeAttentionTile]


@dataclass(frozen=True, slots=True)
class TileLines:
    """Lines that all subgroups of a workgroup go over: how a tile comes to workgroup memory."""

    name: str
    buffer: str
    tile: CooperativeAttentionTile
    width: int
    count: str = "p.keys"

    @property
    def pitch(self) -> int:
        """Vectors from one line to the next."""
        return self.width // 4 + _FREE

    @property
    def _slots(self) -> range:
        return range(-(-self.tile.keys * self.width // 4 // self.tile.threads))

    def memory(self) -> str:
        """The declaration of the workgroup memory."""
        return f"var<workgroup> tile_{self.name}: array<vec4<f16>, {self.tile.keys * self.pitch}>;"

    def setup(self) -> list[str]:
        """The pitch, and registers."""
        return [
            f"  let {self.name}_pitch = {self.pitch}u;",
            *[f"  var {self.name}{slot} = vec4<f16>();" for slot in self._slots],
        ]

    def load(self) -> list[str]:
        """Tile `t` to registers; past the end the last line, whose weight is 0."""
        lines, near = [], self.width // 4
        for slot in self._slots:
            e = f"(lane + {slot * self.tile.threads})"
            row = f"min(t * {self.tile.keys} + {e} / {near}, {self.count} - 1)"
            at = f"u32({self.name}_base + {row} * p.{self.name}_row + {e} % {near})"
            lines.append(f"    {self.name}{slot} = {self.buffer}[{at}];")
        return lines

    def store(self) -> list[str]:
        """Registers to workgroup memory."""
        lines, near = [], self.width // 4
        for slot in self._slots:
            first = slot * self.tile.threads
            e = f"(lane + {first})"
            at = f"{e} / {near} * {self.pitch} + {e} % {near}"
            store = f"tile_{self.name}[{at}] = {self.name}{slot};"
            if first + self.tile.threads > self.tile.keys * near:
                store = f"if ({e} < {self.tile.keys * near}) {{ {store} }}"
            lines.append(f"    {store}")
        return lines


def cooperative_attention_source(spec: Cooperative) -> Kernel:
    """The kernel: inputs and parameters as of `attention_source`."""
    tile, given = spec.tile, spec.given
    keys = TileLines("k", "in1", tile, spec.depth)
    values = TileLines("v", "in2", tile, spec.columns)
    lines = [
        keys.memory(),
        values.memory(),
        *memory(tile, "scores", "weights"),
        SIGNATURE.format(threads=tile.threads).rstrip(),
        *place(spec),
        *[base(x, "head / p.share") for x in "kv"],
        *[base(x, "head") for x in ("q", *given)],
        *keys.setup(),
        *values.setup(),
        *own_squares("q", "in0", spec.depth),
        *tiles_of_keys(spec),
        f"  var high = {LEAST};",
        "  var sum = 0.0;",
        *zeros("o", spec.columns),
        "  var t = 0;",
        *keys.load(),
        *values.load(),
        "  for (t = 1; t <= tiles; t++) {",
        "    workgroupBarrier();",
        *keys.store(),
        *values.store(),
        "    workgroupBarrier();",
        *keys.load(),
        *values.load(),
        f"    let key_first = (t - 1) * {tile.keys};",
        *products(keys, "q", "s", "scores"),
        "    subgroupBarrier();",
        *_softmax(spec),
        *add(values, "weights", "o"),
        "  }",
        both("sum", "{} + {}"),
        # A query that sees nothing gives zeros.
        "  let by = select(1.0 / sum, 0.0, sum == 0.0);",
        *result("o", spec.columns, "p.queries", "out0", "by"),
        "}\n",
    ]
    inputs = ["vec4<f16>"] * 3 + [{"mask": "u32", "bias": "f16"}[x] for x in given]
    enables = ("wgpu_cooperative_matrix",)
    params = attention_params(given)
    return Kernel("\n".join(lines), tuple(inputs), ("vec4<f16>",), params, enables=enables)


def both(value: str, join: str) -> str:
    """What both threads of a query have together."""
    other = f"subgroupShuffleXor({value}, {SQUARE}u)"
    return f"  {value} = {join.format(value, other)};"


def memory(tile: CooperativeAttentionTile, scores: str, weights: str) -> list[str]:
    """Scores of all subgroups by other and own lines, and weights by own and other ones."""
    return [
        f"var<workgroup> {scores}: array<f32, {tile.subgroups * tile.scores}>;",
        f"var<workgroup> {weights}: array<vec4<f16>, {tile.subgroups * tile.weights}>;",
    ]


def place(spec: Cooperative, *, by_keys: bool = False) -> list[str]:
    """Where the workgroup, the subgroup and the thread stand among queries, or among keys."""
    tile, count = spec.tile, "p.keys" if by_keys else "p.queries"
    heads, head = ("(p.heads / p.share)", "key_head") if by_keys else ("p.heads", "head")
    return [
        # Groups past the end do again what the last one does: products ask that none returns.
        "  let id = i32(min(linear_group(group, groups), p.groups - 1));",
        *own_tile(spec, by_keys=by_keys),
        f"  let {head} = above % {heads};",
        f"  let batch = above / {heads};",
        f"  let subgroup = lane / {LANES};",
        f"  let own_lane = lane % {LANES};",
        f"  let own_line = own_lane % {SQUARE};",
        # The last rows of all are done twice where they do not fill sixteen.
        f"  let group_first = own_tile * {tile.own};",
        f"  let row_first = min(group_first + {SQUARE} * subgroup, {count} - {SQUARE});",
        "  let row0 = row_first + own_line;",
        f"  let half = own_lane / {SQUARE};",
        f"  let own_scores = subgroup * {tile.scores};",
        f"  let own_weights = subgroup * {tile.weights};",
        f"  let scores_pitch = {_PITCH}u;",
        f"  let weights_pitch = {tile.keys // 4 + _FREE}u;",
    ]


def tiles_of_keys(spec: Cooperative) -> list[str]:
    """How many tiles of keys the workgroup's queries see, and how many keys all of a subgroup's."""
    tile = spec.tile
    lines = [f"  var tiles = (p.keys + {tile.keys - 1}) / {tile.keys};"]
    lines.append(
        f"  let seen = {'row_first + p.keys - p.queries + 1' if spec.is_causal else 'p.keys'};"
    )
    if spec.is_causal:
        last = f"min(group_first + {tile.own}, p.queries) + p.keys - p.queries"
        lines.append(f"  tiles = min(tiles, max({last} + {tile.keys - 1}, 0) / {tile.keys});")
    return lines


def zeros(to: str, width: int) -> list[str]:
    """Sums of a subgroup's lines."""
    return [f"  var {to}{j} = {_SUMS}();" for j in range(width // SQUARE)]


def _load(name: str, role: str, array: str, index: str, pitch: str, turn: bool) -> str:
    """A square of workgroup or storage memory; the index is a `let`, as naga asks."""
    how = "coopLoad" if turn else "coopLoadT"
    value = f"{how}<coop_mat{SQUARE}x{SQUARE}<f16,{role}>>(&{array}[{name}_at], {pitch})"
    return f"    let {name}_at = {index}; let {name} = {value};"


def own_squares(name: str, buffer: str, width: int) -> list[str]:
    """A subgroup's own lines."""
    lines = [f"  let {name}_own_pitch = u32(p.{name}_row);"]
    for d in range(width // SQUARE):
        index = f"{name}_base + row_first * p.{name}_row + {SQUARE // 4 * d}"
        lines.append(_load(f"{name}{d}_own", "B", buffer, index, f"{name}_own_pitch", turn=True))
    return lines


def products(others: TileLines, own: str, to: str, array: str) -> list[str]:
    """Squares of scores, by other and own lines, to workgroup memory."""
    name, lines = others.name, []
    for j in range(others.tile.keys // SQUARE):
        lines.append(f"    var {to}{j} = {_SUMS}();")
        for d in range(others.width // SQUARE):
            index, square = str(SQUARE * j * others.pitch + SQUARE // 4 * d), f"{name}{j}_{d}"
            lines.append(_load(square, "A", f"tile_{name}", index, f"{name}_pitch", turn=False))
            lines.append(f"    {to}{j} = coopMultiplyAdd({square}, {own}{d}_own, {to}{j});")
        lines.append(f"    let {to}{j}_at = own_scores + {SQUARE * j * _PITCH};")
        lines.append(f"    coopStoreT({to}{j}, &{array}[{to}{j}_at], scores_pitch);")
    return lines


def first_of(e: int) -> str:
    """The first other line of a thread's four."""
    return f"({8 * e} + 4 * half)"


def four_of(array: str, e: int) -> str:
    """A thread's four of scores."""
    at = f"own_scores + {first_of(e)} * {_PITCH} + own_line"
    return f"vec4({', '.join(f'{array}[{at} + {c * _PITCH}]' for c in range(4))})"


def store_four(tile: CooperativeAttentionTile, array: str, e: int, value: str) -> str:
    """A thread's four of weights."""
    at = f"own_weights + own_line * {tile.keys // 4 + _FREE} + {2 * e} + half"
    return f"    {array}[{at}] = vec4<f16>({value});"


def scores_of_keys(spec: Cooperative, e: int) -> list[str]:
    """Four scores of a thread's query, scaled, capped and hidden."""
    lines = [f"    var w{e} = {four_of('scores', e)} * p.scale;"]
    if spec.softcap:
        four = ", ".join(f"tanh_f(w{e}.{x} / p.softcap)" for x in "xyzw")
        lines.append(f"    w{e} = vec4({four}) * p.softcap;")
    hidden: list[str] = []
    for c, x in enumerate("xyzw"):
        hidden += hide(spec, f"w{e}.{x}", f"(key_first + {first_of(e)} + {c})", "row0")
    if spec.given:
        return lines + hidden
    return [*lines, f"    if (key_first + {spec.tile.keys} > seen) {{", *hidden, "    }"]


def found(tile: CooperativeAttentionTile) -> list[str]:
    """The largest score of a thread's query in this tile."""
    largest = (f"max(max(w{e}.x, w{e}.y), max(w{e}.z, w{e}.w))" for e in tile.fours)
    return [
        f"    var found = {LEAST};",
        *[f"    found = max(found, {x});" for x in largest],
        both("found", "max({}, {})"),
    ]


def _softmax(spec: Cooperative) -> list[str]:
    """Scores of a thread, four of each eight keys, to weights."""
    tile, lines = spec.tile, []
    for e in tile.fours:
        lines += scores_of_keys(spec, e)
    lines += [
        *found(tile),
        # All of a subgroup go the same way, which naga does not know: it lets loops pass.
        f"    var grows = subgroupAny(found > high + {_GROWTH});",
        "    while (grows) {",
        "      grows = false;",
        "      let now = max(high, found);",
        "      let by = exp(high - now);",
        "      high = now;",
        "      sum = sum * by;",
        *_scaled(spec),
        "    }",
    ]
    for e in tile.fours:
        # A row may have seen nothing so far: then it has no largest score to subtract.
        lines += [
            f"    w{e} = select(exp(w{e} - high), vec4<f32>(), w{e} <= vec4({LEAST}));",
            f"    sum += (w{e}.x + w{e}.y) + (w{e}.z + w{e}.w);",
        ]
        lines.append(store_four(tile, "weights", e, f"w{e}"))
    return [*lines, "    subgroupBarrier();"]


_MINE = f"own_scores + own_line * {_PITCH} + 8 * half"


def _through(of: str) -> list[str]:
    """A square of a subgroup's lines to workgroup memory, whose place is `squares_at`."""
    return [
        "      subgroupBarrier();",
        f"      coopStoreT({of}, &scores[squares_at], scores_pitch);",
        "      subgroupBarrier();",
    ]


def _scaled(spec: Cooperative) -> list[str]:
    """What is summed times `by`, row by row, through workgroup memory."""
    lines = [f"      let mine = {_MINE};", "      let squares_at = own_scores;"]
    for j in range(spec.columns // SQUARE):
        lines += [
            *_through(f"o{j}"),
            *[f"      scores[mine + {c}] *= by;" for c in range(8)],
            "      subgroupBarrier();",
            f"      o{j} = coopLoadT<{_SUMS}>(&scores[squares_at], scores_pitch);",
        ]
    return [*lines, "      subgroupBarrier();"]


def add(others: TileLines, weights: str, to: str) -> list[str]:
    """Add the other lines by their weights."""
    name, lines = others.name, []
    for k in range(others.tile.keys // SQUARE):
        index, square = f"own_weights + {SQUARE // 4 * k}", f"{to}{k}_by"
        lines.append(_load(square, "A", weights, index, "weights_pitch", turn=False))
        for j in range(others.width // SQUARE):
            line = f"{to}{k}_{j}_line"
            index = str(SQUARE * k * others.pitch + SQUARE // 4 * j)
            lines.append(_load(line, "B", f"tile_{name}", index, f"{name}_pitch", turn=False))
            lines.append(f"    {to}{j} = coopMultiplyAdd({square}, {line}, {to}{j});")
    return lines


def result(of: str, width: int, count: str, out: str, by: str) -> list[str]:
    """Store a subgroup's lines, each times a number of its own."""
    first = f"(above * {count} + row0) * {width // 4} + 2 * half"
    lines = [f"  {{ let mine = {_MINE};", "    let squares_at = own_scores;"]
    lines.append(f"    let first_out = {first};")
    for j in range(width // SQUARE):
        lines += _through(f"{of}{j}")
        for part in range(2):
            four = ", ".join(f"scores[mine + {4 * part + c}]" for c in range(4))
            store = f"{out}[first_out + {4 * j + part}] = vec4<f16>(vec4({four}) * {by});"
            lines.append(f"    {store}")
    return [*lines, "  }"]
