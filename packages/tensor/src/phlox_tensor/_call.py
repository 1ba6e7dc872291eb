"""The full path of an op call: bring operands together, check them, run the entry."""

from __future__ import annotations

from types import NoneType
from typing import Any, Final, NoReturn

from ._attributes import NORMALIZERS
from ._backend import Backend, is_inside
from ._device import default_device
from ._dtype import DType, bool_, number_for, promote
from ._errors import ArgumentError, DeviceError, DTypeError, KindError, Rejected
from ._kinds import KIND_SETS
from ._op import Op, Spec, applied_by
from ._signature import REQUIRED, Operand
from ._tensor import Tensor

Scalar = bool | int | float

# What an attribute in a key may be, beside tuples of these.
_PLAIN: Final = frozenset({DType, NoneType, bool, float, int, str})
# Skips the call of the constructor.
new: Final = object.__new__


def wrap(primitive: Any, device: Backend) -> Any:
    """Make a Tensor as its constructor does, in half the time."""
    out = new(Tensor)
    out.primitive = primitive
    out.device = device
    return out


def call(op: Op, operands: tuple[Any, ...], attributes: tuple[Any, ...]) -> Any:
    """Apply ``op``: operands are Tensors, scalars or None, attributes as the user wrote them.

    Raises:
        DeviceError: operands on two base devices.
        KindError: an operand of a kind that the op does not take.
        DTypeError: element types that do not combine, or that the device lacks.
        ShapeError: shapes or axes that do not fit.
    """
    try:
        look = _look(op, operands, attributes)
    except TypeError:  # an attribute that is no plain value
        look = None
    if look is not None:
        backend, primitives, key = look
        passed = backend.passed.get(key)
        if passed is not None:
            entry, values, several = passed
            out = entry(*primitives, *values)
            return tuple([wrap(each, backend) for each in out]) if several else wrap(out, backend)
    backend, tensors, specs, values = prepared_call(op, operands, attributes)
    op.shape(op, _shaped(specs), values)
    prepared = [_primitive(t) for t in tensors]
    if look is not None and _same(prepared, look[1]):
        backend.pass_on(look[2], op, values)
    try:
        out = backend.ops[op.name](*prepared, *values)
    except Rejected:
        _refuse(op, tensors, backend)
    if op.signature.several:
        return tuple([wrap(each, backend) for each in out])
    return wrap(out, backend)


def prepared_call(
    op: Op, operands: tuple[Any, ...], attributes: tuple[Any, ...]
) -> tuple[Backend, list[Any], list[Any], tuple[Any, ...]]:
    """Bring operands and attributes into the form that entries get.

    Returns:
        The backend, the operands as tensors or numbers, what they are as specs, the attributes.
    """
    backend = _backend_of(op, operands)
    tensors = _unify(op, _on_backend(op, operands, backend), backend)
    specs = [_spec(t) for t in tensors]
    values = prepare_attributes(op, specs, attributes, backend)
    for value in values:
        if isinstance(value, DType):
            require_dtype(value, backend, op.name)
    return backend, tensors, specs, values


def single(op: Op, x: Any, attributes: tuple[Any, ...]) -> Any:
    """Apply an op of one tensor and attributes."""
    if type(x) is Tensor:
        backend = x.device
        primitive = x.primitive
        try:
            given = _exact(attributes)
        except TypeError:  # an attribute that is no plain value
            return call(op, (x,), attributes)
        key = op, given, backend.shape_of(primitive), backend.dtype_of(primitive)
        passed = backend.passed.get(key)
        if passed is not None:
            entry, values, several = passed
            out = entry(primitive, *values)
            if several:
                return tuple([wrap(each, backend) for each in out])
            made = new(Tensor)  # as wrap() does, without its call
            made.primitive = out
            made.device = backend
            return made
    return call(op, (x,), attributes)


def _look(op: Op, operands: tuple[Any, ...], attributes: tuple[Any, ...]) -> Any:
    """The backend, the primitives, and what decides whether a call passes its checks.

    None where operands need preparation.

    Raises:
        TypeError: for an attribute that is no plain value.
    """
    backend: Backend | None = None
    primitives: list[Any] = []
    key: list[Any] = [op, _exact(attributes)]
    for item in operands:
        if type(item) is Tensor:
            if backend is None:
                backend = item.device
            elif item.device is not backend:
                return None
            primitive = item.primitive
            primitives.append(primitive)
            key.append(backend.shape_of(primitive))
            key.append(backend.dtype_of(primitive))
        elif item is None:
            primitives.append(None)
            key.append(None)
        elif type(item) in (list, tuple) and {*map(type, item)} == {Tensor}:
            own: Backend = item[0].device if backend is None else backend
            many = tuple([x.primitive for x in item if x.device is own])
            if len(many) < len(item):
                return None
            backend = own
            primitives.append(many)
            key.append(tuple(map(own.shape_of, many)))
            key.append(tuple(map(own.dtype_of, many)))
        else:
            return None
    return None if backend is None else (backend, primitives, tuple(key))


