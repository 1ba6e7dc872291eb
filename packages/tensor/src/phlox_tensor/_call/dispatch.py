"""The path of an op call: known calls run at once, the others are brought together and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from .._device.backend import Backend
from .._device.table import Casts, casting
from .._errors.called import OF_ARGUMENTS, rename
from .._errors.classes import ArgumentError, DeviceError, Rejected, UnknownArgumentError
from .._errors.keywords import missing_argument, refused_keyword
from .._op.attributes import NORMALIZERS, is_recorded
from .._op.declaration import REGISTRY, Op, Restated, Spec, applied_by
from .._op.signature import REQUIRED
from .._values.dtype import DType, bool_, can_hold
from .._values.number import Number, Scalar
from .._values.tensor import Tensor, new
from .operands import check_shape, prepare_operands, require_dtype
from .row_blocks import LARGE, parts_of


def wrap(primitive: Any, device: Backend) -> Any:
    """Make a Tensor as its constructor does, in a third of the time."""
    out = new()
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
    look = _look(op, operands, attributes)
    if look is not None:
        backend, primitives, key = look
        passed = backend.passed.get(key)
        if passed is not None:
            entry, values, several = passed
            out = entry(*primitives, *values)
            if several:
                return tuple([wrap(each, backend) for each in out])
            made = new()  # as wrap() does, without its call
            made.primitive = out
            made.device = backend
            return made
    _require_all(op, (*operands, *attributes))
    if op.with_tensors is not None and any(map(_is_no_number, attributes)):
        _, tensors = prepare_operands(op, operands)
        return op.with_tensors(*tensors, *attributes)
    if op.traits.truths and (answer := _of_parts(op, operands[0], attributes)) is not None:
        return answer
    backend, tensors, specs, values = prepared_call(op, operands, attributes)
    for shape in op.shape(op, _shaped(specs), values):
        check_shape(shape, backend, op.name)
    if op.traits.compares and (answer := _compared_to_far(op, tensors)) is not None:
        return answer
    prepared = [_primitive(t) for t in tensors]
    if look is not None and not _is_made_up(prepared, look[1]):
        _pass_on(look[2], op, specs, values, _casts(backend, prepared, look[1]), backend)
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
    if REGISTRY.get(op.name) is not op:
        what = "the op was declared anew; this is the old one"
        raise ArgumentError(op.name, what, hint=f"px.ops.{op.name}(...)")
    backend, tensors = prepare_operands(op, operands)
    specs = [spec_of(t) for t in tensors]
    values = prepare_attributes(op, specs, attributes, backend)
    for value in values:
        if isinstance(value, DType):
            require_dtype(value, backend, op.name)
    return backend, tensors, specs, values


def _require_all(op: Op, given: tuple[Any, ...]) -> None:
    """Refuse a call that leaves out what it has to give: generated functions default to that."""
    names = [o.name for o in op.signature.operands] + list(op.attribute_names)
    for name, value in zip(names, given, strict=False):
        if value is REQUIRED:
            raise _missing(op, name)


def _missing(op: Op, name: str) -> UnknownArgumentError:
    """The error for a call without an argument that it has to have."""
    taken = [o for o in op.signature.operands if not o.optional]
    needed = [f"{o.name}={o.name}" if o.named else o.name for o in taken]
    needed += [a.name for a in op.signature.attributes if a.default is REQUIRED]
    return missing_argument(op.name, name, needed)


def _compared_to_far(op: Op, operands: list[Any]) -> Tensor | None:
    """The answer for all elements, where an integer is outside the type beside it; else None."""
    assert op.numpy is not None
    tensors = [x for x in operands if isinstance(x, Tensor)]
    if len(tensors) != 1 or tensors[0].dtype.kind != "Int":
        return None
    (tensor,) = tensors
    (number,) = (x for x in operands if not isinstance(x, Tensor))
    if type(number) is Number and not number.ask(can_hold, tensor.dtype):
        number = int(number)
    if type(number) is not int or can_hold(number, tensor.dtype):
        return None
    side = 1 if number > 0 else -1
    answer = bool(op.numpy(*(0 if x is tensor else side for x in operands)))
    return Tensor(tensor.device.ops.full(tensor.shape, answer, bool_), tensor.device)


def _of_parts(op: Op, x: Any, attributes: tuple[Any, ...]) -> Tensor | None:
    """What is asked of truths of all elements, of one part after the other; None of a small one."""
    if not isinstance(x, Tensor) or x.size < LARGE or x.dtype is bool_:
        return None
    axis, keepdims = prepare_attributes(op, [spec_of(x)], attributes, x.device)
    parts = parts_of(x, axis)
    if len(parts) == 1:
        return None
    found = [call(op, (part.astype(bool_),), (axis, keepdims)) for part in parts]
    return call(op, (REGISTRY["stack"](found),), (0, False))


def _is_no_number(attribute: Any) -> bool:
    """Whether an attribute is a tensor that cannot be read as one number."""
    if not isinstance(attribute, Tensor):
        return False
    readable = attribute.device.is_readable(attribute.primitive)
    return attribute.size != 1 or not readable or is_recorded(attribute)


def single(op: Op, x: Any, attributes: tuple[Any, ...]) -> Any:
    """Apply an op of one tensor and attributes."""
    if type(x) is Tensor:
        backend = x.device
        primitive = x.primitive
        passed = backend.passed.get(backend.key_of(op, attributes, primitive))
        if passed is not None:
            entry, values, several = passed
            out = entry(primitive, *values)
            if several:
                return tuple([wrap(each, backend) for each in out])
            made = new()  # as wrap() does, without its call
            made.primitive = out
            made.device = backend
            return made
    return call(op, (x,), attributes)


def _look(op: Op, operands: tuple[Any, ...], attributes: tuple[Any, ...]) -> Any:
    """The backend, the primitives, and what decides whether a call passes its checks.

    None where operands need preparation, or an attribute is of a type that no key holds.
    """
    backend: Backend | None = None
    primitives: list[Any] = []
    for item in operands:
        if type(item) is Tensor:
            if backend is None:
                backend = item.device
            elif item.device is not backend:
                return None
            primitives.append(item.primitive)
        elif item is None:
            primitives.append(None)
        elif type(item) in (list, tuple) and {*map(type, item)} == {Tensor}:
            own: Backend = item[0].device if backend is None else backend
            many = tuple([x.primitive for x in item if x.device is own])
            if len(many) < len(item):
                return None
            backend = own
            primitives.append(many)
        else:
            return None
    if backend is None:
        return None
    key = backend.key_of(op, attributes, *primitives)
    return None if key is None else (backend, primitives, key)


def _is_made_up(prepared: Sequence[Any], given: Sequence[Any]) -> bool:
    """Whether something stands where nothing was given: an empty list of operands."""
    return any(b is None and a is not None for a, b in zip(prepared, given, strict=True))


def _casts(backend: Backend, prepared: Sequence[Any], given: Sequence[Any]) -> Casts:
    """The types that operands were cast to when they were brought together; None for no cast."""
    return tuple(
        None if a is b else _casts(backend, a, b) if type(a) is tuple else backend.dtype_of(a)
        for a, b in zip(prepared, given, strict=True)
    )


def _pass_on(
    key: Any, op: Op, specs: list[Any], values: tuple[Any, ...], casts: Casts, backend: Backend
) -> None:
    """Run the entry of the op, after casts of its operands, at once for calls with this key."""
    expand = op.expand
    if isinstance(expand, Restated) and backend.entry(op.name) is None:
        op, values = expand.op, expand.attributes(specs[0], values)
    backend.keep(key, casting(backend.ops, op.name, casts), values, several=op.signature.several)


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
    if op.prepare is None:
        return values
    try:
        return op.prepare(specs, values, backend)
    except OF_ARGUMENTS as error:  # ops of a family share what prepares them
        rename(error, op.name)
        raise


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
    """Return operands and attributes, given by position or name, with the declared defaults."""
    signature = op.signature
    names = [o.name for o in signature.operands] + list(op.attribute_names)
    if len(args) > len(names):
        raise ArgumentError(op.name, "too many arguments", got=len(args), expected=len(names))
    bound = dict(zip(names, args, strict=False))
    if wrong := {name: value for name, value in kwargs.items() if name not in names}:
        raise refused_keyword(op.name, wrong, names)
    for name, value in kwargs.items():
        if name in bound:
            raise ArgumentError(op.name, "repeated argument", got=name)
        bound[name] = value
    operands = []
    for operand in signature.operands:
        if operand.name not in bound and not operand.optional:
            raise _missing(op, operand.name)
        operands.append(bound.get(operand.name))
    attributes = []
    for attribute in signature.attributes:
        value = bound.get(attribute.name, attribute.default)
        if value is REQUIRED:
            raise _missing(op, attribute.name)
        attributes.append(value)
    return tuple(operands), tuple(attributes)


def spec_of(operand: Any) -> Any:
    """Return the shape and element type of an operand, of each of several; else itself."""
    if isinstance(operand, tuple | list):
        return tuple(map(spec_of, operand))
    if isinstance(operand, Tensor):
        return Spec(*operand.device.spec_of(operand.primitive))
    return operand  # a weak scalar or None


def _shaped(specs: list[Any]) -> list[Any]:
    """Weak scalars take part in shape rules as nothing."""
    return [None if isinstance(m, Scalar) else m for m in specs]


def _primitive(tensor: Any) -> Any:
    if isinstance(tensor, tuple):
        return tuple(_primitive(t) for t in tensor)
    return tensor.primitive if isinstance(tensor, Tensor) else tensor


def _refuse(op: Op, tensors: list[Any], backend: Backend) -> NoReturn:
    """A backend refused operands that passed all checks: the error says that it is at fault."""
    got = ", ".join(str(spec_of(t)) for t in tensors)
    raise DeviceError(op.name, f"{backend!r} refused valid operands", got=got)


applied_by(call_by_signature)
