"""Attention of float16 on tensor cores, by tiles of keys, with sums in float32.

A subgroup has sixteen queries. Its products are scores by keys and queries, so that keys and values
are read as they lie. These go through workgroup memory to threads, of which two have a query, and
come back as weights. What is summed is scaled anew only when a largest score grows by more than
`_GROWTH`: weights up to then fit float16, and few tiles make it grow. Dao et al., 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._kernel import Kernel
from .attention import LEAST, Attention, attention_params, hide
from .cooperative import SQUARE
from .tile import SIGNATURE

_GROWTH = 8.0  # of an exponent: e^8 is 2981
_FREE = 2  # vectors of a line that stay empty, against bank conflicts
_PITCH = 20  # floats of a line of scores: four lines further is half of the banks further
LANES = 32
_SUMS = f"coop_mat{SQUARE}x{SQUARE}<f32,C>"


@dataclass(frozen=True, slots=True)
class CooperativeAttentionTile:
    """Subgroups of a workgroup, and keys that it takes at once."""

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

    def workgroup_bytes(self, depth: int, columns: int) -> int:
        """Workgroup memory: keys and values, scores and weights."""
        own = 4 * self.keys * _PITCH + 8 * SQUARE * (self.keys // 4 + _FREE)
        return 8 * self.keys * ((depth + columns) // 4 + 2 * _FREE) + self.subgroups * own


Cooperative = Attention[CooperativeAttentionTile]


@dataclass(frozen=True, slots=True)
class _Lines:
    """Keys or values: how a tile of them comes to workgroup memory."""

    name: str
    buffer: str
    tile: CooperativeAttentionTile
    width: int

    @property
    def pitch(self) -> int:
        return self.width // 4 + _FREE

    @property
    def _slots(self) -> range:
        return range(-(-self.tile.keys * self.width // 4 // self.tile.threads))

    def memory(self) -> str:
        return f"var<workgroup> tile_{self.name}: array<vec4<f16>, {self.tile.keys * self.pitch}>;"

    def setup(self) -> list[str]:
        base = f"p.{self.name}_offset + batch * p.{self.name}_batch"
        return [
            f"  let {self.name}_pitch = {self.pitch}u;",
            f"  let {self.name}_base = {base} + head / p.share * p.{self.name}_head;",
            *[f"  var {self.name}{slot} = vec4<f16>();" for slot in self._slots],
        ]

    def load(self) -> list[str]:
        """Tile `t` to registers; past the end the last key, whose weight is 0."""
        lines, near = [], self.width // 4
        for slot in self._slots:
            e = f"(lane + {slot * self.tile.threads})"
            row = f"min(t * {self.tile.keys} + {e} / {near}, p.keys - 1)"
            at = f"u32({self.name}_base + {row} * p.{self.name}_row + {e} % {near})"
            lines.append(f"    {self.name}{slot} = {self.buffer}[{at}];")
        return lines

    def store(self) -> list[str]:
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
    keys = _Lines("k", "in1", tile, spec.depth)
    values = _Lines("v", "in2", tile, spec.columns)
    own = tile.keys * _PITCH
    lines = [
        keys.memory(),
        values.memory(),
        f"var<workgroup> scores: array<f32, {tile.subgroups * own}>;",
        f"var<workgroup> weights: array<vec4<f16>, {tile.subgroups * _weights_of(tile)}>;",
        SIGNATURE.format(threads=tile.threads).rstrip(),
        *_place(spec),
        *keys.setup(),
        *values.setup(),
        *_queries(spec),
        "  var t = 0;",
        *keys.load(),
        *values.load(),
        "  for (t = 1; t <= tiles; t++) {",
        "    workgroupBarrier();",
        *keys.store(),
        *values.store(),
        "    workgroupBarrier();",
        "    if (t < tiles) {",
        *keys.load(),
        *values.load(),
        "    }",
        f"    let key_first = (t - 1) * {tile.keys};",
        *_scores(spec, keys),
        *_softmax(spec, given),
        *_add_values(spec, values),
        "  }",
        *_result(spec),
        "}\n",
    ]
    inputs = ["vec4<f16>"] * 3 + [{"mask": "u32", "bias": "f16"}[x] for x in given]
    enables = ("wgpu_cooperative_matrix",)
    params = attention_params(given)
    return Kernel("\n".join(lines), tuple(inputs), ("vec4<f16>",), params, enables=enables)


def _weights_of(tile: CooperativeAttentionTile) -> int:
    """Vectors of weights of a subgroup."""
    return SQUARE * (tile.keys // 4 + _FREE)


def _place(spec: Cooperative) -> list[str]:
    tile = spec.tile
    lines = [
        # Groups past the end do again what the last one does: products ask that none returns.
        "  let id = i32(min(linear_group(group, groups), p.groups - 1));",
        "  let above = id / p.tiles;",
        "  let head = above % p.heads;",
        "  let batch = above / p.heads;",
        f"  let subgroup = lane / {LANES};",
        f"  let own_lane = lane % {LANES};",
        # The last rows of all are done twice where they do not fill sixteen.
        f"  let group_first = id % p.tiles * {tile.own};",
        f"  let row_first = min(group_first + {SQUARE} * subgroup, p.queries - {SQUARE});",
        f"  let row0 = row_first + own_lane % {SQUARE};",
        f"  let half = own_lane / {SQUARE};",
        f"  let own_scores = subgroup * {tile.keys * _PITCH};",
        f"  let own_weights = subgroup * {_weights_of(tile)};",
        f"  let scores_pitch = {_PITCH}u;",
        f"  let weights_pitch = {tile.keys // 4 + _FREE}u;",
        *[
            f"  let {x}_base = p.{x}_offset + batch * p.{x}_batch + head * p.{x}_head;"
            for x in ("q", *spec.given)
        ],
        f"  var tiles = (p.keys + {tile.keys - 1}) / {tile.keys};",
    ]
    if spec.is_causal:
        last = f"min(group_first + {tile.own}, p.queries) + p.keys - p.queries"
        lines.append(f"  tiles = min(tiles, max({last} + {tile.keys - 1}, 0) / {tile.keys});")
    lines += [f"  var high = {LEAST};", "  var sum = 0.0;"]
    return lines + [f"  var o{j} = {_SUMS}();" for j in range(spec.columns // SQUARE)]


def _load(name: str, role: str, kind: str, array: str, index: str, pitch: str, turn: bool) -> str:
    """A square of workgroup or storage memory; the index is a `let`, as naga asks."""
    how = "coopLoad" if turn else "coopLoadT"
    value = f"{how}<coop_mat{SQUARE}x{SQUARE}<{kind},{role}>>(&{array}[{name}_at], {pitch})"
    return f"    let {name}_at = {index}; let {name} = {value};"


def _queries(spec: Cooperative) -> list[str]:
    lines = ["  let q_pitch = u32(p.q_row);"]
    for d in range(spec.depth // SQUARE):
        index = f"q_base + row_first * p.q_row + {SQUARE // 4 * d}"
        lines.append(_load(f"q{d}", "B", "f16", "in0", index, "q_pitch", turn=True))
    return lines


def _scores(spec: Cooperative, keys: _Lines) -> list[str]:
    """Squares of scores, by keys and queries, to workgroup memory."""
    tile = spec.tile
    lines = []
    for j in range(tile.keys // SQUARE):
        lines.append(f"    var s{j} = {_SUMS}();")
        for d in range(spec.depth // SQUARE):
            index = str(SQUARE * j * keys.pitch + SQUARE // 4 * d)
            lines.append(_load(f"k{j}_{d}", "A", "f16", "tile_k", index, "k_pitch", turn=False))
            lines.append(f"    s{j} = coopMultiplyAdd(k{j}_{d}, q{d}, s{j});")
        lines.append(f"    let s{j}_at = own_scores + {SQUARE * j * _PITCH};")
        lines.append(f"    coopStoreT(s{j}, &scores[s{j}_at], scores_pitch);")
    return [*lines, "    subgroupBarrier();"]


def _softmax(spec: Cooperative, given: tuple[str, ...]) -> list[str]:
    """Scores of a thread, four of each eight keys, to weights."""
    tile = spec.tile
    lines, fours = [], range(tile.keys // 8)
    for e in fours:
        first = f"({8 * e} + 4 * half)"
        at = f"own_scores + {first} * {_PITCH} + own_lane % {SQUARE}"
        four = ", ".join(f"scores[{at} + {c * _PITCH}]" for c in range(4))
        lines.append(f"    var w{e} = vec4({four}) * p.scale;")
        if spec.softcap:
            four = ", ".join(f"tanh_f(w{e}.{x} / p.softcap)" for x in "xyzw")
            lines.append(f"    w{e} = vec4({four}) * p.softcap;")
        for c, x in enumerate("xyzw"):
            lines += hide(spec, given, f"w{e}.{x}", f"(key_first + {first} + {c})", "row0")
    lines.append(f"    var found = {LEAST};")
    lines += [
        f"    found = max(found, max(max(w{e}.x, w{e}.y), max(w{e}.z, w{e}.w)));" for e in fours
    ]
    lines += [
        f"    found = max(found, subgroupShuffleXor(found, {SQUARE}u));",
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
    for e in fours:
        # A row may have seen nothing so far: then it has no largest score to subtract.
        lines += [
            f"    w{e} = select(exp(w{e} - high), vec4<f32>(), w{e} <= vec4({LEAST}));",
            f"    sum += (w{e}.x + w{e}.y) + (w{e}.z + w{e}.w);",
        ]
        at = f"own_weights + own_lane % {SQUARE} * {tile.keys // 4 + _FREE} + {2 * e} + half"
        lines.append(f"    weights[{at}] = vec4<f16>(w{e});")
    return [*lines, "    subgroupBarrier();"]


_MINE = f"let mine = own_scores + own_lane % {SQUARE} * {_PITCH} + 8 * half;"


def _scaled(spec: Cooperative) -> list[str]:
    """What is summed times `by`, row by row, through workgroup memory."""
    lines = [f"      {_MINE}", "      let at = own_scores;"]
    for j in range(spec.columns // SQUARE):
        lines += [
            "      subgroupBarrier();",
            f"      coopStoreT(o{j}, &scores[at], scores_pitch);",
            "      subgroupBarrier();",
            *[f"      scores[mine + {c}] *= by;" for c in range(8)],
            "      subgroupBarrier();",
            f"      o{j} = coopLoadT<{_SUMS}>(&scores[at], scores_pitch);",
        ]
    return [*lines, "      subgroupBarrier();"]


def _add_values(spec: Cooperative, values: _Lines) -> list[str]:
    tile = spec.tile
    lines = []
    for k in range(tile.keys // SQUARE):
        index = f"own_weights + {SQUARE // 4 * k}"
        lines.append(_load(f"p{k}", "A", "f16", "weights", index, "weights_pitch", turn=False))
        for j in range(spec.columns // SQUARE):
            index = str(SQUARE * k * values.pitch + SQUARE // 4 * j)
            lines.append(_load(f"v{k}_{j}", "B", "f16", "tile_v", index, "v_pitch", turn=False))
            lines.append(f"    o{j} = coopMultiplyAdd(p{k}, v{k}_{j}, o{j});")
    return lines


def _result(spec: Cooperative) -> list[str]:
    """Divide by the sum of the weights; a query that sees nothing gives zeros."""
    lines = [
        f"  let all = sum + subgroupShuffleXor(sum, {SQUARE}u);",
        "  let by = select(1.0 / all, 0.0, all == 0.0);",
        f"  {_MINE}",
        "  let at = own_scores;",
        f"  let out_at = (above * p.queries + row0) * {spec.columns // 4} + 2 * half;",
    ]
    for j in range(spec.columns // SQUARE):
        lines += [
            "  subgroupBarrier();",
            f"  coopStoreT(o{j}, &scores[at], scores_pitch);",
            "  subgroupBarrier();",
        ]
        for part in range(2):
            four = ", ".join(f"scores[mine + {4 * part + c}]" for c in range(4))
            store = f"out0[out_at + {4 * j + part}] = vec4<f16>(vec4({four}) * by);"
            lines.append(f"  {store}")
    return lines
