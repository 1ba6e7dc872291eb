"""Expansions of ops of elements as entries, which run as one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any, Final

from .._device.backend import Backend, expanded_as
from .._device.table import Entry
from .._errors.classes import Rejected
from .._op.declaration import Op
from .._op.expansion import expansion
from .._recording.record import recording
from .._values.cell import RECORDINGS
from .formula import MOST_KEPT, BaseEntry, Bound, ElementFormula, Form, moves

_PLAIN: Final = frozenset({bool, float, int, NoneType})
_UNKNOWN: Final = object()


def expanded(op: Op, device: Backend) -> Entry:
    """Return the expansion of an op of elements as an entry: one kernel, else its ops."""
    one_by_one = expansion(op, device)
    assert op.expand is not None
    formula = ElementFormula(op.name, op.expand, strict=False)
    count = len(op.signature.operands)
    known: dict[Form, BaseEntry] = {}
    bound: dict[Any, Any] = {}  # by all that decides about a call, as devices tell it
    key_of = device.key_of

    def run(*args: Any) -> Any:
        if RECORDINGS.count and recording() is not None:
            return one_by_one(*args)  # the ops join what stands around them
        operands, attributes = args[:count], args[count:]
        if not _PLAIN.isdisjoint(map(type, operands)):
            return filled_in(operands, attributes)
        key = key_of(op, attributes, *operands)
        found = bound.get(key, _UNKNOWN)
        if found is _UNKNOWN:
            found = bind(key, operands, attributes)
        if found is None:
            return one_by_one(*args)
        kernel, inputs, given = found
        try:
            return kernel(*[operands[place] for place in inputs], *given)[0]
        except Rejected:
            return one_by_one(*args)

    def bind(key: Any, operands: Sequence[Any], attributes: Sequence[Any]) -> Bound | None:
        found = None
        if _PLAIN.issuperset(map(type, attributes)):
            numbers = [type(x) if moves(type(x)) else (type(x), x) for x in attributes]
            form = (*map(device.dtype_of, operands), *numbers)
            if form not in known:
                known[form] = BaseEntry(formula, op, device, form, strict=False)
            found = known[form].bound(attributes)
        if len(bound) >= MOST_KEPT:
            bound.clear()
        if key is not None:
            bound[key] = found
        return found

    def filled_in(operands: Sequence[Any], attributes: Sequence[Any]) -> Any:
        """Run with tensors in the place of numbers, of the type of those that stand there."""
        numbers = [moves(type(x)) for x in operands]
        rest = [x for x, is_number in zip(operands, numbers, strict=True) if not is_number]
        if _PLAIN.isdisjoint(map(type, rest)):
            types = {*map(device.dtype_of, rest)}
            if len(types) == 1 and (dtype := types.pop()).kind == "Float":
                full = device.ops.full
                given = [full((), x, dtype) if moves(type(x)) else x for x in operands]
                return run(*given, *attributes)
        return one_by_one(*operands, *attributes)

    return run


expanded_as.append(expanded)
