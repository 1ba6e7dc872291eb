"""Kernels of norms over channels: moments and sums in parts, and the pass that applies them."""

from __future__ import annotations

from .._kernel import Kernel
from .tile import SIGNATURE

Params = tuple[tuple[str, str], ...]

COLUMNS = 32  # columns per workgroup of `column_sums`; eight threads share one
COLUMN_PARAMS: Params = (
    *(("groups", "u32"), ("tiles", "i32"), ("rows", "i32"), ("length", "i32")),
    *(("per_part", "i32"), ("g_offset", "i32"), ("x_offset", "i32")),
)


def column_sums(stored: str, centered: bool) -> Kernel:
    """Per part of the rows and column: sum of g (x - mean) scale, and `centered` then of g.

    Inputs g, x, `centered` the mean as two floats, scale.
    """
    kind, moments = ("vec2<f32>", 3) if centered else ("f32", 1)
    x = "f32(in1[p.x_offset + at])"
    if centered:
        term = f"vec2<f32>(g * ((({x} - in2[row]) - in3[row]) * in4[row]), g)"
        stores = ["out0[place] = total.x;", "out0[place + p.length] = total.y;"]
    else:
        term, stores = f"g * ({x} * in2[row])", ["out0[place] = total;"]
    body = f"""\
var<workgroup> parts: array<{kind}, 256>;
{SIGNATURE.format(threads=256)}\
  let id = linear_group(group, groups);
  if (id >= p.groups) {{ return; }}
  let part = i32(id) / p.tiles;
  let column = i32(id) % p.tiles * {COLUMNS} + lane % {COLUMNS};
  let last = min((part + 1) * p.per_part, p.rows);
  var total = {kind}();
  if (column < p.length) {{
    for (var row = part * p.per_part + lane / {COLUMNS}; row < last; row += 8) {{
      let at = row * p.length + column;
      let g = f32(in0[p.g_offset + at]);
      total += {term};
    }}
  }}
  parts[lane] = total;
  workgroupBarrier();
  if (lane < {COLUMNS} && column < p.length) {{
    for (var i = 1; i < 8; i++) {{ total += parts[i * {COLUMNS} + lane]; }}
    let place = part * {len(stores)} * p.length + column;
    {" ".join(stores)}
  }}
}}
"""
    return Kernel(body, (stored, stored, *["f32"] * moments), ("f32",), COLUMN_PARAMS)


# Element e of channel c lies at offset + c * channel + e / inner * outer + e % inner.
_STRIDES = ("offset", "channel", "outer")
PART_PARAMS: Params = (
    *(("groups", "u32"), ("parts", "i32"), ("per_part", "i32"), ("length", "i32")),
    ("inner", "i32"),
)
MOMENT_PARAMS: Params = (*PART_PARAMS, *((f"x_{s}", "i32") for s in _STRIDES))
SUM_PARAMS: Params = (
    *MOMENT_PARAMS,
    *((f"g_{s}", "i32") for s in _STRIDES),
    *(("mean_offset", "i32"), ("mean_step", "i32"), ("var_offset", "i32"), ("var_step", "i32")),
    ("epsilon", "f32"),
)

_PART_HEAD = """\
  let id = linear_group(group, groups);
  if (id >= p.groups) { return; }
  let channel = i32(id) / p.parts;
  let first = i32(id) % p.parts * p.per_part;
  let last = min(first + p.per_part, p.length);
"""
_GROUP_SUM = """\
var<workgroup> values: array<vec2<f32>, 256>;
var<workgroup> sums: array<vec2<f32>, 16>;
fn group_sum(value: vec2<f32>, lane: i32) -> vec2<f32> {
  values[lane] = value;
  workgroupBarrier();
  var all = vec2<f32>();
  if (lane < 16) {
    for (var i = 0; i < 16; i++) { all += values[lane * 16 + (i + lane) % 16]; }
    sums[lane] = all;
  }
  workgroupBarrier();
  all = vec2<f32>();
  for (var i = 0; i < 16; i++) { all += sums[i]; }
  return all;
}
"""


def _place(name: str) -> str:
    base = f"p.{name}_offset + channel * p.{name}_channel"
    return f"{base} + e / p.inner * p.{name}_outer + e % p.inner"


_GROUP_MAX = """\
fn group_max(value: f32, lane: i32) -> f32 {
  values[lane] = vec2<f32>(value, 0.0);
  workgroupBarrier();
  if (lane < 16) {
    var own = 0.0;
    for (var i = 0; i < 16; i++) { own = max_f(own, values[lane * 16 + (i + lane) % 16].x); }
    sums[lane] = vec2<f32>(own, 0.0);
  }
  workgroupBarrier();
  var all = 0.0;
  for (var i = 0; i < 16; i++) { all = max_f(all, sums[i].x); }
  return all;
}
"""


