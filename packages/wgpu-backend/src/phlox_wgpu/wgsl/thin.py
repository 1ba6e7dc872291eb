"""Products with a thin operand: at most four vectors times a matrix.

The matrix is read once, by neighbouring threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._kernel import Kernel
from .tile import SIGNATURE, sums_of_threads

THICKNESS = 4  # the most vectors
ROWS = 4  # results per thread where the matrix is read along the inner dimension
LOADS = 8  # of a thread in flight
_THREADS = 256
_LANES = "xyzw"


@dataclass(frozen=True, slots=True)
class Thin:
    """`thickness` vectors v times a matrix w of one stored type.

    ``k_contiguous``: the matrix lies along the inner dimension, and a workgroup's threads share
    each inner product; else it lies along the results, and each thread has columns of its own and
    a share of the inner dimension: neighbors read ``across`` vectors of a row. ``vector``: the
    matrix is read four elements at a time. ``partial``: f32 results per split.
    """

    thickness: int
    stored: str
    k_contiguous: bool
    vector: bool
    bias: bool
    partial: bool
    across: int = 16


THIN_PARAMS = tuple(
    (name, "u32" if name == "groups" else "i32")
    for name in (
        *("groups", "column_tiles", "batches", "per_split", "n", "k", "inner"),
        *("v_offset", "v_batch1", "v_batch0", "v_outer", "v_depth"),
        *("w_offset", "w_batch1", "w_batch0", "w_outer", "w_depth"),
        *("out_t", "out_n", "out_batch", "out_split"),
    )
)
THIN_BIAS_PARAMS = (("bias_offset", "i32"), ("bias_t", "i32"), ("bias_n", "i32"))


def threads(spec: Thin) -> int:
    """Threads of a workgroup."""
    return 64 if spec.k_contiguous else _THREADS


def columns(spec: Thin) -> int:
    """Results per vector that a workgroup computes."""
    return ROWS if spec.k_contiguous else 4 * spec.across


def thin_source(spec: Thin) -> Kernel:
    """The kernel: inputs v, w and the bias where there is one.

    Parameters `THIN_PARAMS`, `THIN_BIAS_PARAMS`. Strides and the offset of w are in vectors where
    it is read by vectors.
    """
    lines = [
        "  let id = linear_group(group, groups);",
        "  if (id >= p.groups) { return; }",
        f"  let first = (i32(id) % p.column_tiles) * {columns(spec)};",
        "  let above = i32(id) / p.column_tiles;",
        "  let batch = above % p.batches;",
        "  let split = above / p.batches;",
        "  let k_first = split * p.per_split;",
        "  let k_last = min(k_first + p.per_split, p.k);",
        "  let out_base = split * p.out_split + batch * p.out_batch;",
    ]
    for x in "vw":
        place = f"p.{x}_offset + batch / p.inner * p.{x}_batch1 + batch % p.inner * p.{x}_batch0"
        lines.append(f"  let {x}_base = {place};")
    text = _inner_products(spec) if spec.k_contiguous else _columns(spec)
    memory = f"var<workgroup> parts: array<{_memory(spec)}>;\n"
    body = memory + SIGNATURE.format(threads=threads(spec)) + "\n".join([*lines, *text, "}\n"])
    element = f"vec4<{spec.stored}>" if spec.vector else spec.stored
    inputs = (spec.stored, element, *((spec.stored,) if spec.bias else ()))
    params = THIN_PARAMS + (THIN_BIAS_PARAMS if spec.bias else ())
    return Kernel(body, inputs, ("f32" if spec.partial else spec.stored,), params)


def _memory(spec: Thin) -> str:
    if spec.k_contiguous:
        return f"f32, {spec.thickness * ROWS * 64}"
    return f"{'vec4<f32>' if spec.vector else 'f32'}, {spec.thickness * _THREADS}"


def _store(spec: Thin, t: str, n: str, value: str) -> str:
    if spec.bias:
        value += f" + f32(in2[p.bias_offset + {t} * p.bias_t + ({n}) * p.bias_n])"
    target = "f32" if spec.partial else spec.stored
    return f"out0[out_base + {t} * p.out_t + ({n}) * p.out_n] = {target}({value});"


def _inner_products(spec: Thin) -> list[str]:
    four, count = (4 if spec.vector else 1), spec.thickness * ROWS
    rows, vectors = range(ROWS), range(spec.thickness)
    at = "k" if spec.vector else "k * p.w_depth"
    zero = "vec4<f32>()" if spec.vector else "0.0"
    kind = "vec4<f32>" if spec.vector else "f32"
    lines = [f"  let w{r} = w_base + min(first + {r}, p.n - 1) * p.w_outer;" for r in rows]
    lines += [f"  var c{t}_{r} = {zero};" for t in vectors for r in rows]
    lines.append(f"  for (var k = k_first / {four} + lane; k < k_last / {four}; k += 64) {{")
    lines += [f"    let y{r} = {kind}(in1[w{r} + {at}]);" for r in rows]
    for t in vectors:
        places = [
            f"in0[v_base + {t} * p.v_outer + ({four} * k + {j}) * p.v_depth]" for j in range(four)
        ]
        lines.append(f"    let x{t} = {kind}({', '.join(f'f32({place})' for place in places)});")
        lines += [f"    c{t}_{r} += x{t} * y{r};" for r in rows]
    lines.append("  }")
    for t in vectors:
        for r in rows:
            value = f"c{t}_{r}"
            if spec.vector:
                value = f"({value}.x + {value}.y) + ({value}.z + {value}.w)"
            lines.append(f"  parts[{(t * ROWS + r) * 64} + lane] = {value};")
    return [
        *lines,
        sums_of_threads(count, 64),
        f"  let n = first + lane % {ROWS};",
        f"  if (n < p.n) {{ {_store(spec, f'(lane / {ROWS})', 'n', 'total')} }}",
    ]


def _columns(spec: Thin) -> list[str]:
    across = spec.across if spec.vector else 4 * spec.across
    deep = _THREADS // across
    vectors = range(spec.thickness)
    zero, kind = ("vec4<f32>()", "vec4<f32>") if spec.vector else ("0.0", "f32")
    column = (
        "min(first / 4 + x, p.n / 4 - 1)" if spec.vector else "min(first + x, p.n - 1) * p.w_outer"
    )
    lines = [f"  let x = lane % {across};", f"  let y = lane / {across};"]
    lines.append(f"  let w = w_base + {column};")
    lines += [f"  var c{t} = {zero};" for t in vectors]
    lines.append("  var k = k_first + y;")
    # Memory answers many reads at once: all of a turn come before their first use.
    lines.append(f"  for (; k + {(LOADS - 1) * deep} < k_last; k += {LOADS * deep}) {{")
    for u in range(LOADS):
        lines.append(f"    let b{u} = {kind}(in1[w + (k + {u * deep}) * p.w_depth]);")
    for t in vectors:
        for u in range(LOADS):
            place = f"in0[v_base + {t} * p.v_outer + (k + {u * deep}) * p.v_depth]"
            lines.append(f"    c{t} += f32({place}) * b{u};")
    lines.append("  }")
    lines.append(f"  for (; k < k_last; k += {deep}) {{")
    lines.append(f"    let b = {kind}(in1[w + k * p.w_depth]);")
    for t in vectors:
        lines.append(f"    c{t} += f32(in0[v_base + {t} * p.v_outer + k * p.v_depth]) * b;")
    lines.append("  }")
    lines += [f"  parts[{t * _THREADS} + lane] = c{t};" for t in vectors]
    lines += [
        f"  for (var half = {deep // 2}; half > 0; half /= 2) {{",
        "    workgroupBarrier();",
        "    if (y < half) {",
    ]
    for t in vectors:
        own = f"parts[{t * _THREADS} + lane"
        lines.append(f"      {own}] += {own} + half * {across}];")
    lines += ["    }", "  }", "  if (y == 0) {"]
    for t in vectors:
        for j in range(4 if spec.vector else 1):
            n = f"first + 4 * x + {j}" if spec.vector else "first + x"
            value = f"parts[{t * _THREADS} + x]" + (f".{_LANES[j]}" if spec.vector else "")
            lines.append(f"    if ({n} < p.n) {{ {_store(spec, str(t), n, value)} }}")
    lines.append("  }")
    return lines
