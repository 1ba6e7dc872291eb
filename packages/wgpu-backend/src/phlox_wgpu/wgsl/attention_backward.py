"""Cotangents of attention by tiles: three kernels, none of which has the scores in memory.

The first one finds of each query its largest score, one over the sum of its weights, and the mean
of what its weights receive. With these, the other two make weights anew: one has queries and goes
over keys, the other has keys and goes over the queries that share them, so that every sum has one
thread and one order. Dao et al., 2022.
"""

from __future__ import annotations

from .._kernel import Kernel
from .attention import (
    FOUR,
    LEAST,
    ROWS,
    AttentionTile,
    Lines,
    Tiled,
    add,
    attention_params,
    base,
    contract,
    hide,
    keep,
    largest,
    own_tile,
    place,
    raised,
    result,
    row_of,
    score,
    start,
    total,
    zeros,
)
from .tile import SIGNATURE

_BARRIER = "    workgroupBarrier();"


def backward_bytes(tile: AttentionTile, depth: int, columns: int) -> int:
    """Workgroup memory of a kernel at most."""
    return tile.bytes(depth + columns, tile.held(*[max(depth, columns)] * 2))


def attention_rows(spec: Tiled) -> Kernel:
    """The kernel of the numbers of each query, as vectors whose last one is free.

    Inputs query, key, value, mask if there is one, the cotangent of the result.
    """
    tile = spec.tile
    lines = [
        *_by_queries(spec),
        *start(),
        "  for (var t = 0; t < tiles; t++) {",
        f"    let key_first = t * {tile.others};",
        *_products(spec, ("k", "v")),
        *score(spec),
        *largest(tile),
        _BARRIER,
        *raised(tile),
        "  }",
        *total(tile, "sum", "all"),
        *total(tile, "dot", "received"),
    ]
    for i in ROWS:
        row = f"(query_first + {row_of(i)})"
        lines += [
            # A query that sees nothing has weights of 0.
            f"  let by{i} = select(1.0 / all{i}, 0.0, all{i} == 0.0);",
            f"  if (tx == 0 && {row} < p.queries) {{",
            f"    let row{i} = vec4(high{i}, by{i}, received{i} * by{i}, 0.0);",
            f"    out0[above * p.queries + {row}] = row{i};",
            "  }",
        ]
    return _kernel(spec, lines, 0, ("vec4<f32>",))


def attention_queries(spec: Tiled) -> Kernel:
    """The kernel of the query's cotangent; the numbers of `attention_rows` are the last input."""
    tile = spec.tile
    keys = _lines(spec, "k", "others", "key_first", "p.keys")
    lines = [
        *_by_queries(spec),
        *zeros(tile, spec.depth, "o"),
        *[
            f"  let of{i} = {_numbers(spec)}[above * p.queries"
            f" + min(query_first + {row_of(i)}, p.queries - 1)];"
            for i in ROWS
        ],
        "  for (var t = 0; t < tiles; t++) {",
        f"    let key_first = t * {tile.others};",
        *_products(spec, ("k", "v")),
        *keys.load(),
        *_capping(spec),
        *score(spec),
    ]
    for i in ROWS:
        lines += _cotangent(spec, i, f"of{i}.x", f"of{i}.y", f"of{i}.z")
    lines += [
        *keep(tile, "d", "weights"),
        _BARRIER,
        *keys.store("held"),
        _BARRIER,
        *add(tile, spec.depth, "weights", "held", "o"),
        _BARRIER,
        "  }",
        *result(tile, spec.depth, "p.queries", "out0", spec.stored, "o{i}_{j} * p.scale"),
    ]
    return _kernel(spec, lines, 1, (f"vec4<{spec.stored}>",))


def attention_keys(spec: Tiled) -> Kernel:
    """The kernel of the cotangents of key and value, with inputs as of `attention_queries`."""
    tile = spec.tile
    queries = _lines(spec, "q", "others", "query_first", "p.queries")
    cotangents = _lines(spec, "g", "others", "query_first", "p.queries")
    lines = [
        *_by_keys(spec),
        *zeros(tile, spec.depth, "o"),
        *zeros(tile, spec.columns, "z"),
        "  for (var turn = 0; turn < p.share; turn++) {",
        "  let head = key_head * p.share + turn;",
        *[base(x, "head") for x in ("q", *spec.given, "g")],
        "  for (var t = first; t < tiles; t++) {",
        f"    let query_first = t * {tile.others};",
        *_products(spec, ("q", "g")),
        *cotangents.load(),
        *_capping(spec),
        *_score_of_keys(spec),
        *keep(tile, "w", "weights"),
        _BARRIER,
        *cotangents.store("held"),
        _BARRIER,
        *add(tile, spec.columns, "weights", "held", "z"),
        *queries.load(),
        _BARRIER,
        *keep(tile, "d", "weights"),
        *queries.store("held"),
        _BARRIER,
        *add(tile, spec.depth, "weights", "held", "o"),
        _BARRIER,
        "  }",
        "  }",
        *result(tile, spec.depth, "p.keys", "out0", spec.stored, "o{i}_{j} * p.scale"),
        *result(tile, spec.columns, "p.keys", "out1", spec.stored, "z{i}_{j}"),
    ]
    return _kernel(spec, lines, 1, (f"vec4<{spec.stored}>",) * 2)


