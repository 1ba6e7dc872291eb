"""Ops that have a shorter form in source than their row: shapes, slices, places, sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import phlox_tensor as px

from ..._graph import OWN, Key, Node
from ...read._types import to_type
from ...run._growth import META
from ...table.bits import limits
from ...table.resize import as_interpolate
from . import _expr as e
from ._size import COMPARED, Size, UnknownError
from ._traced import Trace, Traced, cases_of, finished, source_of

# Bounds of slices beyond this stand for the end.
FAR: Final = 10**9
Writer = Callable[..., Any]


def ints(value: Any) -> tuple[Any, ...]:
    """The numbers of a value of the host."""
    if not isinstance(value, np.ndarray):
        raise UnknownError("numbers of a tensor")
    flat = value.reshape(-1)
    return tuple(v if isinstance(v, Size) else int(v) for v in flat)


def array(items: list[Any], shape: tuple[int, ...], dtype: Any = None) -> Any:
    """An array of the host, of a type where all elements are known."""
    if not any(isinstance(v, Size) for v in items):
        return np.array(items, dtype).reshape(shape)
    out = np.empty(len(items), object)
    out[:] = items
    return out.reshape(shape)


def shape(node: Node, x: Any) -> Any:
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    sizes = list(x.shape[start:end])
    return array(sizes, (len(sizes),), np.int64)


def size(node: Node, x: Any) -> Any:
    return array([math.prod(x.shape)], (), np.int64)


def reshape(node: Node, x: Traced, to: Any) -> Any:
    given = ints(to)
    if not node.attributes.get("allowzero", 0):
        given = tuple(
            x.shape[i] if not isinstance(n, Size) and n == 0 else n for i, n in enumerate(given)
        )
    return x.reshape(given)


def unsqueeze(node: Node, x: Traced, axes: Any) -> Any:
    found = ints(axes)
    return x.expand_dims(axis=found[0] if len(found) == 1 else found)


def squeeze(node: Node, x: Traced, axes: Any = None) -> Any:
    if axes is None:
        raise UnknownError("which sizes are 1")
    found = ints(axes)
    return x.squeeze(found[0] if len(found) == 1 else found)


def slice_(
    node: Node, x: Traced, starts: Any, ends: Any, axes: Any = None, steps: Any = None
) -> Any:
    first, last = ints(starts), ints(ends)
    chosen = tuple(range(len(first))) if axes is None else ints(axes)
    by = (1,) * len(first) if steps is None else ints(steps)
    rank = x.ndim
    places: list[slice] = [slice(None)] * rank
    for axis, a, b, s in zip(chosen, first, last, by, strict=True):
        if isinstance(s, Size):
            raise UnknownError("a step")
        places[axis % rank] = slice(_start(a, s, x.shape[axis]), _end(b, s), None if s == 1 else s)
    while places and _is_whole(places[-1]):
        places.pop()
    if not places:
        return x
    return x[tuple(places) if len(places) > 1 else places[0]]


def _is_whole(place: slice) -> bool:
    return place.start is None and place.stop is None and place.step is None


def _start(n: Any, step: int, size: Any) -> Any:
    if isinstance(n, Size):
        return n
    if step < 0 and n < -1 and (isinstance(size, Size) or n < -size):
        raise UnknownError("a start that may be before the first, which is the first")
    if (n <= -FAR or n == 0) if step > 0 else n >= FAR:
        return None
    return _near(n)


def _end(n: Any, step: int) -> Any:
    if isinstance(n, Size):
        return n
    return None if (n >= FAR if step > 0 else n <= -FAR) else _near(n)


def _near(n: int) -> int:
    """A bound that is none of the ends; Python cuts it as ONNX does."""
    if abs(n) >= FAR:
        raise UnknownError("a bound beyond the other end")
    return n


def gather(node: Node, x: Traced, indices: Any) -> Any:
    if not isinstance(indices, np.ndarray) or indices.ndim:
        raise UnknownError("indices that are tensors")
    axis = node.attributes.get("axis", 0)
    axis = axis % x.ndim if axis < 0 else axis
    place = indices.reshape(-1)[0]
    place = place if isinstance(place, Size) else int(place)
    return x[(*(slice(None),) * axis, place)] if axis else x[place]


def expand(node: Node, x: Traced, to: Any) -> Any:
    given = ints(to)
    sizes = x.shape
    if len(given) < len(sizes):
        given = (1,) * (len(sizes) - len(given)) + given
    sizes = (1,) * (len(given) - len(sizes)) + sizes
    if all((isinstance(n, int) and n == 1) or n is m for m, n in zip(sizes, given, strict=True)):
        return x if len(given) == x.ndim else x.reshape(sizes)
    return x.broadcast_to(tuple(_met(m, n) for m, n in zip(sizes, given, strict=True)))


def _met(m: Any, n: Any) -> Any:
    """The size in which two meet; one of them is 1, or both are equal."""
    if isinstance(n, int):
        return m if n == 1 else n
    if isinstance(m, int):
        return n if m == 1 else m
    return n if n == m else m


def clip(node: Node, x: Traced, low: Any = None, high: Any = None) -> Any:
    bounds = [None if v is None else _number(v) for v in (low, high)]
    if bounds == [0, None] and x.dtype.kind == "Float":
        return x.relu()
    if None not in bounds:
        return x.clip(*bounds)
    raise UnknownError("one bound")


def _number(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or value.size != 1 or value.dtype == object:
        raise UnknownError("a bound that is a tensor")
    return value.reshape(()).item()


def resize(node: Node, x: Traced, roi: Any = None, scales: Any = None, sizes: Any = None) -> Any:
    """Pictures, by what ``interpolate`` knows."""
    words = node.attributes
    odd = any(words.get(k) for k in ("antialias", "exclude_outside", "axes"))
    odd = odd or words.get("keep_aspect_ratio_policy", "stretch") != "stretch"
    where = words.get("coordinate_transformation_mode", "half_pixel")
    nearest = words.get("nearest_mode", "round_prefer_floor")
    how = as_interpolate(
        words.get("mode", "nearest"), where, nearest, words.get("cubic_coeff_a", -0.75)
    )
    if odd or how is None or x.ndim != 4 or x.dtype.kind != "Float":
        raise UnknownError("another way")
    if scales is not None and scales.size:
        by = [float(s) for s in scales]
        if by[:2] != [1, 1] or any(s != int(s) for s in by):
            raise UnknownError("a scale that is no whole number")
        wanted = tuple(
            n if s == 1 else n * int(s) for n, s in zip(x.shape[2:], by[2:], strict=True)
        )
    else:
        first, second, *rest = ints(sizes)
        if not (first == x.shape[0] and second == x.shape[1]):
            raise UnknownError("other channels")
        wanted = tuple(rest)
        if where == "pytorch_half_pixel" and not _grows(x, wanted):
            raise UnknownError("a size that may be 1, which is another place there")
    return _interpolated(x, wanted, how)


def _grows(x: Traced, wanted: tuple[Any, ...]) -> bool:
    """Whether no axis becomes shorter, in either case."""
    return all(
        min(b - a for a, b in zip(cases_of(n), cases_of(m), strict=True)) >= 0
        for n, m in zip(x.shape[2:], wanted, strict=True)
    )


def _interpolated(x: Traced, wanted: tuple[Any, ...], how: tuple[str, bool]) -> Any:
    named: dict[str, Any] = {"mode": e.text(f'"{how[0]}"')} | (
        {"align_corners": e.text("True")} if how[1] else {}
    )
    size = source_of(wanted)
    if wanted and all(isinstance(n, Size) for n in wanted):
        parts = [_of_shape(n) for n in wanted]
        if None not in parts and parts[0][0] == parts[1][0] and [p[1] for p in parts] == [2, 3]:  # type: ignore[index]
            size = e.item(parts[0][0], [e.text("2:")])  # type: ignore[index]
    expr = e.call("px.interpolate", [x.expr, size], named)
    return finished(x.trace, expr, lambda c: px.interpolate(x.cases[c], cases_of(wanted)[c], *how))


def _of_shape(n: Size) -> tuple[Any, int] | None:
    """The ``x.shape`` and the place of a size that is one."""
    expr = n.expr
    if isinstance(expr, e.Expr) and len(expr.parts) == 5 and expr.parts[1] == "[":
        place = expr.parts[3]
        text = place[0].parts[0] if isinstance(place, tuple) else ""
        base = expr.parts[0]
        if isinstance(text, str) and text.isdigit() and isinstance(base, tuple):
            return base[0], int(text)
    return None


def global_average(node: Node, x: Traced) -> Any:
    return x.mean(axis=tuple(range(2, x.ndim)), keepdims=True)


def attention(node: Node, q: Traced, k: Traced, v: Traced, bias: Traced | None = None) -> Any:
    if not all(isinstance(v, Traced | None) for v in (k, v, bias)):
        raise UnknownError("a constant")
    named: dict[str, Any] = {} if bias is None else {"bias": bias.expr}
    scale = node.attributes.get("scale")
    if scale is not None:
        scale = float(str(np.float32(scale)))
        size = q.shape[-1]
        usual = isinstance(size, int) and math.isclose(scale, size**-0.5, rel_tol=1e-5)
        named |= {} if usual else {"scale": e.literal(scale)}
    expr = e.call("px.attention", [q.expr, k.expr, v.expr], named)

    def made(case: int) -> Any:
        query, key, value = (t.cases[case] for t in (q, k, v))
        shift = None if bias is None else bias.cases[case]
        return px.attention(query, key, value, bias=shift, scale=scale)

    return finished(q.trace, expr, made)


def rounded(node: Node, x: Traced, scale: Any, zero: Any = None) -> Any:
    """Rounding to whole numbers and back, with one scale."""
    known = [v for v in (scale, zero) if v is not None]
    plain = isinstance(zero, np.ndarray | None) and not node.attributes.get("precision", 0)
    if any(v.size != 1 for v in known) or not plain:
        raise UnknownError("one scale")
    code = node.attributes.get("output_dtype", 0)
    dtype = to_type(code) if code else px.uint8 if zero is None else zero.dtype
    least, most = limits(dtype, code)
    bits = (most - least).bit_length()
    off = 0 if zero is None else int(zero.reshape(()))
    step = scale.expr if isinstance(scale, Traced) else e.literal(scale.reshape(())[()])
    words: dict[str, Any] = {} if bits == 8 else {"bits": e.literal(bits)}
    words |= {} if least < 0 else {"signed": e.literal(False)}
    expr = e.call("px.fake_quantize", [x.expr, step, *([e.literal(off)] if off else [])], words)
    return finished(x.trace, expr, lambda case: x.cases[case])


def truth(node: Node, x: Traced, other: Any) -> Any:
    """``x & True`` and ``x == True``, which are x where it has all of the axes."""
    if not isinstance(other, np.ndarray) or other.dtype != bool or not other.all():
        raise UnknownError("no constant truth")
    shapes = [np.broadcast_shapes(case.shape, other.shape) == case.shape for case in x.cases]
    if x.dtype.kind != "Bool" or not all(shapes):
        raise UnknownError("another shape")
    return x


WRITERS: Final[dict[Key, Writer]] = {
    ("", "And"): truth,
    ("", "Clip"): clip,
    ("", "Equal"): truth,
    ("", "Expand"): expand,
    ("", "Gather"): gather,
    ("", "GlobalAveragePool"): global_average,
    ("", "Reshape"): reshape,
    ("", "Resize"): resize,
    ("", "Shape"): shape,
    ("", "Size"): size,
    ("", "Slice"): slice_,
    ("", "Squeeze"): squeeze,
    ("", "Unsqueeze"): unsqueeze,
    (OWN, "Attention"): attention,
    (OWN, "FakeQuantize"): rounded,
    (OWN, "LearnedQuantize"): rounded,
}


def range_(trace: Trace, device: Any, *bounds: Any) -> Traced:
    """Whole numbers between sizes."""
    start, stop, step = (ints(each)[0] for each in bounds)
    args = [stop] if start == 0 and step == 1 else [start, stop, *([] if step == 1 else [step])]
    words = {"dtype": e.member(device, "default_int"), "device": device}
    specs = tuple(px.arange(*cases_of(args)[c], dtype=px.int64, device=META) for c in (0, 1))
    return Traced(trace, e.call("px.arange", [source_of(a) for a in args], words), specs)


# What makes a tensor on a device out of numbers of the host.
MAKERS: Final[dict[Key, Writer]] = {
    ("", "Range"): range_,
}


# What runs on arrays of sizes in the place of a row's function for arrays of numbers.


def _pairwise(of_two: Callable[[Any, Any], Any]) -> Writer:
    def run(node: Node, a: Any, b: Any) -> Any:
        pairs = np.broadcast_arrays(np.asarray(a, object), np.asarray(b, object))
        flat = zip(*(p.reshape(-1) for p in pairs), strict=True)
        return array([of_two(x, y) for x, y in flat], pairs[0].shape)

    return run


def _quotient(x: Any, y: Any) -> Any:
    cases = [c for v in (x, y) for c in cases_of(v)]
    if any(isinstance(c, float) for c in cases):
        return x / y
    if any(c < 0 for c in cases):
        raise UnknownError("the sign of a quotient")
    return x // y


def host_cast(node: Node, x: Any) -> Any:
    dtype = to_type(node.attributes["to"])
    flat = np.asarray(x, object).reshape(-1)
    out: list[Any]
    if dtype.kind == "Int":
        out = [math.trunc(v) if isinstance(v, Size) else int(v) for v in flat]
    elif dtype.kind == "Float":
        out = [v.floating() if isinstance(v, Size) else float(v) for v in flat]
    else:
        out = [_truth(v) for v in flat]
    return array(out, np.shape(x))


def _truth(value: Any) -> Any:
    if not isinstance(value, Size):
        return bool(value)
    if all(isinstance(c, bool) for c in value.cases):
        return value
    raise UnknownError("the truth of a size")


def _comparing(sign: str) -> Writer:
    def holds(x: Any, y: Any) -> Any:
        if isinstance(x, Size):
            return x.holds(sign, y)
        if isinstance(y, Size):
            return y.holds({"<": ">", ">": "<"}.get(sign, sign), x)
        return COMPARED[sign](x, y)

    return _pairwise(holds)


def host_not(node: Node, x: Any) -> Any:
    flat = np.asarray(x, object).reshape(-1)
    out = [Size(e.unary("not ", v.expr), tuple(not c for c in v.cases)) if isinstance(v, Size)
           else not v for v in flat]  # fmt: skip
    return array(out, np.shape(x))


HOST: Final[dict[Key, Writer]] = {
    ("", "Cast"): host_cast,
    ("", "Div"): _pairwise(_quotient),
    ("", "Equal"): _comparing("=="),
    ("", "Greater"): _comparing(">"),
    ("", "Less"): _comparing("<"),
    ("", "Not"): host_not,
}
