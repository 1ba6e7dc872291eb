"""Operands prepared for an op: one device, one element type of a kind, numbers placed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import inf, prod
from typing import Any, Final, NoReturn

import numpy as np

from .._device.backend import Backend, is_inside
from .._device.finding import default_device
from .._errors.called import rename
from .._errors.classes import ArgumentError, DeviceError, DTypeError, KindError, ShapeError
from .._errors.foreign import type_name
from .._errors.keywords import OF_OTHER_KINDS, OF_OTHER_TYPES
from .._op.declaration import Op
from .._op.signature import Operand
from .._values.dlpack import advice, item_of
from .._values.dtype import DType, bool_, number_for, promote
from .._values.kinds import KIND_SETS
from .._values.number import Number, Scalar, plain
from .._values.tensor import Tensor
from ..no_operand import NoOperand, refused_operand

# What an address of 64 bits reaches in elements of the widest type, and room to spare.
_MOST_ELEMENTS: Final = 2**56
_INT_BITS: Final = 63  # entries take integers of 64 bits with their sign


def prepare_operands(op: Op, operands: tuple[Any, ...]) -> tuple[Backend, list[Any]]:
    """The device of a call and its operands as the entry gets them, still wrapped in Tensors.

    Raises:
        DeviceError: operands on two base devices.
        DTypeError: element types that do not combine, or that the device lacks.
    """
    backend = device_of(op.name, operands)
    try:
        return backend, _unify(op, _on_backend(op, operands, backend), backend)
    except (ArgumentError, KindError) as error:
        if _in_another_order(op, operands):
            names = [o.name for o in op.signature.operands if not o.optional]
            names += [f"{a.name}=..." for a in op.signature.attributes if a.name == "axis"]
            rename(error, op.name, hint=f"px.{op.name}({', '.join(names)}), in this order")
        raise


def _in_another_order(op: Op, operands: tuple[Any, ...]) -> bool:
    """Whether tensors fit once they change places, the first or a number among them.

    What may be left out has to fit in no place: others have another argument there.
    """
    declared = [*op.signature.operands]
    if len(declared) > 3 or any(each.variadic for each in declared):
        return False
    first, *rest = operands
    moved = not _fits(declared[0], first) or any(
        isinstance(x, Scalar) and each.kind == "Int"
        for each, x in zip(declared[1:], rest, strict=True)
    )
    needed = [each for each in declared if not each.optional]
    orders = [*permutations(operands), *permutations(operands[: len(needed)])] if moved else ()
    return any(all(map(_fits, declared, order)) for order in orders)


def _fits(declared: Operand, item: Any) -> bool:
    """Whether an operand is of a kind that is declared; a number fits no place of indices."""
    if isinstance(item, Tensor):
        return item.dtype.kind in KIND_SETS[declared.kind]
    return (
        declared.optional
        if item is None
        else isinstance(item, Scalar) and declared.kind not in ("Bool", "Int")
    )


def _flat(operands: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for item in operands:
        out.extend(item) if isinstance(item, list | tuple) else out.append(item)
    return out


def device_of(name: str, operands: Sequence[Any]) -> Backend:
    """The outermost backend among the operands; all others must lie inside it."""
    backend: Backend | None = None
    for item in _flat(operands):
        if not isinstance(item, Tensor) or item.device is backend:
            continue
        if backend is None or is_inside(backend, item.device):
            backend = item.device
        elif not is_inside(item.device, backend):
            raise _apart(name, backend, item.device)
    return default_device() if backend is None else backend


def _apart(name: str, a: Backend, b: Backend) -> DeviceError:
    """The error for tensors that no device has both of."""
    transforms = [found for found in map(_transformed, (a, b)) if found is not None]
    if a.base is b.base and len(transforms) == 1:
        outer = b if _transformed(a) is not None else a
        return DeviceError(
            name,
            "the function under a transform uses a tensor of an outer device",
            got=f"a tensor on {outer!r}, arguments on {transforms[0]!r}",
            expected="one device",
            hint=f"x.to_device({outer!r}) for the arguments of px.vmap(f), px.jvp and so on",
        )
    hint = f"y.to_device({a!r})"
    return DeviceError(
        name, _unlike(a, b), got=f"{a!r} and {b!r}", expected="one device", hint=hint
    )


def _transformed(device: Backend | None) -> Backend | None:
    """What the outermost arguments of transforms were on; None for a device that none made."""
    found = None
    while device is not None:
        found = device.inner if device.transient else found
        device = device.inner
    return found


def _unlike(a: Backend, b: Backend) -> str:
    """How devices differ, innermost first."""
    a, b = a.base, b.base
    if a is b:
        return "tensors on different decorators of one device"
    defaults = [(device.default_float, device.default_int) for device in (a, b)]
    same = type(a) is type(b) and defaults[0] != defaults[1]
    return f"tensors on different {'settings of one device' if same else 'devices'}"


def lift(tensor: Tensor, backend: Backend) -> Tensor:
    """Return the tensor as a constant on ``backend``, a decorator over its device."""
    if tensor.device is backend:
        return tensor
    inner = backend.inner
    assert inner is not None
    return Tensor(backend.lift(lift(tensor, inner).primitive), backend)


def _on_backend(op: Op, operands: tuple[Any, ...], backend: Backend) -> list[Any]:
    out: list[Any] = []
    for declared, item in zip(op.signature.operands, operands, strict=True):
        if declared.variadic:
            if item is None and declared.optional:
                item = ()  # noqa: PLW2901 - None and no tensors are one
            elif not isinstance(item, list | tuple) or not (item or declared.optional):
                raise _no_list(op, declared, item)
            out.append(tuple(_operand(op, declared, x, backend) for x in item))
        else:
            out.append(_operand(op, declared, item, backend))
    return out


def _no_list(op: Op, declared: Operand, item: Any) -> ArgumentError:
    """The error for an operand that is no list."""
    single = isinstance(item, Tensor)
    return ArgumentError(
        op.name,
        f"{declared.name} is not a list of tensors",
        got=f"a tensor of shape {item.shape}" if single else _short(item),
        expected="a list or tuple of at least one tensor",
        hint=f"px.{op.name}([x, y])" if single else None,
    )


def _short(item: Any) -> str:
    text = repr(item)
    return type(item).__name__ if "\n" in text or len(text) > 60 else text


def _operand(op: Op, declared: Operand, item: Any, backend: Backend) -> Any:
    if isinstance(item, Tensor):
        return lift(item, backend)
    if item is None and declared.optional:
        return None
    if isinstance(item, Scalar) and type(item) is not np.float64:  # a float that has a shape
        return _in_range(op, declared, item)
    if isinstance(item, NoOperand):
        raise refused_operand(op.name, item)
    single = getattr(item, "shape", None) == () and hasattr(item, "item")
    number = item_of(item) if single else None
    if isinstance(number, Scalar):
        return _in_range(op, declared, number)
    raise ArgumentError(
        op.name,
        f"{declared.name} is not a tensor",
        got=type_name(item),
        expected="a Tensor" + (" or a number" if op.op_class.takes_numbers else ""),
        hint=advice(item) if single and number is None else _hint_for(op, declared, item),
    )


def _in_range(op: Op, declared: Operand, number: Scalar) -> Scalar:
    """The number, unless the op takes none, or it has to be positive and is not."""
    if op.op_class.no_numbers:
        raise ArgumentError(
            op.name,
            f"{declared.name} is not a tensor",
            got=number,
            expected="a Tensor",
            hint=f"px.{op.name}(px.asarray({plain(number)}, device=px.Distributed(device, group)))",
        )
    if declared.name in op.traits.positive:
        check_positive(op.name, declared.name, number)
    return number


def check_positive(op: str, name: str, number: Scalar) -> None:
    """Refuse a number that is not above 0 and finite."""
    if not 0 < number < inf:
        got, expected = f"{name} {plain(number)}", f"0 < {name} < inf"
        raise ArgumentError(op, f"{name} out of range", got=got, expected=expected)


def _hint_for(op: Op, declared: Operand, item: Any) -> str:
    """What to type in the place of what is no tensor."""
    if isinstance(item, tuple) and hasattr(item, "imag"):
        return "x.abs(), x.real or x.imag"
    if isinstance(item, tuple | list) and (op.name, declared.name) in OF_OTHER_TYPES:
        return OF_OTHER_TYPES[op.name, declared.name].format(value=item)
    words = [a.name for a in op.signature.attributes if a.type == "str"]
    if isinstance(item, str) and words:
        before = op.signature.operands[: op.signature.operands.index(declared)]
        names = ", ".join(f"*{o.name}" if o.variadic else o.name for o in before or (declared,))
        if words[0] == "equation":
            return f"px.{op.name}({item!r}, {names})  # the equation goes first"
        return f"px.{op.name}({names}, {words[0]}={item!r})"
    return f"px.asarray({'x' if declared.variadic else declared.name})"


def _unify(op: Op, tensors: list[Any], backend: Backend) -> list[Any]:
    """Check kinds, promote element types inside one kind, place weak scalars."""
    out = list(tensors)
    groups: dict[str, list[int]] = {}
    for i, operand in enumerate(op.signature.operands):
        groups.setdefault(operand.kind, []).append(i)
    for kind, places in groups.items():
        members = [m for i in places for m in _flat((out[i],))]
        names = [op.signature.operands[i].name for i in places for _ in _flat((out[i],))]
        dtype = _group_dtype(op, kind, members, names, backend)
        if dtype is None:
            continue
        weak = op.op_class.takes_numbers and any(isinstance(m, Tensor) for m in members)
        for i in places:
            if isinstance(out[i], tuple):
                out[i] = tuple(_convert(op, x, dtype, backend, weak) for x in out[i])
            else:
                out[i] = _convert(op, out[i], dtype, backend, weak)
    return out


def _group_dtype(
    op: Op, kind: str, members: list[Any], names: list[str], backend: Backend
) -> DType | None:
    dtype: DType | None = None
    for name, item in zip(names, members, strict=True):
        if not isinstance(item, Tensor):
            continue
        own = item.dtype
        if own.kind not in KIND_SETS[kind]:
            _raise_kind(op, own, kind, name)
        if dtype is not None and dtype.kind != own.kind:
            _raise_mixed(op, dtype, own)
        dtype = own if dtype is None else promote(dtype, own, op.name)
    if dtype is None and any(isinstance(m, Scalar) for m in members):
        dtype = _scalar_dtype(kind, members, backend)
        if dtype.kind not in KIND_SETS[kind]:
            _raise_kind(op, dtype, kind, names[0])
    if dtype is None:
        return None
    if dtype.kind == "Int" and op.signature.divides:
        dtype = backend.default_float
    if op.traits.truths:
        dtype = bool_
    require_dtype(dtype, backend, op.name)
    return dtype


def _scalar_dtype(kind: str, members: list[Any], backend: Backend) -> DType:
    """The type of a group of nothing but scalars."""
    numbers = [plain(m) for m in members if m is not None]
    if kind == "Float" or any(isinstance(m, float) for m in numbers):
        return backend.default_float
    return bool_ if all(isinstance(m, bool) for m in numbers) else backend.default_int


def require_dtype(dtype: DType, backend: Backend, op: str) -> None:
    """Raise DTypeError when the backend lacks the element type."""
    if dtype not in backend.dtypes:
        have = ", ".join(sorted(d.name for d in backend.dtypes))
        what, hint = f"{backend!r} lacks the element type", f"device=WithHost({backend.base!r})"
        raise DTypeError(op, what, got=dtype, expected=have, hint=hint)


def check_shape(shape: Sequence[int], backend: Backend, op: str) -> None:
    """Raise ShapeError when the backend takes no tensor of so many axes, or nobody one so large."""
    if len(shape) > backend.max_rank:
        raise ShapeError(
            op, "too many axes", got=len(shape), expected=f"at most {backend.max_rank}"
        )
    if max(prod(shape), *shape, 0, 0) > _MOST_ELEMENTS:
        most = f"at most 2**{_MOST_ELEMENTS.bit_length() - 1}"
        raise ShapeError(op, "too many elements", got=tuple(shape), expected=most)


def _convert(op: Op, item: Any, dtype: DType, backend: Backend, weak: bool) -> Any:
    if isinstance(item, Tensor):
        return item if item.dtype is dtype else item.astype(dtype)
    if item is None:
        return None
    _check_scalar(op, item, dtype)
    wide = dtype.kind == "Float" and _is_wide(plain(item))
    if wide and (type(item) is not Number or item.ask(_is_wide)):
        item = number_for(item, dtype, op.name)
    if weak:
        return item
    return Tensor(backend.ops.full((), item, dtype), backend)


def _is_wide(number: Scalar) -> bool:
    return type(number) is int and number.bit_length() > _INT_BITS


def _number_hint(item: Scalar, dtype: DType) -> str:
    if isinstance(item, float) and item.is_integer() and dtype.kind == "Int":
        return f'{int(item)} in place of {item}, or x.astype("float32")'
    return 'x.astype("float32")' if isinstance(item, float) else 'x.astype("int64")'


def _check_scalar(op: Op, item: Scalar, dtype: DType) -> None:
    """A weak scalar takes the tensor's type, when its kind fits and it is in range."""
    if isinstance(item, bool):
        return
    if dtype.kind == "Bool" or (isinstance(plain(item), float) and dtype.kind == "Int"):
        raise KindError(
            op.name,
            "number and tensor of different kinds",
            got=f"{plain(item)!r} with {dtype}",
            expected="a number of the tensor's kind",
            hint=_number_hint(plain(item), dtype),
        )
    if not op.traits.compares:
        number_for(item, dtype, op.name)


def _raise_kind(op: Op, dtype: DType, kind: str, operand: str) -> NoReturn:
    allowed = " or ".join(sorted(KIND_SETS[kind]))
    target = {"Float": "float32", "Int": "int64", "Bool": "bool"}
    wanted = next(k for k in ("Float", "Int", "Bool") if k in KIND_SETS[kind])
    raise KindError(
        op.name,
        f"{operand} is of a kind that the op does not take",
        got=f"{dtype.kind} ({dtype})",
        expected=allowed,
        hint=OF_OTHER_KINDS.get((op.name, operand), f'{operand}.astype("{target[wanted]}")'),
    )


def _raise_mixed(op: Op, a: DType, b: DType) -> NoReturn:
    # The hint loses nothing: truth values become numbers, integers become floats.
    order = ("Bool", "Int", "Float")
    second = order.index(a.kind) > order.index(b.kind)
    raise KindError(
        op.name,
        "tensors of different kinds",
        got=f"{a} and {b}",
        expected="one kind",
        hint=f'y.astype("{a.name}")' if second else f'x.astype("{b.name}")',
    )
