"""Cotangents of attention of float16 on tensor cores: the kernels of `attention_backward`.

A subgroup has sixteen queries, or sixteen keys. Weights and their cotangents are of float16 where
they are multiplied, as scores that lie in memory would be; all else is float32.
"""

from __future__ import annotations

from .._kernel import Kernel
from .attention import LEAST, attention_params, base, hide
from .cooperative import SQUARE
from .cooperative_attention import (
    Cooperative,
    CooperativeAttentionTile,
    TileLines,
    add,
    both,
    first_of,
    found,
    four_of,
    memory,
    own_squares,
    place,
    products,
    result,
    scores_of_keys,
    store_four,
    tiles_of_keys,
    zeros,
)
from .tile import SIGNATURE

_BARRIER = "    workgroupBarrier();"


def cooperative_backward_bytes(tile: CooperativeAttentionTile, depth: int, columns: int) -> int:
    """Workgroup memory of a kernel at most: twice scores and weights, and the queries' numbers."""
    return tile.workgroup_bytes(depth, columns, twice=2) + 16 * tile.keys


def cooperative_rows(spec: Cooperative) -> Kernel:
    """The kernel of the numbers of each query, as `attention_rows`."""
    tile, turn = spec.tile, []
    for e in tile.fours:
        turn += scores_of_keys(spec, e)
    turn += [
        *found(tile),
        "    let now = max(high, found);",
        "    let scale = exp(high - now);",
        "    high = now;",
        "    sum *= scale;",
        "    answer *= scale;",
    ]
    for e in tile.fours:
        turn += [
            f"    let x{e} = select(exp(w{e} - high), vec4<f32>(), w{e} <= vec4({LEAST}));",
            f"    sum += (x{e}.x + x{e}.y) + (x{e}.z + x{e}.w);",
            f"    answer += dot(x{e}, {four_of('received', e)});",
        ]
    lines = [
        *_by_queries(spec),
        f"  var high = {LEAST};",
        "  var sum = 0.0;",
        "  var answer = 0.0;",
        *_over_keys(spec, turn),
        both("sum", "{} + {}"),
        both("answer", "{} + {}"),
        "  let by = select(1.0 / sum, 0.0, sum == 0.0);",
        "  let numbers = vec4(high, by, answer * by, 0.0);",
        "  if (half == 0) { out0[above * p.queries + row0] = numbers; }",
    ]
    return _kernel(spec, lines, 0, ("vec4<f32>",), "kv")


def cooperative_queries(spec: Cooperative) -> Kernel:
    """The kernel of the query's cotangent, as `attention_queries`."""
    tile, turn = spec.tile, []
    for e in tile.fours:
        turn += [*_caps(spec, e), *scores_of_keys(spec, e)]
        # The sum of the weights divides at the end: so they use the range of float16.
        turn.append(
            f"    let x{e} = select(exp(w{e} - numbers.x), vec4<f32>(), w{e} <= vec4({LEAST}));"
        )
        cotangent = f"x{e} * ({four_of('received', e)} - numbers.z){_cap(spec, e)}"
        turn.append(store_four(tile, "weights", e, cotangent))
    turn.append("    subgroupBarrier();")
    lines = [
        *_by_queries(spec),
        f"  let numbers = {_numbers(spec)}[above * p.queries + row0];",
        *zeros("o", spec.depth),
        *_over_keys(spec, [*turn, *add(_lines(spec, "k"), "weights", "o")]),
        *result("o", spec.depth, "p.queries", "out0", "(numbers.y * p.scale)"),
    ]
    return _kernel(spec, lines, 1, ("vec4<f16>",), "kv")


def cooperative_keys(spec: Cooperative) -> Kernel:
    """The kernel of the cotangents of key and value, as `attention_keys`."""
    tile = spec.tile
    queries, cotangents = _lines(spec, "q"), _lines(spec, "g")
    numbers = f"{_numbers(spec)}[(batch * p.heads + head) * p.queries"
    number = f"{numbers} + min(t * {tile.keys} + lane, p.queries - 1)]"
    load = [*queries.load(), *cotangents.load(), f"    if (lane < {tile.keys}) {{ n = {number}; }}"]
    first = "0"
    if spec.is_causal:
        first = f"min(group_first, p.keys - {SQUARE}) + p.queries - p.keys"
        first = f"max({first}, 0) / {tile.keys}"
    lines = [
        *place(spec, by_keys=True),
        *[base(x, "key_head") for x in "kv"],
        *queries.setup(),
        *cotangents.setup(),
        *own_squares("k", "in1", spec.depth),
        *own_squares("v", "in2", spec.columns),
        *zeros("o", spec.depth),
        *zeros("z", spec.columns),
        "  var n = vec4<f32>();",
        f"  let first = {first};",
        f"  let tiles = (p.queries + {tile.keys - 1}) / {tile.keys};",
        "  for (var turn = 0; turn < p.share; turn++) {",
        "  let head = key_head * p.share + turn;",
        *[base(x, "head") for x in ("q", *spec.given, "g")],
        "  var t = first;",
        *load,
        "  for (t = first + 1; t <= tiles; t++) {",
        _BARRIER,
        *queries.store(),
        *cotangents.store(),
        f"    if (lane < {tile.keys}) {{ numbers[lane] = n; }}",
        _BARRIER,
        *load,
        f"    let query_first = (t - 1) * {tile.keys};",
        *products(queries, "k", "s", "scores"),
        *products(cotangents, "v", "d", "received"),
        "    subgroupBarrier();",
    ]
    for e in tile.fours:
        lines += _weights_of_queries(spec, e)
    lines += [
        "    subgroupBarrier();",
        *add(cotangents, "weights", "z"),
        *add(queries, "changes", "o"),
        "  }",
        "  }",
        *result("o", spec.depth, "p.keys", "out0", "p.scale"),
        *result("z", spec.columns, "p.keys", "out1", "1.0"),
    ]
    return _kernel(spec, lines, 1, ("vec4<f16>",) * 2, "qg")


