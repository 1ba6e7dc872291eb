"""Kernels of pools.

One thread per element of the result, forward and backward, so that no order is left to chance.
"""

from __future__ import annotations

from .._kernel import Kernel
from .tile import SIGNATURE

WORKGROUP = 256

_IMAGE = ("channels", "in_height", "in_width", "out_height", "out_width")
_X = ("x_offset", "x_image", "x_channel", "x_row", "x_column")
_WINDOW = ("kernel_y", "kernel_x", "stride_y", "stride_x", "top", "left")
MAX_PARAMS = ("size", *_IMAGE, *_X, *_WINDOW[2:], "dilation_y", "dilation_x")
AVERAGE_PARAMS = ("size", *_IMAGE, *_X, *_WINDOW, "bottom", "right")
GATHER_PARAMS = (
    *("size", "out_height", "out_width", "in_height", "in_width"),
    *("g_offset", "indices_offset"),
)


def _params(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, "i32") for name in names)


def _main(body: str) -> str:
    return f"""\
{SIGNATURE.format(threads=WORKGROUP)}\
  let i = i32(linear_group(group, groups)) * {WORKGROUP} + lane;
  if (i >= p.size) {{ return; }}
{body}}}
"""


# `column`, `row`, `plane` and the start of the window of result i.
_PLACE = """\
  let column = i % p.out_width;
  let row = i / p.out_width % p.out_height;
  let plane = i / (p.out_width * p.out_height);
  let x_base = p.x_offset + plane / p.channels * p.x_image + plane % p.channels * p.x_channel;
  let first_y = row * p.stride_y - p.top;
  let first_x = column * p.stride_x - p.left;
"""


def max_pool(stored: str, with_indices: bool, kernel: tuple[int, int]) -> Kernel:
    """Values, and with `with_indices` the place of each in its plane; parameters `MAX_PARAMS`.

    The size of the window stands in the text, so that compilers unroll its loops.
    """
    wide = "f32" if stored in ("f32", "f16") else stored
    # With no pixel inside the image, the result is the lowest value.
    lowest = {"f32": "-inf_f32()", "i32": "-2147483647 - 1", "u32": "0u"}[wide]
    take, result = "best = select(best, x, x > best);", "best"
    if with_indices:
        better = "!is_nan_f32(best) && (is_nan_f32(x) || x > best)" if wide == "f32" else "x > best"
        take = f"if (place < 0 || ({better})) {{ best = x; place = y * p.in_width + z; }}"
    elif wide == "f32":  # nan, which is larger than no number, is told by the largest bits
        take += " bits = max(bits, bitcast<u32>(x) & 0x7fffffffu);"
        result = "select(best, nan_f32(), bits > 0x7f800000u)"
    body = f"""\
{_PLACE}\
  var best: {wide} = {lowest};
  var place = -1;
  var bits = 0u;
  for (var j = 0; j < {kernel[0]}; j++) {{
    let y = first_y + j * p.dilation_y;
    if (y < 0 || y >= p.in_height) {{ continue; }}
    for (var k = 0; k < {kernel[1]}; k++) {{
      let z = first_x + k * p.dilation_x;
      if (z < 0 || z >= p.in_width) {{ continue; }}
      let x = {wide}(in0[x_base + y * p.x_row + z * p.x_column]);
      {take}
    }}
  }}
  out0[i] = {stored}({result});
"""
    outputs: tuple[str, ...] = (stored,)
    if with_indices:
        body += "  out1[i] = place;\n"
        outputs = (stored, "i32")
    return Kernel(_main(body), (stored,), outputs, _params(MAX_PARAMS))


def _divisor(include_padding: bool, row: str, column: str) -> str:
    """Lines that define `divisor`, the number of elements that a window is averaged over."""
    low = ("-p.top", "-p.left") if include_padding else ("0", "0")
    high = ("p.in_height", "p.in_width")
    if include_padding:
        high = ("p.in_height + p.bottom", "p.in_width + p.right")
    return f"""\
  let from_y = {row} * p.stride_y - p.top;
  let from_x = {column} * p.stride_x - p.left;
  let tall = min(from_y + p.kernel_y, {high[0]}) - max(from_y, {low[0]});
  let wide = min(from_x + p.kernel_x, {high[1]}) - max(from_x, {low[1]});
  let divisor = f32(tall * wide);
"""


def average_pool(stored: str, include_padding: bool) -> Kernel:
    """Means; parameters `AVERAGE_PARAMS`."""
    body = f"""\
{_PLACE}\
{_divisor(include_padding, "row", "column")}\
  var total = 0.0;
  for (var y = max(first_y, 0); y < min(first_y + p.kernel_y, p.in_height); y++) {{
    for (var z = max(first_x, 0); z < min(first_x + p.kernel_x, p.in_width); z++) {{
      total += f32(in0[x_base + y * p.x_row + z * p.x_column]);
    }}
  }}
  out0[i] = {stored}(total / divisor);
"""
    return Kernel(_main(body), (stored,), (stored,), _params(AVERAGE_PARAMS))


