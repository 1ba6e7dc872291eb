"""Products of few rows with several matrices, a norm before them and elementwise ops after them.

A kernel that waits for another one takes microseconds to begin, as long as such a product takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._kernel import Kernel
from . import words
from .chain import Chain, function, kept, load, store

THICKNESS = 4  # the most rows
FLOATS = ""  # the form of a matrix that is no words
_VECTOR = 4
_SMALL = "0x1p-96"
# Rows of float32 are multiplied so much smaller, as they are divided only when all is added up.
_SHRINK, _GROW = "0x1p-24", "0x1p24"


@dataclass(frozen=True, slots=True)
class ByRows:
    """Matrices in words: a team of threads shares results that follow each other.

    ``lanes``: threads of a subgroup, which adds up without memory; 0 where that is open.
    """

    team: int
    rows: int
    loads: int
    threads: int
    lanes: int

    @property
    def results(self) -> int:
        """Results of a row that a workgroup computes."""
        return self.threads // self.team * self.rows


@dataclass(frozen=True, slots=True)
class ByColumns:
    """Matrices of floats that lie along the results: neighbors read ``across`` vectors of a row."""

    across: int
    loads: int
    threads: int

    @property
    def results(self) -> int:
        """Results of a row that a workgroup computes."""
        return _VECTOR * self.across


@dataclass(frozen=True, slots=True)
class RowProducts:
    """What a kernel does.

    Attributes:
        form: of the words of the matrices; ``FLOATS`` for none.
        stored: the type of rows and results, and of matrices of floats.
        rows: how many there are.
        matrices: how many there are.
        chain: makes one result of those of all matrices, then of arrays of their shape, then of
            numbers; None where all are results.
        arrays: how many of these there are.
        depth: the length of rows that are normed, which lie in workgroup memory; else 0.
    """

    form: str
    stored: str
    rows: int
    matrices: int
    depth: int
    chain: Chain | None
    arrays: int
    way: ByRows | ByColumns

    @property
    def normed(self) -> bool:
        """Whether rows are divided by their root mean square and multiplied by a weight."""
        return self.depth > 0

    @property
    def first_matrix(self) -> int:
        """Which input is the first matrix."""
        return 1 + self.normed

    @property
    def together(self) -> bool:
        """Whether a workgroup has the results of all matrices."""
        return self.chain is not None

    @property
    def workgroup_bytes(self) -> int:
        """Workgroup memory that the kernel takes at most."""
        held = self.rows * (self.matrices if self.together else 1)
        sums = held * (4 if isinstance(self.way, ByColumns) else self.way.rows) + self.rows
        return 4 * (self.rows * self.depth + sums * self.way.threads)


def row_products(spec: RowProducts) -> Kernel:
    """The kernel: inputs are the rows, the weight of the norm, the matrices, then other arrays."""
    way = spec.way
    element = f"vec4<{spec.stored}>"
    matrix = "u32" if spec.form else element
    row = element if spec.form else spec.stored
    inputs = (*[row] * spec.first_matrix, *[matrix] * spec.matrices, *[spec.stored] * spec.arrays)
    makers = _ByRows(spec, way) if isinstance(way, ByRows) else _ByColumns(spec, way)
    chain = "" if spec.chain is None else function(spec.chain)
    body = kept(chain + makers.text(), "k")
    outputs = (spec.stored,) * (1 if spec.together else spec.matrices)
    return Kernel(body, inputs, outputs, _params(spec), enables=makers.enables)


def _params(spec: RowProducts) -> tuple[tuple[str, str], ...]:
    names = ["groups", "k", "words", *[f"o{i}" for i in range(spec.first_matrix)]]
    for j in range(spec.matrices):
        names += [f"w{j}", f"n{j}", f"tiles{j}"]
    params = [(name, "u32") for name in [*names, *[f"e{i}" for i in range(spec.arrays)]]]
    if spec.normed:
        params.append(("epsilon", "f32"))
    if spec.chain is not None:
        kinds = spec.chain.inputs[spec.matrices + spec.arrays :]
        numbers = {"bool": "u32", "int32": "i32", "uint32": "u32"}
        params += [(f"c{i}", numbers.get(kind, "f32")) for i, kind in enumerate(kinds)]
    return tuple(params)


def _by_matrix(spec: RowProducts, text: Callable[[int], list[str]]) -> list[str]:
    """What the workgroup does with its matrix, or with each where it has all."""
    if spec.together or spec.matrices == 1:
        return [line for j in range(spec.matrices) for line in text(j)]
    lines: list[str] = []
    for j in range(spec.matrices):
        test = f"if (matrix == {j}u) " if j + 1 < spec.matrices else ""
        lines += [f"  {'else ' if j else ''}{test}{{", *text(j), "  }"]
    return lines


def _place(spec: RowProducts) -> list[str]:
    """Which matrix the workgroup has, and which of its results it begins with."""
    lines = ["  var tile = linear_group(group, groups);", "  if (tile >= p.groups) { return; }"]
    if not spec.together:
        lines.append("  var matrix = 0u;")
        for j in range(spec.matrices - 1):
            test = f"matrix == {j}u && tile >= p.tiles{j}"
            lines.append(f"  if ({test}) {{ tile -= p.tiles{j}; matrix = {j + 1}u; }}")
    return [*lines, f"  let first = tile * {spec.way.results}u;"]


def _held(spec: RowProducts) -> range:
    """The matrices of which a thread has sums of its own at once."""
    return range(spec.matrices if spec.together else 1)


def _scale(spec: RowProducts, t: int, total: str) -> list[str]:
    """What sums of a row are multiplied by. Where squares were too large, they are made smaller."""
    many = "f32(p.k)"
    by = f"inverseSqrt({total} / {many} + p.epsilon)"
    if spec.stored == "f16":  # whose squares are not
        return [f"  let by{t} = {by};"]
    count, square = ("p.k / 4u", "dot(small, small)") if spec.form else ("p.k", "small * small")
    return [
        f"  var by{t} = {by} * {_GROW};",
        f"  if ({total} > 3e38) {{",
        "    var all = 0.0;",
        f"    for (var i = 0u; i < {count}; i++) {{",
        f"      let small = in0[p.o0 + {t}u * ({count}) + i] * {_SMALL};",
        f"      all += {square};",
        "    }",
        f"    by{t} = inverseSqrt(all / {many}) * ({_SMALL} * {_GROW});",
        "  }",
    ]


def _weighted(spec: RowProducts) -> list[str]:
    """Rows times the weight of the norm, to workgroup memory; the thread's squares are added up.

    Of rows by fours the first four of each eight lie before all others, so that neighbors read
    neighbors. What rows are divided by is known when all is multiplied, and then taken.
    """
    if not spec.normed:
        return []
    count = spec.depth // 4 if spec.form else spec.depth
    kind, square = ("vec4<f32>", "dot(v, v)") if spec.form else ("f32", "v * v")
    at = f"(i / 8u * 4u + i % 4u) + (i / 4u % 2u) * {count // 2}u" if spec.form else "i"
    lines = [f"  for (var i = lane_index; i < {count}u; i += {spec.way.threads}u) {{"]
    shrink = f" * {_SHRINK}" if spec.stored == "f32" else ""
    lines.append(f"    let weight = {kind}(in1[p.o1 + i]){shrink};")
    for t in range(spec.rows):
        lines += [
            "    {",
            f"      let v = {kind}(in0[p.o0 + {t * count}u + i]);",
            f"      q{t} += {square};",
            f"      row[{t * count}u + {at}] = v * weight;",
            "    }",
        ]
    return [*lines, "  }", "  workgroupBarrier();"]


def _row_memory(spec: RowProducts) -> str:
    if not spec.normed:
        return ""
    count, kind = spec.rows * spec.depth, "f32"
    if spec.form:
        count, kind = count // 4, "vec4<f32>"
    return f"var<workgroup> row: array<{kind}, {count}>;\n"


def _stores(spec: RowProducts, t: int, n: str, totals: list[str]) -> list[str]:
    """Statements that store the result of row `t` and column `n`, which is one of the matrix."""
    chain = spec.chain
    if chain is None:
        own = "matrix == {j}u && " if spec.matrices > 1 else ""
        outs = [
            f"out{j}[{t}u * p.n{j} + {n}] = {spec.stored}({totals[0]});"
            for j in range(spec.matrices)
        ]
        return [
            f"      if ({own.format(j=j)}{n} < p.n{j}) {{ {one} }}" for j, one in enumerate(outs)
        ]
    narrow = "f32(f16({}))" if spec.stored == "f16" else "{}"
    given = [narrow.format(total) for total in totals]
    place = f"{t}u * p.n0 + {n}"
    first = spec.first_matrix + spec.matrices
    for i in range(spec.arrays):
        given.append(load(chain.inputs[len(given)], f"in{first + i}[p.e{i} + {place}]"))
    given += [load(kind, f"p.c{i}") for i, kind in enumerate(chain.inputs[len(given) :])]
    value = store(chain.dtype(chain.outputs[0]), f"chain({', '.join(given)})")
    return [f"      if ({n} < p.n0) {{ out0[{place}] = {value}; }}"]


@dataclass(frozen=True, slots=True)
class _ByRows:
    spec: RowProducts
    way: ByRows

    @property
    def enables(self) -> tuple[str, ...]:
        return ("subgroups",) if self.way.lanes else ()

    def text(self) -> str:
        spec, way = self.spec, self.way
        lines = [*_place(spec), f"  let part = lane_index % {way.team}u;"]
        lines.append(f"  let n = first + lane_index / {way.team}u * {way.rows}u;")
        lines += [f"  var {name} = 0.0;" for name in self._sums()]
        lines += _weighted(spec)
        lines += _by_matrix(spec, self._products)
        lines += self._added()
        if spec.normed:
            for t in range(spec.rows):
                lines += _scale(spec, t, f"q{t}")
        for t in range(spec.rows):
            for r in range(way.rows):
                by = f" * by{t}" if spec.normed else ""
                totals = [f"c{j}_{t}_{r}{by}" for j in _held(spec)]
                lines.append(f"  if (part == {t * way.rows + r}u) {{")
                lines += [*_stores(spec, t, f"(n + {r}u)", totals), "  }"]
        functions = ""
        for j in range(spec.matrices):
            functions += words.functions(spec.form, f"in{spec.first_matrix + j}", str(j))
        return "\n".join(
            [
                words.NUMBERS + functions + _row_memory(spec) + self._memory() + self._signature(),
                *lines,
                "}\n",
            ]
        )

    def _sums(self) -> list[str]:
        spec = self.spec
        names = [
            f"c{j}_{t}_{r}"
            for j in _held(spec)
            for t in range(spec.rows)
            for r in range(self.way.rows)
        ]
        return names + ([f"q{t}" for t in range(spec.rows)] if spec.normed else [])

    def _signature(self) -> str:
        more = ""
        if self.way.lanes:
            more = ",\n        @builtin(subgroup_id) subgroup: u32"
        return (
            f"@compute @workgroup_size({self.way.threads})\n"
            "fn main(@builtin(workgroup_id) group: vec3<u32>,\n"
            "        @builtin(num_workgroups) groups: vec3<u32>,\n"
            f"        @builtin(local_invocation_index) lane_index: u32{more}) {{"
        )

    def _products(self, j: int) -> list[str]:
        way = self.way
        step = way.loads * way.team
        lines = [
            "  {",
            "    var i = part;",
            f"    for (; i + {step - way.team}u < p.k / 8u; i += {step}u) {{",
        ]
        lines += self._turn(j, way.loads)
        lines += ["    }", f"    for (; i < p.k / 8u; i += {way.team}u) {{"]
        return [*lines, *self._turn(j, 1), "    }", "  }"]

    def _turn(self, j: int, loads: int) -> list[str]:
        """Several quarters of groups. Memory answers many reads at once, so they come first."""
        spec, way = self.spec, self.way
        held = j if spec.together else 0
        lines = []
        for u in range(loads):
            lines.append(f"      let i{u} = i + {u * way.team}u;")
            for r in range(way.rows):
                row = f"p.w{j} + min(n + {r}u, p.n{j} - 1u) * p.words"
                lines.append(f"      let w{u}_{r} = numbers{j}({row}, i{u} / 4u, i{u} % 4u);")
        for u in range(loads):
            for t in range(spec.rows):
                lines += self._row(held, u, t)
        return lines

    def _row(self, j: int, u: int, t: int) -> list[str]:
        spec = self.spec
        low, high = f"x{u}_{t}", f"y{u}_{t}"
        if spec.normed:
            first, half = f"{t * spec.depth // 4}u + i{u}", spec.depth // 8
            lines = [
                f"      let {low} = row[{first}];",
                f"      let {high} = row[{first} + {half}u];",
            ]
        else:
            place = f"p.o0 + {t}u * (p.k / 4u) + i{u} / 4u * 8u + i{u} % 4u"
            lines = [f"      let {low} = vec4<f32>(in0[{place}]);"]
            lines.append(f"      let {high} = vec4<f32>(in0[{place} + 4u]);")
        for r in range(self.way.rows):
            w = f"w{u}_{r}"
            both = f"vec2<f32>(dot({low}, {w}.low), dot({high}, {w}.high))"
            lines.append(f"      c{j}_{t}_{r} += dot({w}.scale, {both});")
        return lines

    def _memory(self) -> str:
        way, count = self.way, len(self._sums())
        if way.lanes == way.team and not self.spec.normed:
            return ""
        each = way.threads // way.lanes if way.lanes else way.threads
        return f"var<workgroup> parts: array<f32, {count * each}>;\n"

    def _added(self) -> list[str]:
        """Add up what the threads of a team have; all of them get it."""
        way, names = self.way, self._sums()
        if way.lanes:
            lines = [f"  {name} = subgroupAdd({name});" for name in names]
            if way.lanes == way.team and not self.spec.normed:
                return lines
            each, share = way.threads // way.lanes, way.team // way.lanes
            lines.append(f"  if (lane_index % {way.lanes}u == 0u) {{")
            lines += [f"    parts[{i * each}u + subgroup] = {x};" for i, x in enumerate(names)]
            lines += ["  }", "  workgroupBarrier();"]
            lines.append(f"  let own = lane_index / {way.team}u * {share}u;")
            for i, name in enumerate(names):
                terms = [f"parts[{i * each + s}u + own]" for s in range(share)]
                if name.startswith("q"):  # all threads have seen a part of the row
                    terms = [f"parts[{i * each + s}u]" for s in range(each)]
                lines.append(f"  {name} = {' + '.join(terms)};")
            return lines
        lines = [f"  parts[{i * way.threads}u + lane_index] = {x};" for i, x in enumerate(names)]
        lines += [
            f"  for (var half = {way.team // 2}u; half > 0u; half /= 2u) {{",
            "    workgroupBarrier();",
            "    if (part < half) {",
        ]
        for i in range(len(names)):
            own = f"parts[{i * way.threads}u + lane_index"
            lines.append(f"      {own}] += {own} + half];")
        lines += ["    }", "  }", "  workgroupBarrier();"]
        for i, name in enumerate(names):
            terms = [f"parts[{i * way.threads}u + lane_index - part]"]
            if name.startswith("q"):
                terms = [f"parts[{i * way.threads + s}u]" for s in range(0, way.threads, way.team)]
            lines.append(f"  {name} = {' + '.join(terms)};")
        return lines


@dataclass(frozen=True, slots=True)
class _ByColumns:
    spec: RowProducts
    way: ByColumns
    enables: tuple[str, ...] = ()

    def text(self) -> str:
        spec, way = self.spec, self.way
        lines = [*_place(spec), f"  let x = lane_index % {way.across}u;"]
        lines.append(f"  let y = lane_index / {way.across}u;")
        lines += [f"  var {name} = vec4<f32>();" for name in self._sums()]
        lines += [f"  var q{t} = 0.0;" for t in range(spec.rows) if spec.normed]
        lines += _weighted(spec)
        lines += _by_matrix(spec, self._products)
        lines += self._added()
        lines.append("  if (y == 0u) {")
        for t in range(spec.rows):
            if spec.normed:
                lines += _scale(spec, t, f"q{t}")
            for i, field in enumerate("xyzw"):
                by = f" * by{t}" if spec.normed else ""
                totals = [f"c{j}_{t}.{field}{by}" for j in _held(spec)]
                lines += _stores(spec, t, f"(first + 4u * x + {i}u)", totals)
        memory = f"var<workgroup> parts: array<vec4<f32>, {len(self._sums()) * way.threads}>;\n"
        if spec.normed:
            squares = spec.rows * way.threads
            memory += f"var<workgroup> squares: array<f32, {squares}>;\n{_row_memory(spec)}"
        signature = (
            f"@compute @workgroup_size({way.threads})\n"
            "fn main(@builtin(workgroup_id) group: vec3<u32>,\n"
            "        @builtin(num_workgroups) groups: vec3<u32>,\n"
            "        @builtin(local_invocation_index) lane_index: u32) {"
        )
        return "\n".join([memory + signature, *lines, "  }", "}\n"])

    def _sums(self) -> list[str]:
        spec = self.spec
        return [f"c{j}_{t}" for j in _held(spec) for t in range(spec.rows)]

    def _products(self, j: int) -> list[str]:
        way = self.way
        deep = way.threads // way.across
        lines = [
            "  {",
            f"    let w = p.w{j} + min(first / 4u + x, p.n{j} / 4u - 1u);",
            "    var k = y;",
            f"    for (; k + {(way.loads - 1) * deep}u < p.k; k += {way.loads * deep}u) {{",
            *self._turn(j, way.loads, deep),
            "    }",
            f"    for (; k < p.k; k += {deep}u) {{",
            *self._turn(j, 1, deep),
            "    }",
            "  }",
        ]
        return lines

    def _turn(self, j: int, loads: int, deep: int) -> list[str]:
        spec = self.spec
        held = j if spec.together else 0
        matrix = spec.first_matrix + j
        lines = [
            f"      let b{u} = vec4<f32>(in{matrix}[w + (k + {u * deep}u) * (p.n{j} / 4u)]);"
            for u in range(loads)
        ]
        for u in range(loads):
            for t in range(spec.rows):
                at = f"k + {u * deep}u"
                factor = f"f32(in0[p.o0 + {t}u * p.k + {at}])"
                if spec.normed:
                    factor = f"row[{t * spec.depth}u + {at}]"
                lines.append(f"      c{held}_{t} += {factor} * b{u};")
        return lines

    def _added(self) -> list[str]:
        """Add up what the threads of a column have; the first gets it."""
        way, names = self.way, self._sums()
        lines = [f"  parts[{i * way.threads}u + lane_index] = {x};" for i, x in enumerate(names)]
        lines += [
            f"  for (var half = {way.threads // way.across // 2}u; half > 0u; half /= 2u) {{",
            "    workgroupBarrier();",
            "    if (y < half) {",
        ]
        for i, name in enumerate(names):
            place = f"parts[{i * way.threads}u + lane_index"
            lines.append(f"      {name} += {place} + half * {way.across}u];")
            lines.append(f"      {place}] = {name};")
        return [*lines, "    }", "  }", *self._squares()]

    def _squares(self) -> list[str]:
        """Add up the squares of all threads, in workgroup memory."""
        if not self.spec.normed:
            return []
        way, rows = self.way, range(self.spec.rows)
        lines = [f"  squares[{t * way.threads}u + lane_index] = q{t};" for t in rows]
        lines.append(f"  for (var half = {way.threads // 2}u; half > 0u; half /= 2u) {{")
        lines += ["    workgroupBarrier();", "    if (lane_index < half) {"]
        for t in rows:
            place = f"squares[{t * way.threads}u + lane_index"
            lines.append(f"      {place}] += {place} + half];")
        lines += ["    }", "  }", "  workgroupBarrier();"]
        return [*lines, *[f"  q{t} = squares[{t * way.threads}u];" for t in rows]]