def part_moments(stored: str) -> Kernel:
    """Per channel and part: mean as two floats, sum of squared distances from it. Input x.

    The last is that of distances in the unit of the largest one, which is there too.
    """
    loop = "for (e = first + lane; e < last; e += 256)"
    body = f"""\
{_GROUP_SUM}{_GROUP_MAX}{SIGNATURE.format(threads=256)}{_PART_HEAD}\
  var e = first;
  let start = f32(in0[{_place("x")}]);
  var total = 0.0;
  var top = 0.0;
  {loop} {{
    let distance = f32(in0[{_place("x")}]) - start;
    total += distance;
    top = max_f(top, abs(distance));
  }}
  top = group_max(top, lane);
  let unit = unit_of_spread(top);
  let count = f32(last - first);
  let near = start + group_sum(vec2<f32>(total, 0.0), lane).x / count;
  var both = vec2<f32>();
  {loop} {{
    let distance = (f32(in0[{_place("x")}]) - near) * unit;
    both += vec2<f32>(distance, distance * distance);
  }}
  both = group_sum(both, lane);
  let rest = both.x / count;
  let squares = max_f(both.y - both.x * rest, 0.0);
  if (lane == 0) {{ out0[id] = vec4<f32>(near, rest / unit, squares, top); }}
}}
"""
    return Kernel(body, (stored,), ("vec4<f32>",), MOMENT_PARAMS)


JOIN_PARAMS: Params = (
    *(("size", "i32"), ("parts", "i32"), ("per_part", "i32"), ("length", "i32")),
    ("divisor", "f32"),
)


def join_moments(root: bool) -> Kernel:
    """Mean and squares / divisor of each channel from its parts, in order (Chan et al., 1979).

    Of the second the `root`; after them the two floats whose sum is the mean.
    """
    spread = "sqrt_f(squares / p.divisor) / unit" if root else "squares / p.divisor / unit / unit"
    body = f"""\
{SIGNATURE.format(threads=64)}\
  let i = i32(linear_group(group, groups)) * 64 + lane;
  if (i >= p.size) {{ return; }}
  let near = in0[i * p.parts].x;
  var rest = in0[i * p.parts].y;
  var squares = 0.0;
  var top = 0.0;
  for (var part = 0; part < p.parts; part++) {{
    let other = in0[i * p.parts + part];
    top = max_f(top, other.w + abs(other.x - near));
  }}
  let unit = unit_of_spread(top);
  for (var part = 0; part < p.parts; part++) {{
    let other = in0[i * p.parts + part];
    let before = part * p.per_part;
    let after = min(before + p.per_part, p.length);
    let share = f32(after - before) / f32(after);
    let distance = (other.x - near) + (other.y - rest);
    let scaled = distance * unit;
    let ratio = unit / unit_of_spread(other.w);
    rest += distance * share;
    squares += other.z * ratio * ratio + scaled * scaled * share * f32(before);
  }}
  out0[i] = near + rest;
  out1[i] = {spread};
  out2[i] = near;
  out3[i] = rest;
}}
"""
    return Kernel(body, ("vec4<f32>",), ("f32",) * 4, JOIN_PARAMS)


def part_sums(stored: str) -> Kernel:
    """Per part and channel: sums of g times normal, of g, of x - mean. Inputs x, g, mean, var."""
    body = f"""\
{_GROUP_SUM}{SIGNATURE.format(threads=256)}{_PART_HEAD}\
  let mean = f32(in2[p.mean_offset + channel * p.mean_step]);
  let scale = rsqrt_f(f32(in3[p.var_offset + channel * p.var_step]) + p.epsilon);
  var total = vec2<f32>();
  var gaps = vec2<f32>();
  for (var e = first + lane; e < last; e += 256) {{
    let g = f32(in1[{_place("g")}]);
    let gap = f32(in0[{_place("x")}]) - mean;
    total += vec2<f32>(g * (gap * scale), g);
    gaps.x += gap;
  }}
  total = group_sum(total, lane);
  gaps = group_sum(gaps, lane);
  let channels = i32(p.groups) / p.parts;
  let at = i32(id) % p.parts * 3 * channels + channel;
  if (lane == 0) {{
    out0[at] = total.x;
    out0[at + channels] = total.y;
    out0[at + 2 * channels] = gaps.x;
  }}
}}
"""
    return Kernel(body, (stored,) * 4, ("f32",), SUM_PARAMS)


JOIN_SUM_PARAMS: Params = (
    ("channels", "i32"),
    ("parts", "i32"),
    ("count", "f32"),
    *SUM_PARAMS[-5:],
)


