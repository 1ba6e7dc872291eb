"""Shared text of kernels that go through strided arrays of any rank, one thread per step."""

from __future__ import annotations

from collections.abc import Iterable

from .tile import SIGNATURE

WORKGROUP = 256


Params = tuple[tuple[str, str], ...]


def lengths(rank: int, *, first: int = 1, name: str = "n") -> Params:
    """Parameters of a walk: the lengths of its axes, whose first one has no say."""
    return tuple((f"{name}{axis}", "u32") for axis in range(first, rank))


def strides(prefix: str, axes: Iterable[int]) -> Params:
    """Parameters of a walk: the strides of one array along its axes."""
    return tuple((f"{prefix}{axis}", "i32") for axis in axes)


def coordinates(
    rank: int,
    places: dict[str, str],
    *,
    axes: range | None = None,
    length: str = "n",
    bounded: bool = True,
) -> list[str]:
    """Statements that take the step ``rest`` apart: ``c0``, ``c1``, ... are its coordinates.

    Each variable of `places` moves on by coordinate times stride, whose parameters start with the
    given prefix, along `axes` (all, if not given). Not `bounded`: ``rest`` may go on past the
    first axis, whose length is a parameter then.
    """
    lines = []
    for axis in range(rank - 1, -1, -1):
        whole = axis == 0 and bounded
        lines.append(f"  let c{axis} = i32({'rest' if whole else f'rest % p.{length}{axis}'});")
        if axes is None or axis in axes:
            lines += [f"  {at} += c{axis} * p.{prefix}{axis};" for at, prefix in places.items()]
        if not whole:
            lines.append(f"  rest /= p.{length}{axis};")
    return lines


def walk_params(names: tuple[str, ...], rank: int) -> Params:
    """Parameters of a walk.

    Size, the lengths of all axes but the first, then the strides of each array.
    """
    steps = [pair for name in names for pair in strides(f"s_{name}", range(rank))]
    return (("size", "u32"), *lengths(rank), *steps)


def walk_source(names: tuple[str, ...], rank: int, body: str) -> str:
    """A kernel with step `i` and, for each name, `at_{name}`.

    The dot product of coordinates and strides.
    """
    lines = ["  var rest = i;", *[f"  var at_{name} = 0;" for name in names]]
    lines += coordinates(rank, {f"at_{name}": f"s_{name}" for name in names})
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