def average_pool_backward(stored: str, include_padding: bool) -> Kernel:
    """Each pixel gathers from the windows that hold it.

    Parameters `AVERAGE_PARAMS` with g in the place of x.
    """
    body = f"""\
  let z = i % p.in_width;
  let y = i / p.in_width % p.in_height;
  let plane = i / (p.in_width * p.in_height);
  let base = p.x_offset + plane / p.channels * p.x_image + plane % p.channels * p.x_channel;
  let low_y = max(y + p.top - p.kernel_y + p.stride_y, 0) / p.stride_y;
  let low_x = max(z + p.left - p.kernel_x + p.stride_x, 0) / p.stride_x;
  let high_y = min((y + p.top) / p.stride_y, p.out_height - 1);
  let high_x = min((z + p.left) / p.stride_x, p.out_width - 1);
  var total = 0.0;
  for (var row = low_y; row <= high_y; row++) {{
    for (var column = low_x; column <= high_x; column++) {{
{_divisor(include_padding, "row", "column")}\
      total += f32(in0[base + row * p.x_row + column * p.x_column]) / divisor;
    }}
  }}
  out0[i] = {stored}(total);
"""
    return Kernel(_main(body), (stored,), (stored,), _params(AVERAGE_PARAMS))


# `low` and `high`, the lowest and highest row that the indices of row `line` of a result name;
# lines behind those of the rows are columns. `base` is where its plane begins.
_BOUNDS = """\
  var low = 2147483647;
  var high = -1;
  if (line < p.out_height) {
    for (var j = 0; j < p.out_width; j++) {
      let at = in1[p.indices_offset + base + line * p.out_width + j] / p.in_width;
      low = min(low, at);
      high = max(high, at);
    }
  } else {
    for (var j = 0; j < p.out_height; j++) {
      let at = in1[p.indices_offset + base + j * p.out_width + line - p.out_height] % p.in_width;
      low = min(low, at);
      high = max(high, at);
    }
  }
"""


def _range(bounds: str) -> str:
    """The `first` and `last` row of a result that may name row `line` of the image, or column."""
    return f"""\
  let down = line < p.in_height;
  let at = select(line - p.in_height, line, down);
  let count = select(p.out_width, p.out_height, down);
  let begin = select(p.out_height, 0, down);
  var first = 2147483647;
  var last = -1;
  for (var j = 0; j < count; j++) {{
    let named = {bounds};
    if (named.x <= at && at <= named.y) {{
      first = min(first, j);
      last = j;
    }}
  }}
"""


# `total`, what pixel `place` gets of the results in `rows` and `columns`, added up in order.
_TOTAL = """\
  var total = 0.0;
  for (var row = rows.x; row <= rows.y; row++) {
    for (var column = columns.x; column <= columns.y; column++) {
      let at = base + row * p.out_width + column;
      if (in1[p.indices_offset + at] == place) { total += f32(in0[p.g_offset + at]); }
    }
  }
"""


def index_bounds(stored: str) -> Kernel:
    """For each plane and line of the result the lowest and highest row or column it names."""
    body = f"""\
  let lines = p.out_height + p.out_width;
  let line = i % lines;
  let base = i / lines * p.out_height * p.out_width;
{_BOUNDS}\
  out0[i] = vec2<i32>(low, high);
"""
    return Kernel(_main(body), (stored, "i32"), ("vec2<i32>",), _params(GATHER_PARAMS))


def index_ranges() -> Kernel:
    """For each plane and line of the image the first and last of the result that may name it."""
    body = f"""\
  let line = i % (p.in_height + p.in_width);
  let base = i / (p.in_height + p.in_width) * (p.out_height + p.out_width);
{_range("in0[base + begin + j]")}\
  out0[i] = vec2<i32>(first, last);
"""
    return Kernel(_main(body), ("vec2<i32>",), ("vec2<i32>",), _params(GATHER_PARAMS))


def max_pool_backward(stored: str) -> Kernel:
    """Each pixel adds up, in order, the cotangents whose index names it.

    Inputs g, indices, ranges.
    """
    body = f"""\
  let place = i % (p.in_width * p.in_height);
  let plane = i / (p.in_width * p.in_height);
  let lines = plane * (p.in_height + p.in_width);
  let rows = in2[lines + place / p.in_width];
  let columns = in2[lines + p.in_height + place % p.in_width];
  let base = plane * p.out_height * p.out_width;
{_TOTAL}\
  out0[i] = {stored}(total);
"""
    return Kernel(_main(body), (stored, "i32", "vec2<i32>"), (stored,), _params(GATHER_PARAMS))


def max_pool_backward_by_planes(stored: str) -> Kernel:
    """The same for small planes, of which each is a workgroup's. Inputs g, indices."""
    body = f"""\
var<workgroup> bounds: array<vec2<i32>, {WORKGROUP}>;
var<workgroup> ranges: array<vec2<i32>, {WORKGROUP}>;
fn bounds_of(line: i32, base: i32) -> vec2<i32> {{
{_BOUNDS}\
  return vec2<i32>(low, high);
}}
fn range_of(line: i32) -> vec2<i32> {{
{_range("bounds[begin + j]")}\
  return vec2<i32>(first, last);
}}
{SIGNATURE.format(threads=WORKGROUP)}\
  let plane = i32(linear_group(group, groups));
  if (plane >= p.size) {{ return; }}
  let base = plane * p.out_height * p.out_width;
  if (lane < p.out_height + p.out_width) {{ bounds[lane] = bounds_of(lane, base); }}
  workgroupBarrier();
  if (lane < p.in_height + p.in_width) {{ ranges[lane] = range_of(lane); }}
  workgroupBarrier();
  let pixels = p.in_height * p.in_width;
  for (var place = lane; place < pixels; place += {WORKGROUP}) {{
    let rows = ranges[place / p.in_width];
    let columns = ranges[p.in_height + place % p.in_width];
{_TOTAL}\
    out0[plane * pixels + place] = {stored}(total);
  }}
}}
"""
    return Kernel(body, (stored, "i32"), (stored,), _params(GATHER_PARAMS))
