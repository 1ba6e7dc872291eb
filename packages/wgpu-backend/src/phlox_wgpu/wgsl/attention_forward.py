"""Attention by tiles of queries and keys, without its scores in memory.

A workgroup has some queries. For each tile of keys it multiplies to scores, raises the largest
score of its rows where the tile has a larger one, scales what it has summed by the difference, and
adds the values by their weights, some keys at a time. A thread (ty, tx) has some rows, in fours;
for each of them scores for fours of keys, and fours of columns of the result. Products of eight
rows with eight keys read half as much of workgroup memory as those of four with four. A workgroup
that takes most of that memory needs many threads, or processors idle.
Milakov and Gimelshein, 2018; Dao et al., 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._kernel import Kernel
from .attention import FOUR, LEAST, Attention, attention_params, base, hide, own_tile
from .tile import SIGNATURE

# The largest score of a query that has seen nothing so far: beside it, `LEAST` weighs 0.
_NOTHING = "-3.0e38"


@dataclass(frozen=True, slots=True)
class ForwardTile:
    """Queries of a workgroup, and how it goes over keys.

    A thread has ``rows`` of scores, and ``vectors`` of four keys in each; ``across`` threads share
    a row. Keys come to workgroup memory by ``deep`` of their elements, values by ``across`` keys.
    """

    own: int
    rows: int
    across: int
    vectors: int
    deep: int

    @property
    def others(self) -> int:
        """Keys of a tile."""
        return 4 * self.across * self.vectors

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return self.own // self.rows * self.across

    @property
    def fours(self) -> range:
        """The fours of rows of a thread."""
        return range(self.rows // 4)

    @property
    def pitch(self) -> int:
        """Vectors from one key's weights to the next, odd against bank conflicts."""
        return self.own // 4 | 1

    def held(self, columns: int) -> int:
        """Vectors of the array for keys, or for values and weights, or a number of each thread."""
        keys = self.deep * self.others // 4
        return max(keys, self.across * (columns // 4 + self.pitch))

    def workgroup_bytes(self, depth: int, columns: int) -> int:
        """Workgroup memory of `attention_source`."""
        return 16 * (depth * self.own // 4 + self.held(columns))

    def row(self, i: int) -> str:
        """Where a thread's row is among the queries."""
        return f"({i // 4 * 4 * (self.own // self.rows) + i % 4} + 4 * ty)"

    def four(self, b: int) -> str:
        """Where a thread's four of rows is."""
        return f"{b * (self.own // self.rows)} + ty"


Forward = Attention[ForwardTile]


def attention_source(spec: Forward) -> Kernel:
    """The kernel: inputs query, key and value by vectors, then the mask and the bias there are.

    Parameters: offsets of the inputs, in vectors where they are read by those; the grid; strides.
    """
    given, tile = spec.given, spec.tile
    inputs = [f"vec4<{spec.stored}>"] * 3 + [{"mask": "u32", "bias": spec.stored}[x] for x in given]
    lines = [
        f"var<workgroup> asked: array<vec4<f32>, {spec.depth * tile.own // 4}>;",
        f"var<workgroup> held: array<vec4<f32>, {tile.held(spec.columns)}>;",
        SIGNATURE.format(threads=tile.threads).rstrip(),
        *_place(spec),
        *_transposed(tile, "q", "0", spec.depth),
        "  for (var t = 0; t < tiles; t++) {",
        f"    let key_first = t * {tile.others};",
        *_products(spec),
        *_hidden(spec),
        *_values(spec, 0),
        *_weights(spec),
        *_add(spec),
        "  }",
        *_result(spec),
        "}\n",
    ]
    out = (f"vec4<{spec.stored}>",)
    return Kernel("\n".join(lines), tuple(inputs), out, attention_params(given))


def _place(spec: Forward) -> list[str]:
    """Where the workgroup and the thread stand, and how many tiles of keys there are to see."""
    tile, seen_by_all, seen = spec.tile, "p.keys", "p.keys"
    if spec.is_causal:
        seen_by_all, seen = (
            f"min(p.keys, query_first + {n} + p.keys - p.queries)" for n in (1, tile.own)
        )
    lines = [
        "  let id = linear_group(group, groups);",
        "  if (id >= p.groups) { return; }",
        *own_tile(spec),
        f"  let query_first = own_tile * {tile.own};",
        "  let head = above % p.heads;",
        "  let batch = above / p.heads;",
        *[base(x, "head / p.share") for x in "kv"],
        *[base(x, "head") for x in ("q", *spec.given)],
        f"  let tx = lane % {tile.across};",
        f"  let ty = lane / {tile.across};",
        f"  let seen_by_all = {seen_by_all};",
        f"  let tiles = max({seen} + {tile.others - 1}, 0) / {tile.others};",
    ]
    for i in range(tile.rows):
        lines += [f"  var high{i} = {_NOTHING};", f"  var sum{i} = 0.0;"]
        lines.append(f"  let row{i} = min(query_first + {tile.row(i)}, p.queries - 1);")
        lines += [f"  var o{i}_{j} = vec4<f32>();" for j in _parts(spec)]
    return lines


def _parts(spec: Forward) -> range:
    """The vectors of the result that a thread has in each of its rows."""
    return range(-(-spec.columns // 4 // spec.tile.across))


def _transposed(tile: ForwardTile, name: str, start: str, depth: int) -> list[str]:
    """Copy so many elements of queries or keys to workgroup memory, transposed by squares of four.

    A vector there has one element of four lines. Neighboring threads store neighboring vectors.
    """
    buffer, first, end, array, count, by = {
        "q": ("in0", "query_first", "p.queries", "asked", tile.own, " * p.scale"),
        "k": ("in1", "key_first", "p.keys", "held", tile.others, ""),
    }[name]
    lines, fours = list[str](), count // 4
    size = fours * (depth // 4)
    for slot in range(0, size, tile.threads):
        inside = f"if (lane + {slot} < {size}) " * (slot + tile.threads > size)
        lines += [
            f"    {inside}{{",
            f"      let four = (lane + {slot}) % {fours};",
            f"      let vector = (lane + {slot}) / {fours};",
        ]
        for q in range(4):
            line = f"min({first} + 4 * four + {q}, {end} - 1)"
            at = f"{name}_base + {line} * p.{name}_row + {start} / 4 + vector"
            lines.append(f"      let x{q} = vec4<f32>({buffer}[{at}]){by};")
        for q, x in enumerate(FOUR):
            four = ", ".join(f"x{i}.{x}" for i in range(4))
            lines.append(f"      {array}[(4 * vector + {q}) * {fours} + four] = vec4({four});")
        lines.append("    }")
    return lines


def _unrolled(length: int) -> int:
    """Steps of a loop that are written out: with sixteen, instructions leave their cache."""
    return next(n for n in (8, 4, 2) if length % n == 0)


def _products(spec: Forward) -> list[str]:
    """Products of queries with keys, over some of their elements after others."""
    tile = spec.tile
    rest = spec.depth % tile.deep
    whole = spec.depth - rest
    lines = [f"    var s{i}_{j} = vec4<f32>();" for i, j in _scores(tile)]
    lines.append(f"    for (var c = 0; c < {whole}; c += {tile.deep}) {{")
    lines += [*_contract(tile, "c", tile.deep), "    }"]
    return lines + (_contract(tile, str(whole), rest) if rest else [])


def _scores(tile: ForwardTile) -> list[tuple[int, int]]:
    return [(i, j) for i in range(tile.rows) for j in range(tile.vectors)]


def _contract(tile: ForwardTile, first: str, depth: int) -> list[str]:
    """Add the products of so many elements, from the first one on."""
    step = _unrolled(depth)
    lines = _transposed(tile, "k", first, depth)
    lines += ["    workgroupBarrier();", f"    for (var d = 0; d < {depth}; d += {step}) {{"]
    for u in range(step):
        y, x = f"held[(d + {u}) * {tile.others // 4} + tx", f"asked[({first} + d + {u})"
        for j in range(tile.vectors):
            lines.append(f"      let y{u}_{j} = {y} + {j * tile.across}];")
        for b in tile.fours:
            lines.append(f"      let x{u}_{b} = {x} * {tile.own // 4} + {tile.four(b)}];")
        for i, j in _scores(tile):
            lines.append(f"      s{i}_{j} += x{u}_{i // 4}.{FOUR[i % 4]} * y{u}_{j};")
    return [*lines, "    }", "    workgroupBarrier();"]


def _hidden(spec: Forward) -> list[str]:
    """Cap and shift scores, and hide those past what a query sees."""
    lines, hidden = list[str](), list[str]()
    for i, j in _scores(spec.tile):
        if spec.softcap:
            four = ", ".join(f"tanh_f(s{i}_{j}.{x} / p.softcap)" for x in FOUR)
            lines.append(f"    s{i}_{j} = vec4({four}) * p.softcap;")
        for c, x in enumerate(FOUR):
            key = f"(key_first + {4 * spec.tile.across * j + c} + 4 * tx)"
            hidden += hide(spec, f"s{i}_{j}.{x}", key, f"row{i}")
        if spec.bias:
            # Minus infinity as what is hidden; nan stays.
            x = f"s{i}_{j}"
            hidden.append(f"    {x} = select({x}, vec4({LEAST}), {x} < vec4({LEAST}));")
    if spec.given:
        return lines + hidden
    return [*lines, f"    if (key_first + {spec.tile.others} > seen_by_all) {{", *hidden, "    }"]


def _all_of(spec: Forward, of: str, to: str, together: str) -> list[str]:
    """A number of each row from those of all its threads."""
    tile, lines = spec.tile, list[str]()
    for b in tile.fours:
        four = ", ".join(f"{of}{4 * b + q}" for q in range(4))
        lines.append(f"    held[tx * {tile.pitch} + {tile.four(b)}] = vec4({four});")
    lines.append("    workgroupBarrier();")
    for b in tile.fours:
        found = f"held[{tile.four(b)}]"
        for x in range(1, tile.across):
            found = together.format(found, f"held[{x * tile.pitch} + {tile.four(b)}]")
        lines.append(f"    let {to}_{b} = {found};")
    return [*lines, "    workgroupBarrier();"]


def _weights(spec: Forward) -> list[str]:
    """Raise the largest score of each row and weigh by it; what is summed so far gets smaller."""
    tile, vectors, lines = spec.tile, range(spec.tile.vectors), list[str]()
    for i in range(tile.rows):
        found = f"s{i}_0"
        for j in vectors[1:]:
            found = f"max({found}, s{i}_{j})"
        lines.append(f"    let f{i} = {found};")
        lines.append(f"    let own{i} = max(max(f{i}.x, f{i}.y), max(f{i}.z, f{i}.w));")
    lines += _all_of(spec, "own", "found", "max({}, {})")
    for i in range(tile.rows):
        lines += [
            f"    let now{i} = max(high{i}, found_{i // 4}.{FOUR[i % 4]});",
            f"    let scale{i} = exp(high{i} - now{i});",
            f"    high{i} = now{i};",
            *[f"    s{i}_{j} = exp(s{i}_{j} - now{i});" for j in vectors],
            f"    let w{i} = {' + '.join(f's{i}_{j}' for j in vectors)};",
            f"    sum{i} = sum{i} * scale{i} + (w{i}.x + w{i}.y) + (w{i}.z + w{i}.w);",
            *[f"    o{i}_{j} *= scale{i};" for j in _parts(spec)],
        ]
    return lines


def _values(spec: Forward, part: int) -> list[str]:
    """To registers, values of the keys that the threads of a row have at one place."""
    tile, near = spec.tile, spec.columns // 4
    j, c = divmod(part, 4)
    lines, size = list[str](), tile.across * near
    for i, slot in enumerate(range(0, size, tile.threads)):
        e = f"min(lane + {slot}, {size - 1})" if slot + tile.threads > size else f"(lane + {slot})"
        key = f"key_first + {4 * tile.across * j + c} + 4 * ({e} / {near})"
        at = f"v_base + min({key}, p.keys - 1) * p.v_row + {e} % {near}"
        # Past the last key zeros: weights are 0 there, and infinity times 0 is nan.
        found = f"vec4<f32>(in2[{at}])"
        lines.append(f"    let v{part}_{i} = select(vec4<f32>(), {found}, {key} < p.keys);")
    return lines


def _add(spec: Forward) -> list[str]:
    """Add the values by their weights; those that follow are fetched meanwhile."""
    tile, near, lines = spec.tile, spec.columns // 4, list[str]()
    size, step, count = tile.across * near, _unrolled(tile.across), 4 * tile.vectors
    for part in range(count):
        for i, slot in enumerate(range(0, size, tile.threads)):
            inside = f"if (lane + {slot} < {size}) " * (slot + tile.threads > size)
            lines.append(f"    {inside}{{ held[lane + {slot}] = v{part}_{i}; }}")
        j, c = divmod(part, 4)
        for b in tile.fours:
            four = ", ".join(f"s{4 * b + q}_{j}.{FOUR[c]}" for q in range(4))
            at = f"held[{size} + tx * {tile.pitch} + {tile.four(b)}]"
            lines.append(f"    {at} = vec4({four});")
        lines.append("    workgroupBarrier();")
        lines += _values(spec, part + 1) if part + 1 < count else []
        lines.append(f"    for (var k = 0; k < {tile.across}; k += {step}) {{")
        for u in range(step):
            w = f"held[{size} + (k + {u}) * {tile.pitch}"
            lines += [f"      let w{u}_{b} = {w} + {tile.four(b)}];" for b in tile.fours]
            for j in _parts(spec):
                column = f"min(tx + {j * tile.across}, {near - 1})"
                lines.append(f"      let y{u}_{j} = held[(k + {u}) * {near} + {column}];")
                for i in range(tile.rows):
                    lines.append(f"      o{i}_{j} += w{u}_{i // 4}.{FOUR[i % 4]} * y{u}_{j};")
        lines += ["    }", "    workgroupBarrier();"]
    return lines


def _result(spec: Forward) -> list[str]:
    """Store the thread's part of its rows."""
    tile, near = spec.tile, spec.columns // 4
    lines = _all_of(spec, "sum", "all", "{} + {}")
    for i in range(tile.rows):
        row, all_of = f"(query_first + {tile.row(i)})", f"all_{i // 4}.{FOUR[i % 4]}"
        lines += [
            # A query that sees nothing gives zeros.
            f"  let by{i} = select(1.0 / {all_of}, 0.0, {all_of} == 0.0);",
            f"  if ({row} < p.queries) {{",
            f"    let at = (above * p.queries + {row}) * {near} + tx;",
        ]
        for j in _parts(spec):
            inside = f"tx + {j * tile.across} < {near}"
            value = f"vec4<{spec.stored}>(o{i}_{j} * by{i})"
            lines.append(f"    if ({inside}) {{ out0[at + {j * tile.across}] = {value}; }}")
        lines.append("  }")
    return lines
