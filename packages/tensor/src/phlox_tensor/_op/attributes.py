"""What users may write for an attribute, and the one form of it that entries get."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from .._errors.classes import ArgumentError, GradientError, ShapeError
from .._errors.keywords import OF_OTHER_TYPES, PADDINGS, advice_for
from .._values.dlpack import item_of
from .._values.dtype import as_dtype
from .._values.number import Scalar, call
from .._values.tensor import Tensor
from ..no_operand import NoOperand, refused_operand

Normalizer = Callable[[Any, str, str, int], Any]  # value, attribute name, op name, rank


_LONGEST: Final = 60


def _shown(value: Any) -> str:
    """A value on one line, however large it is."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def normalize_axis(axis: Any, op: str, rank: int, name: str = "axis") -> int:
    """Return ``axis`` counted from the front.

    Raises:
        ShapeError: when a tensor of this rank has no such axis.
        ArgumentError: when it is not an integer.
    """
    index = _integer(axis, name, op, rank)
    if not -rank <= index < rank:
        expected = f"{-rank} <= {name} < {rank}" if rank else "no axis, since the tensor is 0-d"
        hint = None if rank else "x.reshape(1)"
        raise ShapeError(op, f"{name} out of range", got=index, expected=expected, hint=hint)
    return index % rank


def _axes(value: Any, name: str, op: str, rank: int) -> tuple[int, ...]:
    if value is None:
        return tuple(range(rank))
    items = value if isinstance(value, Sequence) else (value,)
    axes = sorted(normalize_axis(item, op, rank, name) for item in items)
    if len(set(axes)) != len(axes):
        raise ShapeError(op, f"{name} repeats", got=value, expected="each axis once")
    return tuple(axes)


def _axes_in_order(value: Any, name: str, op: str, rank: int) -> tuple[int, ...]:
    """Axes as they are given, which may repeat."""
    items = value if isinstance(value, Sequence) else (value,)
    return tuple(normalize_axis(item, op, rank, name) for item in items)


def _contracted(value: Any, name: str, op: str, rank: int) -> int | tuple[tuple[int, ...], ...]:
    """A number of axes, or the axes of either tensor."""
    if not isinstance(value, Sequence):
        return _integer(value, name, op, rank)
    if isinstance(value, str) or len(value) != 2:
        expected = "an int, or a list of axes for either tensor"
        raise ArgumentError(op, f"{name} is malformed", got=_shown(value), expected=expected)
    return tuple(_integers(item, name, op, rank) for item in value)


def _sections(value: Any, name: str, op: str, rank: int) -> int | tuple[int, ...]:
    """A number of equal parts, or the size of each."""
    single = not isinstance(value, Sequence)
    return (_integer if single else _integers)(value, name, op, rank)


def _axis(value: Any, name: str, op: str, rank: int) -> int:
    return normalize_axis(value, op, rank, name)