def join_sums(stored: str) -> Kernel:
    """Per channel what the parts of `part_sums` come to. Inputs these, mean, var.

    The third is what rounding took from the mean, and the first is of distances from the whole one.
    Where the mean is not that of x, it is taken as it is.
    """
    body = f"""\
{SIGNATURE.format(threads=64)}\
  let channel = i32(linear_group(group, groups)) * 64 + lane;
  if (channel >= p.channels) {{ return; }}
  var total = vec3<f32>();
  for (var part = 0; part < p.parts; part++) {{
    let at = part * 3 * p.channels + channel;
    total += vec3<f32>(in0[at], in0[at + p.channels], in0[at + 2 * p.channels]);
  }}
  let mean = f32(in1[p.mean_offset + channel * p.mean_step]);
  let scale = rsqrt_f(f32(in2[p.var_offset + channel * p.var_step]) + p.epsilon);
  let gap = total.z / p.count;
  let rest = select(0.0, gap, abs(gap) <= abs(mean) / 256.0);
  out0[channel] = total.x - select(0.0, total.y * (rest * scale), is_finite_f32(total.y));
  out0[channel + p.channels] = total.y;
  out0[channel + 2 * p.channels] = rest;
}}
"""
    return Kernel(body, ("f32", stored, stored), ("f32",), JOIN_SUM_PARAMS)


def _vectors(names: tuple[str, ...]) -> Params:
    return tuple((f"{name}_{part}", "i32") for name in names for part in ("offset", "step"))


APPLY_VECTORS = ("weight", "bias", "mean", "var")
APPLY_PARAMS: Params = (
    *(("size", "i32"), ("inner", "i32"), ("channels", "i32"), ("x_offset", "i32")),
    *_vectors(APPLY_VECTORS),
    ("epsilon", "f32"),
)
BACKWARD_VECTORS = ("weight", "mean", "var")
BACKWARD_PARAMS: Params = (
    *(("size", "i32"), ("inner", "i32"), ("channels", "i32"), ("g_offset", "i32")),
    ("x_offset", "i32"),
    *_vectors(BACKWARD_VECTORS),
    *(("epsilon", "f32"), ("count", "f32")),
)


def _loads(names: tuple[str, ...], first: int) -> str:
    return "".join(
        f"  let {name} = f32(in{first + i}[p.{name}_offset + channel * p.{name}_step]);\n"
        for i, name in enumerate(names)
    )


def _each(vector: bool) -> str:
    """The head of a pass over elements, or fours of them inside a channel."""
    return f"""\
{SIGNATURE.format(threads=256)}\
  let i = i32(linear_group(group, groups)) * 256 + lane;
  if (i >= p.size) {{ return; }}
  let channel = i / p.inner % p.channels;
"""


def apply(stored: str, statistics: str, vector: bool, own: bool) -> Kernel:
    """(x - mean) scale weight + bias; inputs x, weight, bias, mean, var (of type `statistics`).

    `own`: the mean is that of x, and what it leaves to a second float is a last input.

    With `vector`, size, inner and the offset of x count fours.
    """
    wide = "vec4<f32>" if vector else "f32"
    element = f"vec4<{stored}>" if vector else stored
    body = f"""\
{_each(vector)}{_loads(APPLY_VECTORS, 1)}\
  let scale = rsqrt_f(var_ + p.epsilon) * weight;
  let distance = ({wide}(in0[p.x_offset + i]) - mean){" - in5[channel]" * own};
  out0[i] = {element}(distance * scale + bias);
}}
"""
    body = body.replace("let var =", "let var_ =")
    inputs = (element, stored, stored, statistics, statistics, *("f32",) * own)
    return Kernel(body, inputs, (element,), APPLY_PARAMS)


def apply_backward(stored: str, vector: bool) -> Kernel:
    """The cotangent of x.

    Inputs g, x, weight, mean, var and what `join_sums` gives.
    """
    wide = "vec4<f32>" if vector else "f32"
    element = f"vec4<{stored}>" if vector else stored
    body = f"""\
{_each(vector)}{_loads(BACKWARD_VECTORS, 2)}\
  let scale = rsqrt_f(var_ + p.epsilon);
  let rest = in5[channel + 2 * p.channels];
  let normal = (({wide}(in1[p.x_offset + i]) - mean) - rest) * scale;
  let pull = normal * (in5[channel] / p.count) + in5[p.channels + channel] / p.count;
  out0[i] = {element}(({wide}(in0[p.g_offset + i]) - pull) * (weight * scale));
}}
"""
    body = body.replace("let var =", "let var_ =")
    inputs = (element, element, stored, stored, stored, "f32")
    return Kernel(body, inputs, (element,), BACKWARD_PARAMS)