def _exact(attributes: tuple[Any, ...]) -> tuple[Any, ...]:
    """What tells attributes apart that compare equal: 1 and 1.0 and True, 0.0 and -0.0.

    Raises:
        TypeError: for an attribute that is no plain value; a key must not keep a tensor alive.
    """
    types = (*map(type, attributes),)
    if _PLAIN.issuperset(types):
        if float in types:
            return types, tuple([a or str(a) for a in attributes])
        return types, attributes
    return types, tuple([_exact(a) if type(a) is tuple else _plain(a) for a in attributes])


def _plain(item: Any) -> Any:
    if type(item) not in _PLAIN:
        raise TypeError
    return item or str(item)


def _same(prepared: list[Any], given: list[Any]) -> bool:
    """Whether primitives came through their preparation as they were."""
    for a, b in zip(prepared, given, strict=True):
        if type(a) is tuple and type(b) is tuple:
            if not _same(list(a), list(b)):
                return False
        elif a is not b:
            return False
    return True


def prepare_attributes(
    op: Op, specs: list[Any], attributes: tuple[Any, ...], backend: Backend
) -> tuple[Any, ...]:
    """Bring attributes into the form that entries get."""
    first = specs[0] if specs else None
    if isinstance(first, tuple) and not isinstance(first, Spec):
        first = first[0] if first else None
    rank = len(first.shape) if isinstance(first, Spec) else 0
    values = tuple(
        NORMALIZERS[a.type](value, a.name, op.name, rank)
        for a, value in zip(op.signature.attributes, attributes, strict=True)
    )
    return values if op.prepare is None else op.prepare(specs, values, backend)