def _items(value: Any, name: str, op: str, expected: str) -> tuple[Any, ...]:
    """The items of a list, or of anything else that can be iterated but text."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return tuple(value)
    except TypeError:
        raise ArgumentError(
            op, f"{name} is malformed", got=_shown(value), expected=expected
        ) from None


def _axis_order(value: Any, name: str, op: str, rank: int) -> tuple[int, ...]:
    items = _items(value, name, op, f"{rank} axes, each once")
    order = tuple(normalize_axis(item, op, rank, name) for item in items)
    if sorted(order) != list(range(rank)):
        raise ShapeError(
            op, f"{name} is not a permutation", got=items, expected=f"{rank} axes, each once"
        )
    return order


def _integer(value: Any, name: str, op: str, rank: int) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        hint = advice_for(op, {"unbiased": value}).get("unbiased")  # a flag, in PyTorch
        hint = OF_OTHER_TYPES.get((op, name)) if isinstance(value, Tensor) else hint
        what, got = f"{name} is not an integer", _shown(value)
        raise ArgumentError(op, what, got=got, expected="an int", hint=hint) from None


def _integers(value: Any, name: str, op: str, rank: int) -> tuple[int, ...]:
    items = value if isinstance(value, Sequence) else (value,)
    return tuple(_integer(item, name, op, rank) for item in items)


_AXES_OF_WINDOWS: Final = {1: "(length,)", 2: "(height, width)", 3: "(depth, height, width)"}


def _steps(count: int, least: int) -> Normalizer:
    """A number for each of ``count`` axes that a window moves along; one stands for all."""

    def normalize(value: Any, name: str, op: str, rank: int) -> tuple[int, ...]:
        items = _integers(value, name, op, rank)
        items = items * count if len(items) == 1 else items
        if len(items) != count or min(items) < least:
            expected = f"an int >= {least} or {_AXES_OF_WINDOWS[count]}"
            raise ArgumentError(op, f"{name} is malformed", got=value, expected=expected)
        return items

    return normalize


def _margins_around(count: int) -> Normalizer:
    """(before, after) for each axis that a window moves along, from one number or one for each."""

    def normalize(value: Any, name: str, op: str, rank: int) -> tuple[tuple[int, int], ...]:
        if isinstance(value, str):
            expected, hint = f"an int >= 0 or {_AXES_OF_WINDOWS[count]}", PADDINGS.get(value)
            raise ArgumentError(
                op, f"{name} is a word", got=repr(value), expected=expected, hint=hint
            )
        items = value if isinstance(value, Sequence) else (value,) * count
        if count == 1 and len(items) == 2:  # the sides of the one axis
            items = (items,)
        pairs = tuple(
            _integers(item if isinstance(item, Sequence) else (item, item), name, op, rank)
            for item in items
        )
        if len(pairs) != count or any(len(p) != 2 or min(p) < 0 for p in pairs):
            each = "(before, after)" if count == 1 else f"{count} of (before, after)"
            expected = f"an int >= 0, {_AXES_OF_WINDOWS[count]} or {each}"
            raise ArgumentError(op, f"{name} is malformed", got=value, expected=expected)
        return tuple((p[0], p[1]) for p in pairs)

    return normalize


def _or_none(normalizer: Normalizer) -> Normalizer:
    """The same, where None is a value too."""

    def normalize(value: Any, name: str, op: str, rank: int) -> Any:
        return None if value is None else normalizer(value, name, op, rank)

    return normalize


def _margins(value: Any, name: str, op: str, rank: int) -> tuple[tuple[int, int], ...]:
    """((before, after), ...) for the last axes, filled with (0, 0) for the ones in front."""
    expected = f"at most {rank} pairs (before, after) for the last axes"
    items = _items(value, name, op, expected)
    pairs = tuple(_integers(item, name, op, rank) for item in items)
    if 0 < len(pairs) <= rank and all(len(p) == 2 for p in pairs) and min(map(min, pairs)) < 0:
        cut = ", ".join(f"{max(-low, 0) or ''}:{min(high, 0) or ''}" for low, high in pairs)
        code = f"x[..., {cut}] cuts elements off; pad what is above 0"
        raise ArgumentError(op, f"{name} is below 0", got=value, expected="0 or more", hint=code)
    if len(pairs) > rank or any(len(p) != 2 or min(p) < 0 for p in pairs):
        hint: str | None = None
        if len(items) in range(2, 2 * rank + 1, 2) and all(isinstance(n, int) for n in items):
            flat = tuple(zip(items[::2], items[1::2], strict=True))  # as PyTorch has them
            hint = f"{name}={flat[::-1]}  # as PyTorch's"
            hint += f"; NumPy's is {name}={flat * rank}" if len(flat) == 1 else ""
        raise ArgumentError(op, f"{name} is malformed", got=value, expected=expected, hint=hint)
    return ((0, 0),) * (rank - len(pairs)) + tuple((p[0], p[1]) for p in pairs)


def is_recorded(tensor: Tensor[Any]) -> bool:
    """Whether a derivative flows to a tensor, on its device or on one inside it."""
    while not tensor.requires_grad:
        if tensor.device.inner is None:
            return False
        tensor = tensor.inner()
    return True


def refuse_recorded(value: Any, name: str, op: str) -> None:
    """Keep the derivative of a tensor from being lost by reading it."""
    if isinstance(value, Tensor) and is_recorded(value):
        raise GradientError(
            op,
            f"the derivative of {name} would be lost, since it is read as a plain value",
            got=f"a recorded tensor of shape {value.shape}",
            expected="a number or a tensor without history",
            hint=f"{name}.detach() for its value alone, or ops of tensors, as x * {name}",
        )


def _scalar(value: Any, name: str, op: str, rank: int) -> Any:
    if isinstance(value, Scalar):
        return value
    refuse_recorded(value, name, op)
    if isinstance(value, NoOperand):
        raise refused_operand(op, value)
    plain = item_of(value)
    if not isinstance(plain, bool | int | float):
        raise ArgumentError(op, f"{name} is not a number", got=_shown(value), expected="a number")
    return plain


def _float(value: Any, name: str, op: str, rank: int) -> Any:
    plain = _scalar(value, name, op, rank)
    if isinstance(plain, bool):
        what, hint = f"{name} is not a number", advice_for(op, {"unbiased": plain}).get("unbiased")
        raise ArgumentError(op, what, got=plain, expected="a number", hint=hint)
    return call(float, plain)


def _floats(value: Any, name: str, op: str, rank: int) -> tuple[float, ...]:
    """Numbers that are read, one for each axis."""
    items = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    return tuple(float(_scalar(item, name, op, rank)) for item in items)


def _flag(value: Any, name: str, op: str, rank: int) -> bool:
    plain = _scalar(value, name, op, rank)
    if plain not in (0, 1):
        raise ArgumentError(
            op, f"{name} is not a flag", got=_shown(value), expected="True or False"
        )
    return bool(plain)


def _word(value: Any, name: str, op: str, rank: int) -> str:
    if not isinstance(value, str):
        raise ArgumentError(op, f"{name} is not a word", got=_shown(value), expected="a str")
    return value


def _dtype(value: Any, name: str, op: str, rank: int) -> Any:
    return as_dtype(value, op)


def _index(value: Any, name: str, op: str, rank: int) -> tuple[Any, ...]:
    """A basic index as a tuple; what reads it checks the bounds."""
    items = value if isinstance(value, tuple) else (value,)
    return tuple([_index_item(item, op) for item in items])


def _index_item(item: Any, op: str) -> Any:
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    try:
        return operator.index(item)
    except TypeError:
        raise ArgumentError(
            op,
            "not an index",
            got=type(item).__name__,
            expected="int, slice, None, ..., an Int or Bool tensor",
            hint=f"x[{[*item]}]" if isinstance(item, range | tuple) else None,
        ) from None


NORMALIZERS: Final[dict[str, Normalizer]] = {
    "Axes": _axes,
    "Axes?": _or_none(_axes),
    "AxesInOrder?": _or_none(_axes_in_order),
    "Axis": _axis,
    "Axis?": _or_none(_axis),
    "AxisOrder": _axis_order,
    "Contracted": _contracted,
    "Count": _integer,
    "DType": _dtype,
    "DType?": _or_none(_dtype),
    "Extra": _steps(2, 0),
    "Floats": _floats,
    "Index": _index,
    "Integers": _integers,
    "Margins": _margins,
    "Pair": _steps(2, 1),
    "Pair?": _or_none(_steps(2, 1)),
    "Scalar": _scalar,
    "Scalar?": _or_none(_scalar),
    "Sections": _sections,
    "Shape": _integers,
    "Sides": _margins_around(2),
    "Single": _steps(1, 1),
    "Single?": _or_none(_steps(1, 1)),
    "SingleExtra": _steps(1, 0),
    "SingleSides": _margins_around(1),
    "Triple": _steps(3, 1),
    "Triple?": _or_none(_steps(3, 1)),
    "TripleExtra": _steps(3, 0),
    "TripleSides": _margins_around(3),
    "bool": _flag,
    "float": _float,
    "float?": _or_none(_float),
    "int": _integer,
    "str": _word,
}
