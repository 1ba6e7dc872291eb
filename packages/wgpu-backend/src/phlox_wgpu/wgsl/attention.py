"""Attention without its scores in memory: tiles of keys, and a softmax that goes on with each.

A workgroup has some queries. For each tile of keys it multiplies to scores, raises the largest
score of its rows where the tile has a larger one, scales what it has summed by the difference, and
adds the values by their weights. Thread (ty, tx) has rows 4 ty to 4 ty + 3 throughout: of scores
the keys 4 tx to 4 tx + 3, of the result every so many columns of four.
Milakov and Gimelshein, 2018; Dao et al., 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from .._kernel import Kernel
from .tile import SIGNATURE

_LANES = "xyzw"
LEAST = "-3.4028234e38"  # stands for what is hidden: no score is less, but -inf


@dataclass(frozen=True, slots=True)
class AttentionTile:
    """Queries of a workgroup, and keys that it takes at once."""

    queries: int
    keys: int

    @property
    def across(self) -> int:
        """Threads of a row."""
        return self.keys // 4

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return self.queries // 4 * self.across

    def workgroup_bytes(self, depth: int, columns: int) -> int:
        """Workgroup memory: queries, keys or values, weights, and the largest of each thread."""
        held = max(depth * (self.keys // 4 + 1), self.keys * (columns // 4))
        vectors = depth * (self.queries // 4 + 1) + held + self.keys * (self.queries // 4)
        return 16 * vectors + 4 * self.queries * self.across


Tile = TypeVar("Tile")


@dataclass(frozen=True, slots=True)
class Attention(Generic[Tile]):
    """Attention over heads of `depth` elements with values of `columns`, multiples of four.

    ``mask`` and ``bias``: there is one, read element by element. ``softcap``: scores are capped.
    """

    tile: Tile
    stored: str
    depth: int
    columns: int
    is_causal: bool
    mask: bool
    bias: bool
    softcap: bool

    @property
    def given(self) -> tuple[str, ...]:
        """What is read beside the heads."""
        return tuple(name for name in ("mask", "bias") if getattr(self, name))


Tiled = Attention[AttentionTile]


NEAR = tuple((f"{x}_{field}", "i32") for x in "qkv" for field in ("batch", "head", "row"))
_SCORES = ("batch", "head", "row", "column")


def attention_source(spec: Tiled) -> Kernel:
    """The kernel: inputs query, key and value by vectors, then the mask and the bias there are.

    Parameters: offsets of the inputs, in vectors where they are read by those; the grid; strides.
    """
    given = spec.given
    inputs = [f"vec4<{spec.stored}>"] * 3 + [{"mask": "u32", "bias": spec.stored}[x] for x in given]
    lines = [
        *_memory(spec),
        SIGNATURE.format(threads=spec.tile.threads).rstrip(),
        *_place(spec, given),
        *_queries(spec),
        "  for (var t = 0; t < tiles; t++) {",
        f"    let key_first = t * {spec.tile.keys};",
        *_load(spec, "k"),
        *_store_keys(spec),
        "    workgroupBarrier();",
        *_load(spec, "v"),
        *_scores(spec, given),
        "    workgroupBarrier();",
        *_store_values(spec),
        *_weights(spec),
        "    workgroupBarrier();",
        *_add_values(spec),
        "    workgroupBarrier();",
        "  }",
        *_result(spec),
        "}\n",
    ]
    return Kernel(
        "\n".join(lines), tuple(inputs), (f"vec4<{spec.stored}>",), attention_params(given)
    )


def attention_params(given: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The parameters, with what is given beside the heads."""
    params = [(f"{x}_offset", "i32") for x in ("q", "k", "v", *given)]
    params += [("groups", "u32")]
    params += [(x, "i32") for x in ("query_tiles", "heads", "share", "queries", "keys")]
    params += NEAR
    params += [(f"{x}_{field}", "i32") for x in given for field in _SCORES]
    params += [("scale", "f32"), ("softcap", "f32")]
    return tuple(params)


