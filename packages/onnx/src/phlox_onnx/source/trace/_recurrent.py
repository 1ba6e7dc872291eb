"""Calls of recurrent layers, whose sequences begin with the batch, in lines."""

from __future__ import annotations

from typing import Any, Final

import phlox_tensor as px

from ..._graph import OWN, Node
from ...run._growth import META
from . import _expr as e
from ._expr import FieldRef, Ref
from ._traced import Trace, Traced

# Whether an LSTM's state is two.
RECURRENT: Final = {(OWN, "GRU"): False, (OWN, "LSTM"): True, (OWN, "RNN"): False}


def recurrent(
    trace: Trace, node: Node, field: FieldRef, given: list[Any], hidden: int
) -> tuple[Traced, ...]:
    """Call a layer with sequence, lengths and states; its results as the node gives them."""
    x, lengths, *states = given
    words = node.attributes
    first, back = bool(words.get("layout", 0)), words.get("direction") == "reverse"
    count = 2 if words.get("direction") == "bidirectional" else 1
    rows = x.expr if first else _turned(x.expr)
    args = [_flipped(rows) if back else rows]
    known = [None if v is None else _turned(v.expr) if first else v.expr for v in states]
    args += _state(known, node)
    named = {} if lengths is None else {"lengths": lengths.expr}
    call = e.Expr(((field, e.ATOM), *e.call("", args, named).parts))
    y, state = trace.keep_several(call, 2)
    found: Any = _flipped(y) if back else y
    if count == 2:
        found = _apart(y, hidden)
        found = found if first else _permuted(found, (1, 2, 0, 3))
    else:
        found = found if first else _turned(found)
        found = e.method(found, "expand_dims", [], {"axis": e.literal(2 if first else 1)})
    parts = [e.member(state, k) for k in ("hidden", "cell")] if RECURRENT[node.key] else [state]
    shapes = [s.shape[:2] for s in x.specs or ()]
    sizes = [(n, t, count) if first else (n, count, t) for n, t in shapes]
    out = Traced(trace, trace.keep(found), _specs([(*size, hidden) for size in sizes]))
    ends = [(n, count) if first else (count, t) for n, t in shapes]
    specs = _specs([(*size, hidden) for size in ends])
    return out, *(Traced(trace, _turned(p) if first else p, specs) for p in parts)


def _permuted(of: Any, axes: tuple[int, ...]) -> Any:
    return e.method(of, "permute_dims", [e.literal(axes)])


def _turned(of: Any) -> Any:
    """The batch in front of the time, or the other way."""
    return _permuted(of, (1, 0, 2))


def _flipped(of: Any) -> Any:
    return e.method(of, "flip", [], {"axis": e.literal(1)})


def _apart(of: Ref, hidden: int) -> Any:
    """Both directions on an axis of their own."""
    sizes = e.Expr(("(*", (of, e.ATOM), f".shape[:2], 2, {hidden})"))
    return e.method(of, "reshape", [sizes])


def _state(states: list[Any], node: Node) -> list[Any]:
    """The state as an argument, if there is one; that of an LSTM is two, one of which may miss."""
    known = next((v for v in states if v is not None), None)
    if known is None:
        return []
    if not RECURRENT[node.key]:
        return [known]
    parts = [e.call("px.zeros_like", [known]) if v is None else v for v in states]
    return [e.call("nn.LstmState", parts)]


def _specs(shapes: list[tuple[int, ...]]) -> Any:
    return tuple(px.zeros(shape, device=META) for shape in shapes) or None
