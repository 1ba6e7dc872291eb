"""What kernels of attention share, and the tiles of its cotangents.

For each tile of other lines a workgroup multiplies to scores. Thread (ty, tx) has rows 4 ty to
4 ty + 3 throughout: of scores the others 4 tx to 4 tx + 3, of the result every so many columns of
four.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

FOUR = "xyzw"
ROWS = range(4)  # of a thread
LEAST = "-3.4028234e38"  # stands for what is hidden: no score is less, but -inf


@dataclass(frozen=True, slots=True)
class AttentionTile:
    """Lines of a workgroup, and others that it takes at once.

    The lines are queries and the others keys, or the other way round.
    """

    own: int
    others: int

    @property
    def across(self) -> int:
        """Threads of a row."""
        return self.others // 4

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return self.own // 4 * self.across

    def parts(self, columns: int) -> range:
        """The vectors of a result that a thread has in each of its rows."""
        return range(-(-columns // 4 // self.across))

    def held(self, depth: int, columns: int) -> int:
        """Vectors of other lines, turned with `depth` elements or as they lie with `columns`."""
        return max(depth * (self.others // 4 + 1), self.others * (columns // 4))

    def memory(self, held: int, **own: int) -> tuple[str, ...]:
        """Declarations: own lines by their elements, others, weights, a number of each thread."""
        by_name = {name: elements * (self.own // 4 + 1) for name, elements in own.items()}
        by_name |= {"held": held, "weights": self.others * (self.own // 4)}
        return (
            *(f"var<workgroup> {x}: array<vec4<f32>, {size}>;" for x, size in by_name.items()),
            f"var<workgroup> largest: array<f32, {self.own * self.across}>;",
        )

    def bytes(self, own: int, held: int) -> int:
        """Workgroup memory of so many elements of own lines and vectors of others."""
        vectors = own * (self.own // 4 + 1) + held + self.others * (self.own // 4)
        return 16 * vectors + 4 * self.own * self.across


def row_of(i: int) -> str:
    """Where a thread's row is among the lines."""
    return f"(4 * ty + {i})"


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
        """What is read in addition to the heads."""
        return tuple(name for name in ("mask", "bias") if getattr(self, name))


Tiled = Attention[AttentionTile]


_SCORES = ("batch", "head", "row", "column")


def attention_params(given: tuple[str, ...], heads: str = "qkv") -> tuple[tuple[str, str], ...]:
    """The parameters, with what is given in addition to the heads."""
    params = [(f"{x}_offset", "i32") for x in (*"qkv", *given, *heads[3:])]
    params += [("groups", "u32")]
    params += [(x, "i32") for x in ("tiles", "heads", "share", "queries", "keys")]
    params += [(f"{x}_{field}", "i32") for x in heads for field in ("batch", "head", "row")]
    params += [(f"{x}_{field}", "i32") for x in given for field in _SCORES]
    params += [("scale", "f32"), ("softcap", "f32")]
    return tuple(params)