def _memory(spec: Tiled) -> list[str]:
    tile = spec.tile
    held = max(spec.depth * (tile.keys // 4 + 1), tile.keys * (spec.columns // 4))
    return [
        f"var<workgroup> asked: array<vec4<f32>, {spec.depth * (tile.queries // 4 + 1)}>;",
        f"var<workgroup> held: array<vec4<f32>, {held}>;",
        f"var<workgroup> weights: array<vec4<f32>, {tile.keys * (tile.queries // 4)}>;",
        f"var<workgroup> largest: array<f32, {tile.queries * tile.across}>;",
    ]


def _parts(spec: Tiled) -> range:
    """The vectors of the result that a thread has in each of its rows."""
    return range(-(-spec.columns // 4 // spec.tile.across))


def _place(spec: Tiled, given: tuple[str, ...]) -> list[str]:
    tile = spec.tile
    lines = [
        "  let id = linear_group(group, groups);",
        "  if (id >= p.groups) { return; }",
        f"  let query_first = (i32(id) % p.query_tiles) * {tile.queries};",
        "  let above = i32(id) / p.query_tiles;",
        "  let head = above % p.heads;",
        "  let batch = above / p.heads;",
        "  let q_base = p.q_offset + batch * p.q_batch + head * p.q_head;",
        *[
            f"  let {x}_base = p.{x}_offset + batch * p.{x}_batch + head / p.share * p.{x}_head;"
            for x in "kv"
        ],
        *[
            f"  let {x}_base = p.{x}_offset + batch * p.{x}_batch + head * p.{x}_head;"
            for x in given
        ],
        f"  let tx = lane % {tile.across};",
        f"  let ty = lane / {tile.across};",
        f"  var tiles = (p.keys + {tile.keys - 1}) / {tile.keys};",
    ]
    if spec.is_causal:
        last = f"query_first + {tile.queries} + p.keys - p.queries"
        lines.append(f"  tiles = min(tiles, max({last} + {tile.keys - 1}, 0) / {tile.keys});")
    for i in range(4):
        lines += [f"  var high{i} = {LEAST};", f"  var sum{i} = 0.0;"]
        lines += [f"  var o{i}_{j} = vec4<f32>();" for j in _parts(spec)]
    return lines


def _queries(spec: Tiled) -> list[str]:
    """Queries to workgroup memory, turned, so that a vector has one element of four of them."""
    near, pitch = spec.depth // 4, spec.tile.queries // 4 + 1
    return [
        f"  for (var e = lane; e < {spec.tile.queries * near}; e += {spec.tile.threads}) {{",
        f"    let row = e / {near};",
        f"    let at = q_base + min(query_first + row, p.queries - 1) * p.q_row + e % {near};",
        "    let x = vec4<f32>(in0[at]) * p.scale;",
        *[
            f"    asked[(4 * (e % {near}) + {q}) * {pitch} + row / 4][row % 4] = x.{lane};"
            for q, lane in enumerate(_LANES)
        ],
        "  }",
    ]


def _slots(spec: Tiled, side: str) -> range:
    near = (spec.depth if side == "k" else spec.columns) // 4
    return range(-(-spec.tile.keys * near // spec.tile.threads))


def _load(spec: Tiled, side: str) -> list[str]:
    """A tile of keys or values to registers; past the end the last one, whose weight is 0."""
    near = (spec.depth if side == "k" else spec.columns) // 4
    buffer, lines = {"k": "in1", "v": "in2"}[side], []
    for slot in _slots(spec, side):
        e = f"(lane + {slot * spec.tile.threads})"
        row = f"min(key_first + {e} / {near}, p.keys - 1)"
        at = f"{side}_base + {row} * p.{side}_row + {e} % {near}"
        lines.append(f"    let {side}{slot} = vec4<f32>({buffer}[{at}]);")
    return lines


def _guarded(spec: Tiled, side: str, slot: int, stores: list[str]) -> list[str]:
    """Stores of a slot; the last one may be past the tile."""
    near = (spec.depth if side == "k" else spec.columns) // 4
    size = spec.tile.keys * near
    if (slot + 1) * spec.tile.threads <= size:
        return stores
    return [f"    if (lane + {slot * spec.tile.threads} < {size}) {{", *stores, "    }"]


def _store_keys(spec: Tiled) -> list[str]:
    near, pitch, lines = spec.depth // 4, spec.tile.keys // 4 + 1, []
    for slot in _slots(spec, "k"):
        e = f"(lane + {slot * spec.tile.threads})"
        at = f"4 * ({e} % {near})"
        stores = [
            f"    held[({at} + {q}) * {pitch} + {e} / {4 * near}][{e} / {near} % 4] = k{slot}.{x};"
            for q, x in enumerate(_LANES)
        ]
        lines += _guarded(spec, "k", slot, stores)
    return lines


def _store_values(spec: Tiled) -> list[str]:
    lines = []
    for slot in _slots(spec, "v"):
        store = f"    held[lane + {slot * spec.tile.threads}] = v{slot};"
        lines += _guarded(spec, "v", slot, [store])
    return lines


def _unrolled(length: int) -> int:
    return next(n for n in (16, 8, 4) if length % n == 0)


def _scores(spec: Tiled, given: tuple[str, ...]) -> list[str]:
    """Four rows of four scores, and the largest of each row to workgroup memory."""
    tile, step = spec.tile, _unrolled(spec.depth)
    lines = [f"    var s{i} = vec4<f32>();" for i in range(4)]
    lines += [f"    for (var d = 0; d < {spec.depth}; d += {step}) {{"]
    for u in range(step):
        lines += [
            f"      let x{u} = asked[(d + {u}) * {tile.queries // 4 + 1} + ty];",
            f"      let y{u} = held[(d + {u}) * {tile.keys // 4 + 1} + tx];",
            *[f"      s{i} += x{u}.{_LANES[i]} * y{u};" for i in range(4)],
        ]
    lines.append("    }")
    for i in range(4):
        lines.append(f"    let row{i} = min(query_first + 4 * ty + {i}, p.queries - 1);")
        if spec.softcap:
            four = ", ".join(f"tanh_f(s{i}.{x} / p.softcap)" for x in _LANES)
            lines.append(f"    s{i} = vec4({four}) * p.softcap;")
        for j, lane in enumerate(_LANES):
            key = f"(key_first + 4 * tx + {j})"
            lines += hide(spec, given, f"s{i}.{lane}", key, f"row{i}")
        four = f"max(max(s{i}.x, s{i}.y), max(s{i}.z, s{i}.w))"
        lines.append(f"    largest[(4 * ty + {i}) * {tile.across} + tx] = {four};")
    return lines


def hide(spec: Attention[Any], given: tuple[str, ...], score: str, key: str, row: str) -> list[str]:
    """Shift one score by the bias, or hide it."""
    hidden, lines = [f"{key} >= p.keys"], []
    for position, name in enumerate(given):
        column = f"min({key}, p.keys - 1) * p.{name}_column"
        at = f"in{3 + position}[{name}_base + {row} * p.{name}_row + {column}]"
        if name == "mask":
            hidden.append(f"{at} != 0u")
        else:
            lines.append(f"    {score} += f32({at});")
    if spec.is_causal:
        hidden.append(f"{key} > {row} + p.keys - p.queries")
    return [*lines, f"    if ({' || '.join(hidden)}) {{ {score} = {LEAST}; }}"]


def _weights(spec: Tiled) -> list[str]:
    """Raise the largest score of each row, scale what is summed, and store the weights, turned."""
    tile, lines = spec.tile, []
    for i in range(4):
        first = f"(4 * ty + {i}) * {tile.across}"
        found = f"largest[{first}]"
        for x in range(1, tile.across):
            found = f"max({found}, largest[{first} + {x}])"
        lines += [
            f"    let now{i} = max(high{i}, {found});",
            f"    let scale{i} = exp(high{i} - now{i});",
            f"    high{i} = now{i};",
            # A row may have seen nothing so far: then it has no largest score to subtract.
            f"    let w{i} = select(exp(s{i} - now{i}), vec4<f32>(), s{i} <= vec4({LEAST}));",
            f"    sum{i} = sum{i} * scale{i} + (w{i}.x + w{i}.y) + (w{i}.z + w{i}.w);",
            *[f"    o{i}_{j} *= scale{i};" for j in _parts(spec)],
        ]
    for j, lane in enumerate(_LANES):
        four = ", ".join(f"w{i}.{lane}" for i in range(4))
        lines.append(f"    weights[(4 * tx + {j}) * {tile.queries // 4} + ty] = vec4({four});")
    return lines


def _add_values(spec: Tiled) -> list[str]:
    tile, step = spec.tile, _unrolled(spec.tile.keys)
    near = spec.columns // 4
    lines = [f"    for (var k = 0; k < {tile.keys}; k += {step}) {{"]
    for u in range(step):
        lines.append(f"      let w{u} = weights[(k + {u}) * {tile.queries // 4} + ty];")
        for j in _parts(spec):
            column = f"min(tx + {j * tile.across}, {near - 1})"
            lines.append(f"      let y{u}_{j} = held[(k + {u}) * {near} + {column}];")
            lines += [f"      o{i}_{j} += w{u}.{_LANES[i]} * y{u}_{j};" for i in range(4)]
    return [*lines, "    }"]


def _result(spec: Tiled) -> list[str]:
    """Divide by the sum of the weights; a query that sees nothing gives zeros."""
    tile, near = spec.tile, spec.columns // 4
    lines = [f"  largest[(4 * ty + {i}) * {tile.across} + tx] = sum{i};" for i in range(4)]
    lines.append("  workgroupBarrier();")
    for i in range(4):
        first = f"(4 * ty + {i}) * {tile.across}"
        total = " + ".join(f"largest[{first} + {x}]" for x in range(tile.across))
        lines += [
            f"  let all{i} = {total};",
            f"  let row{i} = query_first + 4 * ty + {i};",
            f"  if (row{i} < p.queries) {{",
            f"    let at = (above * p.queries + row{i}) * {near};",
            f"    let by = select(1.0 / all{i}, 0.0, all{i} == 0.0);",
        ]
        for j in _parts(spec):
            store = f"out0[at + tx + {j * tile.across}] = vec4<{spec.stored}>(o{i}_{j} * by);"
            lines.append(f"    if (tx + {j * tile.across} < {near}) {{ {store} }}")
        lines.append("  }")
    return lines
