"""Attention of few queries, as of a token that follows: a workgroup for each query of each head.

Some threads share the product with a key; then each column of values is summed by several.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from .._kernel import Kernel
from .attention import LEAST, Attention, attention_params, base, hide
from .tile import SIGNATURE

_LOADS = 4  # of values in flight


@dataclass(frozen=True, slots=True)
class FewQueries:
    """Threads of a workgroup, which has one query, and the keys that it takes at once."""

    threads: int
    others: int
    own: int = 1

    def workgroup_bytes(self, depth: int, _: int) -> int:
        """Workgroup memory of `few_queries_source`."""
        return 4 * _sharing(depth) * self.others + 20 * self.threads


def _sharing(depth: int) -> int:
    """Threads that a product with a key is shared by: neighbors read neighboring vectors."""
    return gcd(depth // 4, 4)


def few_queries_source(spec: Attention[FewQueries]) -> Kernel:
    """The kernel: what it takes and its parameters are those of `attention_source`."""
    given, tile = spec.given, spec.tile
    inputs = [f"vec4<{spec.stored}>"] * 3 + [{"mask": "u32", "bias": spec.stored}[x] for x in given]
    lines = [
        f"var<workgroup> weights: array<f32, {tile.others * _sharing(spec.depth)}>;",
        f"var<workgroup> sums: array<vec4<f32>, {tile.threads}>;",
        f"var<workgroup> numbers: array<f32, {tile.threads}>;",
        SIGNATURE.format(threads=tile.threads).rstrip(),
        *_place(spec),
        f"  for (var first = 0; first < seen; first += {tile.others}) {{",
        f"    let count = min(seen - first, {tile.others});",
        *_products(spec),
        "    workgroupBarrier();",
        *_scores(spec),
        *_weights(spec),
        "    workgroupBarrier();",
        *_add(spec),
        "    workgroupBarrier();",
        "  }",
        *_result(spec),
        "}\n",
    ]
    return Kernel(
        "\n".join(lines), tuple(inputs), (f"vec4<{spec.stored}>",), attention_params(given)
    )


def _place(spec: Attention[FewQueries]) -> list[str]:
    """Which query the workgroup has, how many keys that may see, and what the thread has of it."""
    share, near = _sharing(spec.depth), spec.columns // 4
    seen = "clamp(row + 1 + p.keys - p.queries, 0, p.keys)" if spec.is_causal else "p.keys"
    return [
        "  let id = linear_group(group, groups);",
        "  if (id >= p.groups) { return; }",
        "  let above = i32(id) / p.tiles;",
        "  let row = i32(id) % p.tiles;",
        "  let head = above % p.heads;",
        "  let batch = above / p.heads;",
        *[base(x, "head / p.share") for x in "kv"],
        *[base(x, "head") for x in ("q", *spec.given)],
        f"  let seen = {seen};",
        f"  let part = lane % {share};",
        *[
            f"  let q{i} = vec4<f32>(in0[q_base + row * p.q_row + part + {share * i}]) * p.scale;"
            for i in range(spec.depth // 4 // share)
        ],
        f"  let x = lane % {near};",
        f"  let y = lane / {near};",
        f"  var high = {LEAST};",
        "  var total = 0.0;",
        "  var o = vec4<f32>();",
    ]


def _products(spec: Attention[FewQueries]) -> list[str]:
    """The thread's parts of products with keys, to workgroup memory."""
    share = _sharing(spec.depth)
    parts = [
        f"dot(q{i}, vec4<f32>(in1[at + {share * i}]))" for i in range(spec.depth // 4 // share)
    ]
    return [
        f"    for (var k = lane / {share}; k < count; k += {spec.tile.threads // share}) {{",
        "      let at = k_base + (first + k) * p.k_row + part;",
        f"      weights[k * {share} + part] = {' + '.join(parts)};",
        "    }",
    ]


def _scores(spec: Attention[FewQueries]) -> list[str]:
    """Scores of the thread's keys in place of the first part, and the largest of all."""
    share, threads = _sharing(spec.depth), spec.tile.threads
    whole = " + ".join(f"weights[k * {share} + {i}]" for i in range(share))
    cap = "    s = tanh_f(s / p.softcap) * p.softcap;"
    return [
        "    var top = high;",
        f"    for (var k = lane; k < count; k += {threads}) {{",
        f"    var s = {whole};",
        *([cap] if spec.softcap else []),
        *hide(spec, "s", "(first + k)", "row"),
        f"      weights[k * {share}] = s;",
        "      top = max(top, s);",
        "    }",
        "    numbers[lane] = top;",
        f"    for (var half = {threads // 2}; half > 0; half /= 2) {{",
        "      workgroupBarrier();",
        "      if (lane < half) { numbers[lane] = max(numbers[lane], numbers[lane + half]); }",
        "    }",
        "    workgroupBarrier();",
        "    let now = numbers[0];",
    ]


def _weights(spec: Attention[FewQueries]) -> list[str]:
    """Weights of the thread's keys; what is summed so far gets smaller."""
    at = f"weights[k * {_sharing(spec.depth)}]"
    return [
        f"    for (var k = lane; k < count; k += {spec.tile.threads}) {{",
        f"      let s = {at};",
        f"      {at} = select(exp(s - now), 0.0, s <= {LEAST});",
        "    }",
        "    let scale = exp(high - now);",
        "    high = now;",
        "    total *= scale;",
        "    o *= scale;",
    ]


def _deep(spec: Attention[FewQueries]) -> int:
    """Threads that share a column of values."""
    return spec.tile.threads // (spec.columns // 4)


def _add(spec: Attention[FewQueries]) -> list[str]:
    """Add the thread's values by their weights."""
    share, deep = _sharing(spec.depth), _deep(spec)
    lines = [f"    for (var k = y; k < count && y < {deep}; k += {_LOADS * deep}) {{"]
    # Memory answers several reads at once: all of a turn come before their first use.
    for i in range(_LOADS):
        key = f"min(k + {i * deep}, count - 1)"
        lines.append(f"      let v{i} = vec4<f32>(in2[v_base + (first + {key}) * p.v_row + x]);")
    for i in range(_LOADS):
        key = f"k + {i * deep}"
        lines += [
            f"      if ({key} < count) {{",
            f"        let w = weights[({key}) * {share}];",
            "        total += w;",
            f"        o += w * v{i};",
            "      }",
        ]
    return [*lines, "    }"]


def _result(spec: Attention[FewQueries]) -> list[str]:
    """Add up what the threads of a column have."""
    near = spec.columns // 4
    return [
        "  sums[lane] = o;",
        "  numbers[lane] = total;",
        "  workgroupBarrier();",
        f"  if (lane < {near}) {{",
        f"    for (var i = 1; i < {_deep(spec)}; i++) {{",
        f"      o += sums[i * {near} + lane];",
        f"      total += numbers[i * {near} + lane];",
        "    }",
        # A query that sees nothing gives zeros.
        "    let by = select(1.0 / total, 0.0, total == 0.0);",
        f"    out0[(above * p.queries + row) * {near} + lane] = vec4<{spec.stored}>(o * by);",
        "  }",
    ]