def _kernel(
    spec: Cooperative, lines: list[str], numbers: int, outputs: tuple[str, ...], others: str
) -> Kernel:
    tile = spec.tile
    scores, weights = memory(tile, "scores", "weights")
    received, changes = memory(tile, "received", "changes")
    by_keys = others == "qg"
    text = [
        *[_lines(spec, x).memory() for x in others],
        *(scores, received, weights),
        *([changes, f"var<workgroup> numbers: array<vec4<f32>, {tile.keys}>;"] if by_keys else []),
        SIGNATURE.format(threads=tile.threads).rstrip(),
        *lines,
        "}\n",
    ]
    half = "vec4<f16>"
    inputs = (half,) * 3 + ("u32",) * spec.mask + (half, *("vec4<f32>",) * numbers)
    params = attention_params(spec.given, "qkvg")
    return Kernel("\n".join(text), inputs, outputs, params, enables=("wgpu_cooperative_matrix",))


def _numbers(spec: Cooperative) -> str:
    return f"in{4 + spec.mask}"


def _lines(spec: Cooperative, name: str) -> TileLines:
    buffer = {"q": "in0", "k": "in1", "v": "in2", "g": f"in{3 + spec.mask}"}[name]
    width = spec.depth if name in "qk" else spec.columns
    return TileLines(name, buffer, spec.tile, width, "p.keys" if name in "kv" else "p.queries")


def _by_queries(spec: Cooperative) -> list[str]:
    return [
        *place(spec),
        *[base(x, "head / p.share") for x in "kv"],
        *[base(x, "head") for x in ("q", *spec.given, "g")],
        *_lines(spec, "k").setup(),
        *_lines(spec, "v").setup(),
        *own_squares("q", "in0", spec.depth),
        *own_squares("g", f"in{3 + spec.mask}", spec.columns),
        *tiles_of_keys(spec),
    ]


def _over_keys(spec: Cooperative, turn: list[str]) -> list[str]:
    """Tiles of keys: scores, what weights receive, and what is done with both."""
    keys, values = _lines(spec, "k"), _lines(spec, "v")
    return [
        "  var t = 0;",
        *keys.load(),
        *values.load(),
        "  for (t = 1; t <= tiles; t++) {",
        _BARRIER,
        *keys.store(),
        *values.store(),
        _BARRIER,
        *keys.load(),
        *values.load(),
        f"    let key_first = (t - 1) * {spec.tile.keys};",
        *products(keys, "q", "s", "scores"),
        *products(values, "g", "d", "received"),
        "    subgroupBarrier();",
        *turn,
        "  }",
    ]


def _caps(spec: Cooperative, e: int) -> list[str]:
    """How much of a change a cap leaves."""
    if not spec.softcap:
        return []
    four = ", ".join(f"tanh_f(c{e}.{x} * p.scale / p.softcap)" for x in "xyzw")
    return [f"    let c{e} = {four_of('scores', e)};", f"    let t{e} = vec4({four});"]


def _cap(spec: Cooperative, e: int) -> str:
    return f" * (1.0 - t{e} * t{e})" if spec.softcap else ""


def _weights_of_queries(spec: Cooperative, e: int) -> list[str]:
    """Four weights of a thread's key, and their cotangents."""
    tile = spec.tile
    lines = [*_caps(spec, e), f"    var w{e} = {four_of('scores', e)} * p.scale;"]
    if spec.softcap:
        lines.append(f"    w{e} = t{e} * p.softcap;")
    for c, x in enumerate("xyzw"):
        query = f"query_first + {first_of(e)} + {c}"
        lines += hide(spec, f"w{e}.{x}", "row0", f"min({query}, p.queries - 1)")
        lines.append(f"    if ({query} >= p.queries) {{ w{e}.{x} = {LEAST}; }}")
        lines.append(f"    let n{e}_{c} = numbers[{first_of(e)} + {c}];")
    high, by, received = (f"vec4({', '.join(f'n{e}_{c}.{x}' for c in range(4))})" for x in "xyz")
    weight = f"select(exp(w{e} - {high}) * {by}, vec4<f32>(), w{e} <= vec4({LEAST}))"
    change = f"x{e} * ({four_of('received', e)} - {received}){_cap(spec, e)}"
    return [
        *lines,
        f"    let x{e} = {weight};",
        store_four(tile, "weights", e, f"x{e}"),
        store_four(tile, "changes", e, change),
    ]