def _kernel(spec: Tiled, lines: list[str], numbers: int, outputs: tuple[str, ...]) -> Kernel:
    tile = spec.tile
    held = tile.held(*[max(spec.depth, spec.columns)] * 2)
    memory = tile.memory(held, asked=spec.depth, answered=spec.columns)
    text = [*memory, SIGNATURE.format(threads=tile.threads).rstrip(), *lines, "}\n"]
    vector = f"vec4<{spec.stored}>"
    inputs = (vector,) * 3 + ("u32",) * spec.mask + (vector, *("vec4<f32>",) * numbers)
    return Kernel("\n".join(text), inputs, outputs, attention_params(spec.given, "qkvg"))


def _numbers(spec: Tiled) -> str:
    return f"in{4 + spec.mask}"


def _lines(spec: Tiled, name: str, side: str, first: str, end: str) -> Lines:
    tile = spec.tile
    buffer = {"q": "in0", "k": "in1", "v": "in2", "g": f"in{3 + spec.mask}"}[name]
    width = spec.depth if name in "qk" else spec.columns
    count = tile.own if side == "own" else tile.others
    return Lines(name, buffer, count, width, tile.threads, first, end)


def _by_queries(spec: Tiled) -> list[str]:
    return [
        *place(spec),
        base("g", "head"),
        *_lines(spec, "q", "own", "query_first", "p.queries").turn("asked", "p.scale"),
        *_lines(spec, "g", "own", "query_first", "p.queries").turn("answered"),
    ]


def _by_keys(spec: Tiled) -> list[str]:
    tile = spec.tile
    first = "0"
    if spec.is_causal:
        first = f"max(key_first + p.queries - p.keys, 0) / {tile.others}"
    return [
        "  let id = linear_group(group, groups);",
        "  if (id >= p.groups) { return; }",
        *own_tile(spec, by_keys=True),
        f"  let key_first = own_tile * {tile.own};",
        "  let key_heads = p.heads / p.share;",
        "  let key_head = above % key_heads;",
        "  let batch = above / key_heads;",
        *[base(x, "key_head") for x in "kv"],
        f"  let tx = lane % {tile.across};",
        f"  let ty = lane / {tile.across};",
        f"  let first = {first};",
        f"  let tiles = (p.queries + {tile.others - 1}) / {tile.others};",
        *_lines(spec, "k", "own", "key_first", "p.keys").turn("asked", "p.scale"),
        *_lines(spec, "v", "own", "key_first", "p.keys").turn("answered"),
    ]


def _products(spec: Tiled, others: tuple[str, str]) -> list[str]:
    """Scores, and what their weights receive: `s0` to `d0` and further."""
    tile, lines = spec.tile, []
    first, end = ("key_first", "p.keys") if "k" in others else ("query_first", "p.queries")
    for name, own, to in zip(others, ("asked", "answered"), "sd", strict=True):
        width = spec.depth if to == "s" else spec.columns
        lines += [
            *_lines(spec, name, "others", first, end).turn("held"),
            _BARRIER,
            *contract(tile, width, own, "held", to),
            _BARRIER,
        ]
    return lines


def _capping(spec: Tiled) -> list[str]:
    """How much of a change a cap leaves, from scores that are not capped so far."""
    if not spec.softcap:
        return []
    lines = []
    for i in ROWS:
        four = ", ".join(f"tanh_f(s{i}.{x} / p.softcap)" for x in FOUR)
        lines += [f"    let t{i} = vec4({four});", f"    let cap{i} = 1.0 - t{i} * t{i};"]
    return lines


def _cotangent(spec: Tiled, i: int, high: str, by: str, received: str) -> list[str]:
    """Weights of a row of four scores, and the cotangents of these."""
    cap = f" * cap{i}" if spec.softcap else ""
    return [
        f"    let w{i} = select(exp(s{i} - {high}) * {by}, vec4<f32>(), s{i} <= vec4({LEAST}));",
        f"    d{i} = w{i} * (d{i} - {received}){cap};",
    ]


def _score_of_keys(spec: Tiled) -> list[str]:
    """As `score`, for keys in rows and four queries across."""
    lines = [
        f"    let query{j} = min(query_first + 4 * tx + {j}, p.queries - 1);" for j in range(4)
    ]
    at = "(batch * p.heads + head) * p.queries"
    lines += [f"    let of{j} = {_numbers(spec)}[{at} + query{j}];" for j in range(4)]
    four = {x: ", ".join(f"of{j}.{x}" for j in range(4)) for x in "xyz"}
    lines += [f"    let {x}_of = vec4({four[x]});" for x in "xyz"]
    for i in ROWS:
        key = f"(key_first + {row_of(i)})"
        if spec.softcap:
            lines.append(f"    s{i} = t{i} * p.softcap;")
        for j, x in enumerate(FOUR):
            lines += hide(spec, f"s{i}.{x}", key, f"query{j}")
            past = f"query_first + 4 * tx + {j} >= p.queries"
            lines.append(f"    if ({past}) {{ s{i}.{x} = {LEAST}; }}")
        lines += _cotangent(spec, i, "x_of", "y_of", "z_of")
    return lines