def call_by_signature(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply ``op`` to arguments given by position or name, with the declared defaults."""
    signature = op.signature
    count = len(signature.operands)
    if not kwargs and len(args) == count + len(signature.attributes):
        if count == 1:
            return single(op, args[0], args[1:])
        return call(op, args[:count], args[count:])
    return call(op, *bound_arguments(op, args, kwargs))


def bound_arguments(
    op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return operands and attributes, given by position or name, with the declared defaults.

    Raises:
        ArgumentError: too many, unknown, repeated or missing arguments.
    """
    signature = op.signature
    names = [o.name for o in signature.operands] + list(op.attribute_names)
    if len(args) > len(names):
        raise ArgumentError(op.name, "too many arguments", got=len(args), expected=len(names))
    bound = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names or name in bound:
            raise ArgumentError(
                op.name, "unknown or repeated argument", got=name, expected=", ".join(names)
            )
        bound[name] = value
    operands = []
    for operand in signature.operands:
        if operand.name not in bound and not operand.optional:
            raise ArgumentError(op.name, "missing argument", expected=operand.name)
        operands.append(bound.get(operand.name))
    attributes = []
    for attribute in signature.attributes:
        value = bound.get(attribute.name, attribute.default)
        if value is REQUIRED:
            raise ArgumentError(op.name, "missing argument", expected=attribute.name)
        attributes.append(value)
    return tuple(operands), tuple(attributes)


def _flat(operands: tuple[Any, ...]) -> list[Any]:
    out: list[Any] = []
    for item in operands:
        out.extend(item) if isinstance(item, list | tuple) else out.append(item)
    return out


def _backend_of(op: Op, operands: tuple[Any, ...]) -> Backend:
    """The outermost backend among the operands; all others must lie inside it."""
    backend: Backend | None = None
    for item in _flat(operands):
        if not isinstance(item, Tensor) or item.device is backend:
            continue
        if backend is None or is_inside(backend, item.device):
            backend = item.device
        elif not is_inside(item.device, backend):
            raise DeviceError(
                op.name,
                "tensors on different devices",
                got=f"{backend!r} and {item.device!r}",
                expected="one device",
                hint=f"y.to_device({backend!r})",
            )
    return default_device() if backend is None else backend


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
            if not item and declared.optional:
                item = ()  # noqa: PLW2901 - None and no tensors are one
            elif not isinstance(item, list | tuple) or not item:
                raise ArgumentError(
                    op.name, f"{declared.name} is not a list of tensors", got=repr(item)
                )
            out.append(tuple(_operand(op, declared, x, backend) for x in item))
        else:
            out.append(_operand(op, declared, item, backend))
    return out


def _operand(op: Op, declared: Operand, item: Any, backend: Backend) -> Any:
    if isinstance(item, Tensor):
        return lift(item, backend)
    if item is None and declared.optional:
        return None
    if isinstance(item, Scalar):
        return item
    scalar = getattr(item, "item", None)
    if scalar is not None and getattr(item, "shape", None) == ():
        plain = scalar()
        if isinstance(plain, Scalar):
            return plain
    raise ArgumentError(
        op.name,
        f"{declared.name} is not a tensor",
        got=type(item).__name__,
        expected="a Tensor" + (" or a number" if op.family.takes_numbers else ""),
        hint="pt.asarray(x)",
    )


def _unify(op: Op, tensors: list[Any], backend: Backend) -> list[Any]:
    """Check kinds, promote element types inside one kind, place weak scalars."""
    out = list(tensors)
    groups: dict[str, list[int]] = {}
    for i, operand in enumerate(op.signature.operands):
        groups.setdefault(operand.kind, []).append(i)
    for kind, places in groups.items():
        members = [m for i in places for m in _flat((out[i],))]
        dtype = _group_dtype(op, kind, members, places, backend)
        if dtype is None:
            continue
        weak = op.family.takes_numbers and any(isinstance(m, Tensor) for m in members)
        for i in places:
            if isinstance(out[i], tuple):
                out[i] = tuple(_convert(op, x, dtype, backend, weak) for x in out[i])
            else:
                out[i] = _convert(op, out[i], dtype, backend, weak)
    return out


def _group_dtype(
    op: Op, kind: str, members: list[Any], places: list[int], backend: Backend
) -> DType | None:
    dtype: DType | None = None
    for item in members:
        if not isinstance(item, Tensor):
            continue
        own = item.dtype
        if own.kind not in KIND_SETS[kind]:
            _raise_kind(op, own, kind, op.signature.operands[places[0]].name)
        if dtype is not None and dtype.kind != own.kind:
            _raise_mixed(op, dtype, own)
        dtype = own if dtype is None else promote(dtype, own, op.name)
    if dtype is None and any(isinstance(m, Scalar) for m in members):
        dtype = _scalar_dtype(kind, members, backend)
        if dtype.kind not in KIND_SETS[kind]:
            _raise_kind(op, dtype, kind, op.signature.operands[places[0]].name)
    if dtype is None:
        return None
    if op.floats and dtype.kind == "Int":
        dtype = backend.default_float
    require_dtype(dtype, backend, op.name)
    return dtype


def _scalar_dtype(kind: str, members: list[Any], backend: Backend) -> DType:
    """The type of a group of scalars alone."""
    if kind == "Float" or any(isinstance(m, float) for m in members):
        return backend.default_float
    plain = [m for m in members if m is not None]
    return bool_ if all(isinstance(m, bool) for m in plain) else backend.default_int


def require_dtype(dtype: DType, backend: Backend, op: str) -> None:
    """Raise DTypeError when the backend lacks the element type."""
    if dtype not in backend.dtypes:
        have = ", ".join(sorted(d.name for d in backend.dtypes))
        raise DTypeError(op, f"{backend!r} lacks the element type", got=dtype, expected=have)


def _convert(op: Op, item: Any, dtype: DType, backend: Backend, weak: bool) -> Any:
    if isinstance(item, Tensor):
        return item if item.dtype is dtype else item.astype(dtype)
    if item is None:
        return None
    _check_scalar(op, item, dtype)
    if weak:
        return item
    return Tensor(backend.ops.full((), item, dtype), backend)


def _check_scalar(op: Op, item: Scalar, dtype: DType) -> None:
    """A weak scalar takes the tensor's type, when its kind fits and it is in range."""
    if isinstance(item, bool):
        return
    if dtype.kind == "Bool" or (isinstance(item, float) and dtype.kind == "Int"):
        raise KindError(
            op.name,
            "number and tensor of different kinds",
            got=f"{item!r} with {dtype}",
            expected="a number of the tensor's kind",
            hint="x.astype(pt.float32)" if isinstance(item, float) else "x.astype(pt.int64)",
        )
    number_for(item, dtype, op.name)


def _spec(tensor: Any) -> Any:
    if isinstance(tensor, tuple):
        return tuple(_spec(t) for t in tensor)
    if isinstance(tensor, Tensor):
        return Spec(tensor.shape, tensor.dtype)
    return tensor  # a weak scalar or None


def _shaped(specs: list[Any]) -> list[Any]:
    """Weak scalars take part in shape rules as nothing."""
    return [None if isinstance(m, Scalar) else m for m in specs]


def _primitive(tensor: Any) -> Any:
    if isinstance(tensor, tuple):
        return tuple(_primitive(t) for t in tensor)
    return tensor.primitive if isinstance(tensor, Tensor) else tensor


def _raise_kind(op: Op, dtype: DType, kind: str, operand: str) -> NoReturn:
    allowed = " or ".join(sorted(KIND_SETS[kind]))
    target = {"Float": "pt.float32", "Int": "pt.int64", "Bool": "pt.bool"}
    wanted = next(k for k in ("Float", "Int", "Bool") if k in KIND_SETS[kind])
    raise KindError(
        op.name,
        f"{operand} is of a kind that the op does not take",
        got=f"{dtype.kind} ({dtype})",
        expected=allowed,
        hint=f"{operand}.astype({target[wanted]})",
    )


def _raise_mixed(op: Op, a: DType, b: DType) -> NoReturn:
    raise KindError(
        op.name,
        "tensors of different kinds",
        got=f"{a} and {b}",
        expected="one kind",
        hint=f"y.astype(pt.{a.name})",
    )


def _refuse(op: Op, tensors: list[Any], backend: Backend) -> NoReturn:
    """A backend refused operands that passed all checks: its fault, told as such."""
    got = ", ".join(str(_spec(t)) for t in tensors)
    raise DeviceError(op.name, f"{backend!r} refused valid operands", got=got)


applied_by(call_by_signature)