@dataclass(frozen=True, slots=True)
class Lines:
    """Queries, keys or values: how a tile of so many comes to workgroup memory."""

    name: str
    buffer: str
    count: int
    width: int
    threads: int
    first: str
    end: str

    @property
    def _near(self) -> int:
        return self.width // 4

    def _at(self, line: str, vector: str) -> str:
        """A vector of a line; past the end of the last one, whose weight is 0."""
        line = f"min({self.first} + {line}, {self.end} - 1)"
        return f"vec4<f32>({self.buffer}[{self.name}_base + {line} * p.{self.name}_row + {vector}])"

    def _slots(self, size: int) -> list[tuple[str, str]]:
        """What each thread takes of so many, and what guards the last, which may be past them."""
        found = []
        for first in range(0, size, self.threads):
            e = f"(lane + {first})"
            found.append((e, f"if ({e} < {size}) " if first + self.threads > size else ""))
        return found

    def turn(self, array: str, by: str = "1.0") -> list[str]:
        """Load and store so that a vector has one element of four lines, in squares of four."""
        lines = []
        for e, guard in self._slots(self.count // 4 * self._near):
            line, vector = f"4 * ({e} / {self._near})", f"{e} % {self._near}"
            lines.append(f"    {guard}{{")
            for q in range(4):
                lines.append(f"      let x{q} = {self._at(f'{line} + {q}', vector)} * {by};")
            for q, x in enumerate(FOUR):
                four = ", ".join(f"x{i}.{x}" for i in range(4))
                at = f"(4 * ({vector}) + {q}) * {self.count // 4 + 1} + {e} / {self._near}"
                lines.append(f"      {array}[{at}] = vec4({four});")
            lines.append("    }")
        return lines

    def load(self) -> list[str]:
        """To registers, as they lie."""
        return [
            f"    let {self.name}{i} = {self._at(f'{e} / {self._near}', f'{e} % {self._near}')};"
            for i, (e, _) in enumerate(self._slots(self.count * self._near))
        ]

    def store(self, array: str) -> list[str]:
        """From registers to workgroup memory."""
        slots = enumerate(self._slots(self.count * self._near))
        return [f"    {guard}{{ {array}[{e}] = {self.name}{i}; }}" for i, (e, guard) in slots]


def base(name: str, head: str) -> str:
    """Where a head starts."""
    return f"  let {name}_base = p.{name}_offset + batch * p.{name}_batch + {head} * p.{name}_head;"


def own_tile(spec: Attention[Any], *, by_keys: bool = False) -> list[str]:
    """Which head a workgroup has, and which lines of it: what has most to see comes first."""
    if not spec.is_causal:
        return ["  let above = i32(id) / p.tiles;", "  let own_tile = i32(id) % p.tiles;"]
    place = "i32(id) / all_heads" if by_keys else "p.tiles - 1 - i32(id) / all_heads"
    return [
        "  let all_heads = i32(p.groups) / p.tiles;",
        "  let above = i32(id) % all_heads;",
        f"  let own_tile = {place};",
    ]


def place(spec: Tiled) -> list[str]:
    """Where the workgroup and the thread stand, and how many tiles of keys there are to see."""
    tile = spec.tile
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
        f"  var tiles = (p.keys + {tile.others - 1}) / {tile.others};",
    ]
    if spec.is_causal:
        last = f"query_first + {tile.own} + p.keys - p.queries"
        lines.append(f"  tiles = min(tiles, max({last} + {tile.others - 1}, 0) / {tile.others});")
    return lines


def zeros(tile: AttentionTile, columns: int, to: str) -> list[str]:
    """Sums of a result."""
    return [f"  var {to}{i}_{j} = vec4<f32>();" for i in ROWS for j in tile.parts(columns)]


def start() -> list[str]:
    """The largest score of each row, and sums of weights and of what they receive."""
    return [f"  var high{i} = {LEAST}; var sum{i} = 0.0; var dot{i} = 0.0;" for i in ROWS]


def _unrolled(length: int) -> int:
    return next(n for n in (16, 8, 4) if length % n == 0)


def contract(tile: AttentionTile, depth: int, own: str, others: str, to: str) -> list[str]:
    """Rows of four products over `depth` elements of turned lines."""
    step = _unrolled(depth)
    lines = [f"    var {to}{i} = vec4<f32>();" for i in ROWS]
    lines += [f"    for (var d = 0; d < {depth}; d += {step}) {{"]
    for u in range(step):
        lines.append(f"      let y{u} = {others}[(d + {u}) * {tile.others // 4 + 1} + tx];")
        lines.append(f"      let x{u} = {own}[(d + {u}) * {tile.own // 4 + 1} + ty];")
        lines += [f"      {to}{i} += x{u}.{FOUR[i]} * y{u};" for i in ROWS]
    return [*lines, "    }"]


def score(spec: Tiled) -> list[str]:
    """Cap, shift and hide the products of queries with keys."""
    lines = []
    for i in ROWS:
        row = f"min(query_first + {row_of(i)}, p.queries - 1)"
        lines.append(f"    let row{i} = {row};")
        if spec.softcap:
            four = ", ".join(f"tanh_f(s{i}.{x} / p.softcap)" for x in FOUR)
            lines.append(f"    s{i} = vec4({four}) * p.softcap;")
        for j, lane in enumerate(FOUR):
            key = f"(key_first + 4 * tx + {j})"
            lines += hide(spec, f"s{i}.{lane}", key, f"row{i}")
    return lines


