"""Kernels over weights in blocks of llama.cpp, whose rows are words of four bytes.

A thread takes quarters of groups of 32 numbers.
Layouts: github.com/ggml-org/ggml, src/ggml-common.h.
"""

from __future__ import annotations

from typing import Final

from .._kernel import Kernel
from .tile import SIGNATURE, sums_of_threads

GROUP: Final = 32  # numbers
SHARE: Final = 4  # threads that have a part of a group each
THREADS: Final = 128
ROWS: Final = 2  # results per vector that a workgroup computes
THICKNESS: Final = 4  # the most vectors


def _fields(word: str, bits: int, first: int = 0, less: int = 0) -> str:
    """A field of each byte of a word as numbers, of which something is taken.

    The fields become the last places of powers of two, which takes no conversion: GPUs convert at
    a fraction of the rate at which they add.
    """
    places = (first, first + 8) * 2
    masks = ", ".join(f"{((1 << bits) - 1) << place:#x}u" for place in places)
    powers = ", ".join(f"{(127 + 23 - place) << 23:#x}u" for place in places)
    taken = ", ".join(f"{2 ** (23 - place) + less}.0" for place in places)
    twice = f"vec4<u32>({word}, {word}, ({word}) >> 16u, ({word}) >> 16u)"
    return (
        f"bitcast<vec4<f32>>(({twice} & vec4<u32>({masks})) | vec4<u32>({powers}))"
        f" - vec4<f32>({taken})"
    )


def _signed(word: str) -> str:
    return _fields(f"({word} ^ 0x80808080u)", 8, less=128)


# Blocks of one group whose scale, a half, stands before the rest, at an even byte.
_SMALL = """\
  let first = row + (g * {nbytes}u >> 2u);
  let odd = (g * {nbytes}u & 2u) != 0u;
  let d = unpack2x16float(words[first] >> select(0u, 16u, odd)).x;
"""


def _small(nbytes: int, *places: str) -> str:
    """What finds the scale, and words of the rest by their places."""
    text = _SMALL.format(nbytes=nbytes)
    for i, place in enumerate(places):
        text += f"  let w{i} = words[first + {place} + 1u];\n"
        text += f"  let v{i} = (words[first + {place}] >> 16u) | (w{i} << 16u);\n"
        text += f"  let q{i} = select(v{i}, w{i}, odd);\n"
    return text


def _both(low: str, high: str, scale: str = "d, d") -> str:
    return f"  return Numbers({low}, {high}, vec2<f32>({scale}));\n"


def _q4_0() -> str:
    return _small(18, "quarter") + _both(_fields("q0", 4, 0, 8), _fields("q0", 4, 4, 8))


def _q8_0() -> str:
    return _small(34, "quarter", "quarter + 4u") + _both(_signed("q0"), _signed("q1"))


def _q4_k() -> str:
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
  let part = block + 4u + ((g & 7u) >> 1u) * 8u + quarter;
  let shift = (g & 1u) * 4u;
  let q0 = words[part] >> shift;
  let q1 = words[part + 4u] >> shift;
"""
    low, high = (f"d * ({_fields(q, 4)}) - less" for q in ("q0", "q1"))
    return start + _both(low, high, "1.0, 1.0")


def _q6_k() -> str:
    start = f"""\
  let block = 4u * row + (g >> 3u) * 210u;
  let half = (g & 7u) >> 2u;
  let fourth = g & 3u;
  let low = block + half * 64u + (fourth & 1u) * 32u + 4u * quarter;
  let high = block + 128u + half * 32u + 4u * quarter;
  let shift = (fourth >> 1u) * 4u;
  let turn = fourth * 2u;
  let pair = word_at(block + 192u + half * 8u + fourth * 2u);
  let scales = {_signed("pair")};
  let d = unpack2x16float(word_at(block + 208u)).x * scales.xy;
"""
    for i, at in enumerate((0, 16)):
        start += f"""\
  let q{i} = ((word_at(low + {at}u) >> shift) & 0x0f0f0f0fu)
    | (((word_at(high + {at}u) >> turn) & 0x03030303u) << 4u);
