"""Kernels over weights in blocks of llama.cpp, whose rows are words of four bytes.

A thread takes groups of 32 numbers. Layouts: github.com/ggml-org/ggml, src/ggml-common.h.
"""

from __future__ import annotations

from typing import Final

from .._kernel import Kernel
from .tile import SIGNATURE

GROUP: Final = 32  # numbers
THREADS: Final = 64
ROWS: Final = 4  # results per vector that a workgroup computes
THICKNESS: Final = 4  # the most vectors

# Numbers of four bits, or of bytes with signs, of a word.
_NIBBLES = "vec4<f32>(vec4<u32>({q}, {q} >> 8u, {q} >> 16u, {q} >> 24u) & vec4<u32>(15u))"
_SIGNED = "(vec4<i32>(bitcast<i32>({q})) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u)"
_BYTES = f"vec4<f32>({_SIGNED})"

# Blocks of one group whose scale, a half, stands before the rest, at an even byte.
_SMALL = """\
  let first = row + (g * {nbytes}u >> 2u);
  let odd = (g * {nbytes}u & 2u) != 0u;
{words}
  let d = unpack2x16float(select(w0, w0 >> 16u, odd)).x;
"""


def _small(nbytes: int) -> str:
    count = (nbytes - 2) // 4
    lines = [f"  let w{i} = words[first + {i}u];" for i in range(count + 1)]
    text = _SMALL.format(nbytes=nbytes, words="\n".join(lines))
    return text + "".join(
        f"  let q{i} = select((w{i} >> 16u) | (w{i + 1} << 16u), w{i + 1}, odd);\n"
        for i in range(count)
    )


def _listed(parts: list[str]) -> str:
    return f"  return Numbers({', '.join(parts)});\n"


def _q4_0() -> str:
    low = [f"d * ({_NIBBLES.format(q=f'q{i}')} - 8.0)" for i in range(4)]
    high = [f"d * ({_NIBBLES.format(q=f'(q{i} >> 4u)')} - 8.0)" for i in range(4)]
    return _small(18) + _listed(low + high)


def _q8_0() -> str:
    return _small(34) + _listed([f"d * {_BYTES.format(q=f'q{i}')}" for i in range(8)])


def _q4_k() -> str:
    values = [f"(words[part + {i}u] >> shift)" for i in range(8)]
    start = """\
  let block = row + (g >> 3u) * 36u;
  let both = unpack2x16float(words[block]);
  let turn = (g & 3u) * 8u;
  let first = words[block + 1u] >> turn;
  let second = words[block + 2u] >> turn;
  let rest = words[block + 3u] >> turn;
  let late = (g & 4u) != 0u;
  let scale = select(first & 63u, (rest & 15u) | ((first >> 2u) & 48u), late);
  let least = select(second & 63u, ((rest >> 4u) & 15u) | ((second >> 2u) & 48u), late);
  let d = both.x * f32(scale);
  let less = both.y * f32(least);
  let part = block + 4u + ((g & 7u) >> 1u) * 8u;
  let shift = (g & 1u) * 4u;
"""
    return start + _listed([f"d * {_NIBBLES.format(q=q)} - less" for q in values])


def _q6_k() -> str:
    low = "(word_at(low + {at}u) >> shift) & 0x0f0f0f0fu"
    high = "((word_at(high + {at}u) >> turn) & 0x03030303u) << 4u"
    start = f"""\
  let block = 4u * row + (g >> 3u) * 210u;
  let half = (g & 7u) >> 2u;
  let quarter = g & 3u;
  let low = block + half * 64u + (quarter & 1u) * 32u;
  let high = block + 128u + half * 32u;
  let shift = (quarter >> 1u) * 4u;
  let turn = quarter * 2u;
  let pair = word_at(block + 192u + half * 8u + quarter * 2u);
  let scales = {_SIGNED.format(q="pair")};
  let d = unpack2x16float(word_at(block + 208u)).x * vec2<f32>(scales.xy);
"""
    parts = []
    for i in range(8):
        q = f"(({low.format(at=4 * i)}) | ({high.format(at=4 * i)}))"
        parts.append(f"d.{'xy'[i // 4]} * ({_BYTES.format(q=q)} - 32.0)")
    return start + _listed(parts)