def largest(tile: AttentionTile) -> list[str]:
    """The largest score of each row to workgroup memory."""
    lines = []
    for i in ROWS:
        four = f"max(max(s{i}.x, s{i}.y), max(s{i}.z, s{i}.w))"
        lines.append(f"    largest[{row_of(i)} * {tile.across} + tx] = {four};")
    return lines


def hide(spec: Attention[Any], score: str, key: str, row: str) -> list[str]:
    """Shift one score by the bias, or hide it."""
    hidden, lines = [f"{key} >= p.keys"], []
    for position, name in enumerate(spec.given):
        column = f"min({key}, p.keys - 1) * p.{name}_column"
        at = f"in{3 + position}[{name}_base + {row} * p.{name}_row + {column}]"
        if name == "mask":
            hidden.append(f"{at} != 0u")
        else:
            lines.append(f"    {score} += f32({at});")
    if spec.is_causal:
        hidden.append(f"{key} > {row} + p.keys - p.queries")
    return [*lines, f"    if ({' || '.join(hidden)}) {{ {score} = {LEAST}; }}"]


def raised(tile: AttentionTile) -> list[str]:
    """Raise the largest score of each row and weigh by it; what is summed so far gets smaller."""
    lines = []
    for i in ROWS:
        first = f"{row_of(i)} * {tile.across}"
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
            f"    dot{i} = dot{i} * scale{i} + dot(w{i}, d{i});",
        ]
    return lines


def keep(tile: AttentionTile, of: str, array: str) -> list[str]:
    """Rows of four to workgroup memory, turned."""
    lines = []
    for j, lane in enumerate(FOUR):
        four = ", ".join(f"{of}{i}.{lane}" for i in ROWS)
        lines.append(f"    {array}[(4 * tx + {j}) * {tile.own // 4} + ty] = vec4({four});")
    return lines


def add(tile: AttentionTile, columns: int, weights: str, held: str, to: str) -> list[str]:
    """Add the other lines, as they lie, by their weights."""
    step, near = _unrolled(tile.others), columns // 4
    lines = [f"    for (var k = 0; k < {tile.others}; k += {step}) {{"]
    for u in range(step):
        lines.append(f"      let w{u} = {weights}[(k + {u}) * {tile.own // 4} + ty];")
        for j in tile.parts(columns):
            column = f"min(tx + {j * tile.across}, {near - 1})"
            lines.append(f"      let y{u}_{j} = {held}[(k + {u}) * {near} + {column}];")
            lines += [f"      {to}{i}_{j} += w{u}.{FOUR[i]} * y{u}_{j};" for i in ROWS]
    return [*lines, "    }"]


def total(tile: AttentionTile, of: str, to: str) -> list[str]:
    """A number of each row, of which every thread of the row has a part."""
    lines = ["  workgroupBarrier();"]
    lines += [f"  largest[{row_of(i)} * {tile.across} + tx] = {of}{i};" for i in ROWS]
    lines.append("  workgroupBarrier();")
    for i in ROWS:
        first = f"{row_of(i)} * {tile.across}"
        parts = " + ".join(f"largest[{first} + {x}]" for x in range(tile.across))
        lines.append(f"  let {to}{i} = {parts};")
    return lines


def result(
    tile: AttentionTile,
    columns: int,
    count: str,
    out: str,
    stored: str,
    value: str,
) -> list[str]:
    """Store the thread's part of its rows, of which there are `count` in a head."""
    lines, near = [], columns // 4
    first = "query_first" if count == "p.queries" else "key_first"
    for i in ROWS:
        row = f"({first} + {row_of(i)})"
        lines += [f"  if ({row} < {count}) {{", f"    let at = (above * {count} + {row}) * {near};"]
        for j in tile.parts(columns):
            store = (
                f"{out}[at + tx + {j * tile.across}] = vec4<{stored}>({value.format(i=i, j=j)});"
            )
            lines.append(f"    if (tx + {j * tile.across} < {near}) {{ {store} }}")
        lines.append("  }")
    return lines