"""
    return start + _both(_fields("q0", 6, less=32), _fields("q1", 6, less=32), "d")


# By form, the text behind `row`, the first word of a row, `g`, the number of a group in it, and
# `quarter`: which four numbers of the group's first half are wanted, and of its second one.
FORMS: Final = {"Q4_0": _q4_0, "Q4_K": _q4_k, "Q6_K": _q6_k, "Q8_0": _q8_0}


NUMBERS: Final = "struct Numbers { low: vec4<f32>, high: vec4<f32>, scale: vec2<f32> }\n"


def functions(form: str, words: str, name: str = "") -> str:
    """``numbers(row, g, quarter)``: numbers of both halves of a group, and their scales.

    `name`: stands behind those of the functions.
    """
    text = ""
    if form == "Q6_K":
        text += """\
fn word_at(byte: u32) -> u32 {
  let at = byte >> 2u;
  if ((byte & 2u) == 0u) { return words[at]; }
  return (words[at] >> 16u) | (words[at + 1u] << 16u);
}
"""
    text += f"fn numbers(row: u32, g: u32, quarter: u32) -> Numbers {{\n{FORMS[form]()}}}\n"
    for known in ("numbers(", "word_at("):
        text = text.replace(known, f"{known[:-1]}{name}(")
    return text.replace("words[", f"{words}[")


def dequantize(form: str, stored: str) -> Kernel:
    """Words to numbers; a thread for each quarter of a group."""
    body = f"""\
{NUMBERS}{functions(form, "in0")}{SIGNATURE.format(threads=THREADS)}\
  let i = linear_group(group, groups) * {THREADS}u + lane_index;
  if (i >= {SHARE}u * p.size) {{ return; }}
  let g = i / {SHARE}u;
  let quarter = i % {SHARE}u;
  let found = numbers(p.offset + g / p.groups * p.words, g % p.groups, quarter);
  out0[8u * g + quarter] = vec4<{stored}>(found.scale.x * found.low);
  out0[8u * g + 4u + quarter] = vec4<{stored}>(found.scale.y * found.high);
}}
"""
    params = (("size", "u32"), ("groups", "u32"), ("words", "u32"), ("offset", "u32"))
    return Kernel(body, ("u32",), (f"vec4<{stored}>",), params)


def linear(form: str, stored: str, thickness: int, bias: bool) -> Kernel:
    """Vectors times a matrix in words, each inner product by the threads of a workgroup."""
    vectors, rows = range(thickness), range(ROWS)
    lines = [f"  var c{t}_{r} = 0.0;" for t in vectors for r in rows]
    lines.append(f"  let quarter = lane_index % {SHARE}u;")
    step = THREADS // SHARE
    lines.append(f"  for (var g = lane_index / {SHARE}u; g < p.groups; g += {step}u) {{")
    for r in rows:
        row = f"p.offset + min(first + {r}u, p.n - 1u) * p.words"
        lines.append(f"    let w{r} = numbers({row}, g, quarter);")
    for t in vectors:
        at = f"p.x_offset + 8u * ({t}u * p.groups + g) + quarter"
        lines.append(f"    let low{t} = vec4<f32>(in0[{at}]);")
        lines.append(f"    let high{t} = vec4<f32>(in0[{at} + 4u]);")
        for r in rows:
            both = f"vec2<f32>(dot(low{t}, w{r}.low), dot(high{t}, w{r}.high))"
            lines.append(f"    c{t}_{r} += dot(w{r}.scale, {both});")
    lines.append("  }")
    for t in vectors:
        for r in rows:
            place = f"parts[{(t * ROWS + r) * THREADS}u + lane_index]"
            lines.append(f"  {place} = c{t}_{r};")
    text = "\n".join(lines)
    more = " + f32(in2[p.bias_offset + i32(n) * p.bias_step])" if bias else ""
    body = f"""\
var<workgroup> parts: array<f32, {thickness * ROWS * THREADS}>;
{NUMBERS}{functions(form, "in1")}{SIGNATURE.format(threads=THREADS)}\
  let id = linear_group(group, groups);
  if (id >= p.count) {{ return; }}
  let first = id * {ROWS}u;
{text}
{sums_of_threads(thickness * ROWS, THREADS)}\
  let n = first + lane_index % {ROWS}u;
  if (n < p.n) {{ out0[lane_index / {ROWS}u * p.n + n] = {stored}(total{more}); }}
}}
"""
    names = ("count", "n", "groups", "words", "x_offset", "offset")
    params = tuple((name, "u32") for name in names)
    if bias:
        params += (("bias_offset", "i32"), ("bias_step", "i32"))
    inputs = (f"vec4<{stored}>", "u32", *((stored,) if bias else ()))
    return Kernel(body, inputs, (stored,), params)