# By form, the text behind `row`, the first word of a row, and `g`, the number of a group in it.
FORMS: Final = {"Q4_0": _q4_0, "Q4_K": _q4_k, "Q6_K": _q6_k, "Q8_0": _q8_0}


def _functions(form: str, words: str) -> str:
    """``numbers(row, g)``: the 32 numbers of a group."""
    fields = ", ".join(f"v{i}: vec4<f32>" for i in range(8))
    text = f"struct Numbers {{ {fields} }}\n"
    if form == "Q6_K":
        text += """\
fn word_at(byte: u32) -> u32 {
  let at = byte >> 2u;
  if ((byte & 2u) == 0u) { return words[at]; }
  return (words[at] >> 16u) | (words[at + 1u] << 16u);
}
"""
    text += f"fn numbers(row: u32, g: u32) -> Numbers {{\n{FORMS[form]()}}}\n"
    return text.replace("words[", f"{words}[")


def dequantize(form: str, stored: str) -> Kernel:
    """Words to numbers; a thread for each group."""
    lines = "".join(f"  out0[8u * i + {j}u] = vec4<{stored}>(found.v{j});\n" for j in range(8))
    body = f"""\
{_functions(form, "in0")}{SIGNATURE.format(threads=THREADS)}\
  let i = linear_group(group, groups) * {THREADS}u + lane_index;
  if (i >= p.size) {{ return; }}
  let found = numbers(p.offset + i / p.groups * p.words, i % p.groups);
{lines}}}
"""
    params = (("size", "u32"), ("groups", "u32"), ("words", "u32"), ("offset", "u32"))
    return Kernel(body, ("u32",), (f"vec4<{stored}>",), params)


def linear(form: str, stored: str, thickness: int, bias: bool) -> Kernel:
    """Vectors times a matrix in words, each inner product by the threads of a workgroup."""
    vectors, rows = range(thickness), range(ROWS)
    lines = [f"  var c{t}_{r} = vec4<f32>();" for t in vectors for r in rows]
    lines.append(f"  for (var g = lane_index; g < p.groups; g += {THREADS}u) {{")
    for t in vectors:
        at = f"p.x_offset + 8u * ({t}u * p.groups + g)"
        lines += [f"    let x{t}_{j} = vec4<f32>(in0[{at} + {j}u]);" for j in range(8)]
    for r in rows:
        row = f"min(first + {r}u, p.n - 1u)"
        lines += ["    {", f"      let w = numbers(p.offset + {row} * p.words, g);"]
        for t in vectors:
            sums = " + ".join(f"x{t}_{j} * w.v{j}" for j in range(8))
            lines.append(f"      c{t}_{r} += {sums};")
        lines.append("    }")
    lines.append("  }")
    for t in vectors:
        for r in rows:
            place = f"parts[{(t * ROWS + r) * THREADS}u + lane_index]"
            lines.append(f"  {place} = dot(c{t}_{r}, vec4<f32>(1.0));")
    text = "\n".join(lines)
    more = " + f32(in2[p.bias_offset + i32(n) * p.bias_step])" if bias else ""
    body = f"""\
var<workgroup> parts: array<f32, {thickness * ROWS * THREADS}>;
{_functions(form, "in1")}{SIGNATURE.format(threads=THREADS)}\
  let id = linear_group(group, groups);
  if (id >= p.count) {{ return; }}
  let first = id * {ROWS}u;
{text}
  workgroupBarrier();
  if (lane_index >= {thickness * ROWS}u) {{ return; }}
  let n = first + lane_index % {ROWS}u;
  var total = 0.0;
  for (var i = 0u; i < {THREADS}u; i++) {{
    total += parts[lane_index * {THREADS}u + (i + lane_index) % {THREADS}u];
  }}
  if (n < p.n) {{ out0[lane_index / {ROWS}u * p.n + n] = {stored}(total{more}); }}
}}
"""
    names = ("count", "n", "groups", "words", "x_offset", "offset")
    params = tuple((name, "u32") for name in names)
    if bias:
        params += (("bias_offset", "i32"), ("bias_step", "i32"))
    inputs = (f"vec4<{stored}>", "u32", *((stored,) if bias else ()))
    return Kernel(body, inputs, (stored,), params)
