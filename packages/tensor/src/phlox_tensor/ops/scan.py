"""Running totals along an axis, and differences between neighbors."""

from __future__ import annotations

from .._device.backend import Backend
from .._errors.classes import ShapeError
from .._op.declaration import Attributes, PrepareRule, Specs
from .._op.records import case, refusal
from .._values.dtype import DType, float32
from .._values.tensor import Tensor
from ..reference import scan as ref
from ..shapes import scan as shapes
from . import movement
from ._cases import in_types
from ._families import scan
from .reduction import sum_dtype

_RUNNING = "x: Num; axis: Axis? = None, dtype: DType? = None, include_initial: bool = False -> Num"
_RUNNING_CASES = (
    case((7,)),
    case((3, 4), axis=0),
    case((3, 4), axis=-1, include_initial=True),
    case((2, 3, 4), axis=1),
    case((3, 70), axis=1),
    case((2, 0), axis=1, include_initial=True),
    case((0,)),
    *in_types(),
)


def _prepared(name: str) -> PrepareRule:
    """A rule that fills in the axis of a vector and the type of the sum."""

    def prepare(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
        axis, dtype, include_initial = attributes
        (dtype,) = sum_dtype(specs, (dtype,), backend)
        return shapes.only_axis(name, specs[0].shape, axis), dtype, include_initial

    return prepare


def _with_initial(x: Tensor, axis: int, value: int) -> Tensor:
    """One value more in front."""
    line = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return movement.concat([x.zeros(line) + value, x], axis)


@scan.formula(
    _RUNNING,
    numpy=ref.cumulative_prod,
    shape=shapes.running,
    prepare=_prepared("cumulative_prod"),
    domain=(0.5, 1.5),
    ulp=70,  # half of one for each of 70 factors that is rounded, and for each product of them
    cases=_RUNNING_CASES,
    example="pt.cumulative_prod(pt.asarray([1.0, 2.0, 3.0]))",
    doc="Running product along an axis, in the same types as ``prod``; a vector needs no axis. "
    "With ``include_initial`` a 1 comes first.",
)
def cumulative_prod(x: Tensor, axis: int, dtype: DType, include_initial: bool) -> Tensor:
    """Each pass multiplies by what stands twice as far back."""
    out = x.astype(dtype if dtype.kind == "Int" or dtype.itemsize >= 4 else float32)
    n, reach = x.shape[axis], 1
    front = (slice(None),) * axis
    while reach < n:
        before = out[(*front, slice(0, n - reach))]
        head, rest = out[(*front, slice(0, reach))], out[(*front, slice(reach, n))]
        out = movement.concat([head, rest * before], axis)
        reach *= 2
    out = out.astype(dtype)
    return _with_initial(out, axis, 1) if include_initial else out


cumsum = scan(
    "cumsum",
    "x: Num; axis: Axis = -1, dtype: DType? = None -> Num",
    numpy=ref.cumsum,
    linear=True,
    prepare=sum_dtype,
    ulp=16,
    atol=64,
    example="pt.cumsum(pt.asarray([1.0, 2.0, 3.0]))",
    doc="Running sum along an axis, in the same types as ``sum``.",
)


@scan.formula(
    _RUNNING,
    numpy=ref.cumulative_sum,
    shape=shapes.running,
    prepare=_prepared("cumulative_sum"),
    ulp=16,
    atol=64,
    cases=_RUNNING_CASES,
    example="pt.cumulative_sum(pt.asarray([1.0, 2.0, 3.0]), include_initial=True)",
    doc="Running sum along an axis, in the same types as ``sum``; a vector needs no axis. With "
    "``include_initial`` a 0 comes first.",
)
def cumulative_sum(x: Tensor, axis: int, dtype: DType, include_initial: bool) -> Tensor:
    out = cumsum(x, axis, dtype)
    return _with_initial(out, axis, 0) if include_initial else out


@scan.formula(
    "x: Num, *, prepend: Num?, append: Num?; *, axis: Axis = -1, n: int = 1 -> Num",
    numpy=ref.diff,
    shape=shapes.diff,
    prepare=shapes.prepare_diff,
    linear=True,
    ulp=4,
    atol=8,
    cases=(
        case((7,), None, None),
        case((3, 4), None, None, axis=0),
        case((3, 4), None, None, n=3),
        case((3, 4), None, None, n=0),
        case((2, 3), None, None, n=5),
        case((2, 3), (2, 2), (2, 1), n=2),
        case((3, 4), (1, 4), None, axis=0),
        case((2, 0), None, (2, 3)),
    ),
    refuses=(
        refusal(ShapeError, (2,), None, None, axis=1),
        refusal(ShapeError, (2,), (2, 2), None),
    ),
    example="pt.diff(pt.asarray([1.0, 4.0, 9.0]))",
    doc="Differences between neighbors along an axis, ``n`` times over: ``x[i + 1] - x[i]``. What "
    "is given as ``prepend`` and ``append`` is joined to both ends before.",
)
def diff(x: Tensor, prepend: Tensor | None, append: Tensor | None, axis: int, n: int) -> Tensor:
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = movement.concat(parts, axis)
    front = (slice(None),) * axis
    out = x.to_full_precision() if n > 1 else x
    for _ in range(min(n, x.shape[axis])):
        out = out[(*front, slice(1, None))] - out[(*front, slice(0, -1))]
    return out.astype(x.dtype)


@scan.formula(
    "x: Float; axis: Axis = -1 -> Float",
    numpy=ref.logcumsumexp,
    ulp=16,
    atol=16,
    example="pt.logcumsumexp(pt.asarray([0.0, 0.0, 0.0]))",
    doc="Logarithm of the running sum of exponentials along an axis; none overflows.",
)
def logcumsumexp(x: Tensor, axis: int) -> Tensor:
    """Hillis and Steele, 1986: each element meets the one 1, 2, 4, … places before it."""
    out, n, step = x.to_full_precision(), x.shape[axis], 1
    front = (slice(None),) * axis
    while step < n:
        later = out[(*front, slice(step, None))]
        earlier = out[(*front, slice(0, n - step))]
        kept = out[(*front, slice(0, step))]
        out = movement.concat([kept, later.logaddexp(earlier)], axis)
        step *= 2
    return out.astype(x.dtype)
