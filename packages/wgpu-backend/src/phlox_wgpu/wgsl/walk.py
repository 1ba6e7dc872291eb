"""Text shared by kernels that go through strided arrays of any rank, one thread per step."""

from __future__ import annotations

from .tile import SIGNATURE

WORKGROUP = 256


def walk_params(names: tuple[str, ...], rank: int) -> tuple[tuple[str, str], ...]:
    """Parameters of a walk.

    Size, the lengths of all axes but the first, then the strides of each array.
    """
    return (
        ("size", "u32"),
        *((f"n{axis}", "u32") for axis in range(1, rank)),
        *((f"s_{name}{axis}", "i32") for name in names for axis in range(rank)),
    )


def walk_source(names: tuple[str, ...], rank: int, body: str) -> str:
    """A kernel with step `i` and, for each name, `at_{name}`.

    The dot product of coordinates and strides.
    """
    lines = ["  var rest = i;", *[f"  var at_{name} = 0;" for name in names]]
    for axis in range(rank - 1, -1, -1):
        lines.append(f"  let c{axis} = i32({f'rest % p.n{axis}' if axis else 'rest'});")
        lines += [f"  at_{name} += c{axis} * p.s_{name}{axis};" for name in names]
        if axis:
            lines.append(f"  rest /= p.n{axis};")
    text = "\n".join(lines)
    return f"""\
{SIGNATURE.format(threads=WORKGROUP)}\
  let i = linear_group(group, groups) * {WORKGROUP}u + lane_index;
  if (i >= p.size) {{ return; }}
{text}
{body}}}
"""


def index_of(kind: str, place: str) -> str:
    """An index as i32; what a u32 holds beyond that stays out of range."""
    return f"i32(min({place}, 0x7fffffffu))" if kind == "u32" else place
