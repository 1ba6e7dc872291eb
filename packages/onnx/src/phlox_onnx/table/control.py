"""Branches and loops over graphs inside of nodes; sequences are lists, what is absent is None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import phlox_tensor as px
from phlox_tensor import DType, Tensor

from .._errors import OnnxError
from ._row import Host, Ints, Raw, Row, Scalar, row

T = Tensor[Any]
Branch = Callable[..., list[Any]]
# Types and sizes of what bodies give, for results that are stacked.
Stacked = tuple[tuple[DType, Ints], ...]


def if_(cond: Scalar, *, then_branch: Branch, else_branch: Branch) -> tuple[Any, ...]:
    """Only the branch that is taken runs."""
    return tuple((then_branch if cond else else_branch)())


def _stacked(values: list[Any], axis: int = 0) -> Any:
    if all(isinstance(v, np.ndarray) for v in values):
        return np.stack(values, axis)
    device = next(v.device for v in values if isinstance(v, Tensor))
    tensors = [px.asarray(v, device=device) for v in values]
    return px.stack(tensors, axis=axis)


def _empty(kind: DType, shape: Ints, axis: int, device: Any) -> Any:
    """What is stacked of no turns, in a type that the device has."""
    if kind not in device.dtypes:
        kind = device.default_int if kind.kind == "Int" else device.default_float
    return px.zeros((*shape[:axis], 0, *shape[axis:]), dtype=kind, device=device)


def loop(
    M: Scalar | None = None,
    cond: Raw = None,
    *v_initial: Raw,
    body: Branch,
    outputs: int,
    stacked: Stacked = (),
    device: Any = None,
) -> tuple[Any, ...]:
    """Values are carried from turn to turn; what else a turn gives is stacked at the end."""
    carried: list[Any] = list(v_initial)
    scanned: list[list[Any]] = [[] for _ in stacked]
    going = cond is None or bool(cond)
    turn = 0
    while going and (M is None or turn < M):
        out = body(np.array(turn, np.int64), np.array(True), *carried)
        going = bool(out[0])
        carried = out[1 : 1 + len(carried)]
        for line, value in zip(scanned, out[1 + len(carried) :], strict=False):
            line.append(value)
        turn += 1
    if not turn:
        return (*carried, *(_empty(*each, 0, device) for each in stacked))[:outputs]
    return (*carried, *(_stacked(line) for line in scanned))[:outputs]


def _slices_of(x: Any, axis: int, backwards: int) -> list[Any]:
    """The slices of a tensor along an axis."""
    at = range(x.shape[axis])
    before = (slice(None),) * (axis % x.ndim)
    return [x[(*before, i)] for i in (reversed(at) if backwards else at)]


def scan(
    *initial_state_and_scan_inputs: T,
    body: Branch,
    num_scan_inputs: int,
    scan_input_axes: Ints | None = None,
    scan_input_directions: Ints | None = None,
    scan_output_axes: Ints | None = None,
    scan_output_directions: Ints | None = None,
    stacked: Stacked = (),
    device: Any = None,
) -> tuple[Any, ...]:
    """A loop over slices."""
    values = initial_state_and_scan_inputs
    n = num_scan_inputs
    if not 0 < n <= len(values):
        raise OnnxError("Scan", "num_scan_inputs does not fit", got=n, expected=len(values))
    state, scanned = list(values[:-n]), values[-n:]
    axes, turned = scan_input_axes or (0,) * n, scan_input_directions or (0,) * n
    lines = [_slices_of(x, a, b) for x, a, b in zip(scanned, axes, turned, strict=True)]
    found: list[list[Any]] = []
    for items in zip(*lines, strict=True):
        out = body(*state, *items)
        state, rest = out[: len(state)], out[len(state) :]
        found.append(rest)
    if not found:
        places = scan_output_axes or (0,) * len(stacked)
        empty = zip(stacked, places, strict=True)
        return (*state, *(_empty(*each, a % (len(each[1]) + 1), device) for each, a in empty))
    columns = [list(c) for c in zip(*found, strict=True)]
    out_axes = scan_output_axes or (0,) * len(columns)
    out_turned = scan_output_directions or (0,) * len(columns)
    return (
        *state,
        *(
            _stacked(c[::-1] if back else c, axis)
            for c, axis, back in zip(columns, out_axes, out_turned, strict=True)
        ),
    )


def batch_scan(
    sequence_lens: Host | None = None,
    *initial_state_and_scan_inputs: T,
    body: Branch,
    num_scan_inputs: int,
    directions: Ints | None = None,
) -> tuple[Any, ...]:
    """Scan as it was in version 8: for each of a batch by itself."""
    if sequence_lens is not None:
        raise OnnxError("Scan", "lengths of sequences in version 8 have no row")
    values = initial_state_and_scan_inputs
    parts = [
        scan(
            *(v[i] for v in values),
            body=body,
            num_scan_inputs=num_scan_inputs,
            scan_input_directions=directions,
        )
        for i in range(values[0].shape[0])
    ]
    return tuple(_stacked(list(column)) for column in zip(*parts, strict=True))


def sequence_map(input_sequence: Raw, *additional_inputs: Raw, body: Branch) -> tuple[Any, ...]:
    """A function of each item; further lists are read beside it, tensors are given as they are."""
    rows = []
    for i, item in enumerate(input_sequence):
        more = [x[i] if isinstance(x, list) else x for x in additional_inputs]
        rows.append(body(item, *more))
    return tuple(list(column) for column in zip(*rows, strict=True))


def sequence_construct(*inputs: Raw) -> list[Any]:
    return list(inputs)


def sequence_empty(*, dtype: int = 1) -> list[Any]:
    return []


def _at(position: Ints | None, default: int) -> int:
    return position[0] if position is not None else default


def sequence_at(input_sequence: Raw, position: Ints) -> Any:
    return input_sequence[_inside("SequenceAt", position[0], len(input_sequence))]


def _inside(op: str, i: int, n: int) -> int:
    if not -n <= i < n:
        raise OnnxError(op, "no such item", got=i, expected=f"one of {n}")
    return i


def sequence_insert(input_sequence: Raw, tensor: Raw, position: Ints | None = None) -> list[Any]:
    out = list(input_sequence)
    at = _at(position, len(out))
    if at != len(out):
        at = _inside("SequenceInsert", at, len(out))
    out.insert(at, tensor)
    return out


def sequence_erase(input_sequence: Raw, position: Ints | None = None) -> list[Any]:
    out = list(input_sequence)
    del out[_inside("SequenceErase", _at(position, -1), len(out))]
    return out


def sequence_length(input_sequence: Raw) -> Host:
    return np.array(len(input_sequence), np.int64)


def split_to_sequence(
    input: T, split: Raw = None, *, axis: int = 0, keepdims: int = 1
) -> list[Any]:
    """In parts of one, of one size, or of given sizes."""
    n = input.shape[axis]
    squeezed = split is None and not keepdims
    if split is None:
        sizes = [1] * n
    else:
        given = (split if isinstance(split, np.ndarray) else split.numpy()).astype(int)
        each = int(given) if given.ndim == 0 else 0
        sizes = [min(each, n - i) for i in range(0, n, each)] if each else given.tolist()
    parts = px.split(input, sizes, axis=axis)
    return [part.squeeze(axis) if squeezed else part for part in parts]


def concat_from_sequence(input_sequence: Raw, *, axis: int, new_axis: int = 0) -> T:
    return _stacked(input_sequence, axis) if new_axis else px.concat(input_sequence, axis=axis)


def optional(input: Raw = None, *, type: str = "") -> Any:
    return input


def optional_get(input: Raw) -> Any:
    if input is None:
        raise OnnxError("OptionalGetElement", "nothing is there", got="None", expected="a value")
    return input


def optional_has(input: Raw = None) -> Host:
    return np.array(input is not None)


ROWS: Final[dict[str, Row]] = {
    "ConcatFromSequence": row(11, concat_from_sequence),
    "If": row(25, if_, inner="branch", scalar=True),
    "Loop": row(25, loop, inner="loop", scalar=True),
    "Optional": row(28, optional),
    "OptionalGetElement": row(28, optional_get),
    "OptionalHasElement": row(28, optional_has, optional_test=True),
    "Scan": row(25, scan, inner="slices"),
    "SequenceAt": row(11, sequence_at),
    "SequenceConstruct": row(11, sequence_construct),
    "SequenceEmpty": row(11, sequence_empty),
    "SequenceErase": row(11, sequence_erase),
    "SequenceInsert": row(11, sequence_insert),
    "SequenceLength": row(11, sequence_length),
    "SequenceMap": row(17, sequence_map, inner="items"),
    "SplitToSequence": row(24, split_to_sequence),
}
BATCH_SCAN: Final = row(1, batch_scan, inner="batches")
