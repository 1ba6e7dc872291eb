"""Random programs: short chains of ops drawn from the registry by class.

A program is drawn together with its values on the reference, so that every step fits the shapes
and kinds before it. ``judge.py`` runs them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

import phlox_tensor as pt
from phlox_tensor import DTYPES, REGISTRY, DType, Op
from phlox_tensor._op.declaration import OpClass
from phlox_tensor._values.kinds import KIND_SETS
from phlox_tensor.ops import _families as families
from phlox_tensor.testing import LAYOUTS, draw
from tests.backends.program import Program

Shape = tuple[int, ...]
MOST = 6  # the largest size of an axis
_FILLS = (pt.float32, pt.int32, pt.bool_)  # of operands of another kind than the first


# What is drawn for the operands behind the first, and for the attributes, by op or by class.
Choice = tuple[list[Any], dict[str, Any]]
Draw = st.DrawFn


def _fresh(pick: Draw, program: Program, op: Op, place: int, shape: Shape, dtype: DType) -> int:
    """New data for an operand, in any layout."""
    rng = np.random.default_rng(pick(st.integers(0, 2**32 - 1)))
    name = op.signature.operands[place].name
    array = draw(dtype, shape, op.tested.interval(name), rng, few=pick(st.booleans()))
    return program.leaf(array, pick(st.sampled_from(sorted(LAYOUTS))))


def _indices(pick: Draw, program: Program, shape: Shape, size: int) -> int:
    rng = np.random.default_rng(pick(st.integers(0, 2**32 - 1)))
    array = rng.integers(-size, size, shape).astype(np.int32)
    return program.leaf(array, pick(st.sampled_from(sorted(LAYOUTS))))


def _compatible(pick: Draw, shape: Shape) -> Shape:
    """A shape that broadcasts with ``shape``."""
    kept = shape[pick(st.integers(0, len(shape))) :]
    return tuple(1 if pick(st.booleans()) else n for n in kept)


def elementwise(pick: Draw, program: Program, op: Op, at: int) -> Choice:
    """The other operands broadcast with the first; where takes two of one type."""
    value = program.values[at]
    others: list[Any] = []
    own = DTYPES[value.dtype.name]
    kinds = [KIND_SETS[each.kind] for each in op.signature.operands[1:]]
    choice = pick(st.sampled_from([t for t in _FILLS if all(t.kind in kind for kind in kinds)]))
    for place, operand in enumerate(op.signature.operands[1:], 1):
        shape = _compatible(pick, value.shape)
        dtype = choice if op.signature.operands[0].kind != operand.kind else own
        again = operand.kind == op.signature.operands[0].kind and op.tested.interval(
            operand.name
        ) == op.tested.interval(op.signature.operands[0].name)
        same = again and pick(st.booleans())
        others.append(at if same else _fresh(pick, program, op, place, shape, dtype))
    attributes: dict[str, Any] = {}
    if op.tested.cases:
        attributes = dict(pick(st.sampled_from(op.tested.cases)).attributes)
    return others, attributes


def reduction(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    """Any axes; nothing is chosen from an empty one."""
    shape = program.values[at].shape
    single = any(a.type == "Axis?" for a in op.signature.attributes)
    axes = st.sampled_from(range(-len(shape), len(shape))) if shape else st.nothing()
    axis = pick(st.none() | (axes if single else axes | st.sets(axes).map(tuple)))
    if isinstance(axis, tuple) and len({a % len(shape) for a in axis}) < len(axis):
        return None
    if 0 in shape:
        return None
    return [], {"axis": axis, "keepdims": pick(st.booleans())}


def line(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    """An axis, and the direction of a sort."""
    shape = program.values[at].shape
    if not shape or 0 in shape:
        return None
    attributes: dict[str, Any] = {"axis": pick(st.integers(-len(shape), len(shape) - 1))}
    if "descending" in op.attribute_names:
        attributes["descending"] = pick(st.booleans())
    others: list[Any] = []
    dtype = DTYPES[program.values[at].dtype.name]
    for place in range(1, len(op.signature.operands)):
        others.append(_fresh(pick, program, op, place, shape, dtype))
    return others, attributes


def _broadcast_to(pick: Draw, program: Program, op: Op, at: int) -> Choice:
    shape = program.values[at].shape
    grown = [pick(st.integers(1, 3)) if n == 1 else n for n in shape]
    front = pick(st.lists(st.integers(1, 3), max_size=max(0, 4 - len(shape))))
    return [], {"shape": (*front, *grown)}


def _flip(pick: Draw, program: Program, op: Op, at: int) -> Choice:
    rank = program.values[at].ndim
    return [], {"axis": tuple(pick(st.sets(st.integers(0, rank - 1)))) if rank else ()}


def _permute(pick: Draw, program: Program, op: Op, at: int) -> Choice:
    return [], {"axes": pick(st.permutations(range(program.values[at].ndim)))}


def _reshape(pick: Draw, program: Program, op: Op, at: int) -> Choice:
    value = program.values[at]
    shapes = [value.shape[::-1], (-1,), (1, *value.shape), (*value.shape, 1), (value.size,)]
    if value.ndim > 1:
        shapes.append((value.shape[0] * value.shape[1], *value.shape[2:]))
    if 0 in value.shape:
        shapes = [s for s in shapes if -1 not in s]
    return [], {"shape": pick(st.sampled_from(shapes))}


def _region(pick: Draw, shape: Shape) -> dict[str, Any]:
    start, size, step = [], [], []
    for n in shape:
        stride = pick(st.sampled_from([1, 1, 2, -1, -2]))
        first = pick(st.integers(0, n - 1)) if n else 0
        room = (n - 1 - first if stride > 0 else first) // abs(stride) + 1 if n else 0
        start.append(first)
        size.append(pick(st.integers(min(1, room), room)))
        step.append(stride)
    return {"start": tuple(start), "size": tuple(size), "step": tuple(step)}


def _slice(pick: Draw, program: Program, op: Op, at: int) -> Choice:
    return [], _region(pick, program.values[at].shape)


def _getitem(pick: Draw, program: Program, op: Op, at: int) -> Choice:
    shape = program.values[at].shape
    region = _region(pick, shape)
    items: list[Any] = []
    for n, start, size, step in zip(shape, *region.values(), strict=True):
        if n and pick(st.booleans()):
            items.append(pick(st.sampled_from([start, start - n])))
        else:
            stop = start + size * step
            items.append(slice(start, stop if stop >= 0 else None, step))
    if len(shape) < 4 and pick(st.booleans()):
        items.insert(pick(st.integers(0, len(items))), None)
    return [], {"index": tuple(items)}


def _slice_scatter(pick: Draw, program: Program, op: Op, at: int) -> Choice:
    value = program.values[at]
    region = _region(pick, value.shape)
    return [_fresh(pick, program, op, 1, region["size"], DTYPES[value.dtype.name])], region


def _pad(pick: Draw, program: Program, op: Op, at: int) -> Choice:
    rank = program.values[at].ndim
    margins = [(pick(st.integers(0, 2)), pick(st.integers(0, 1))) for _ in range(min(rank, 2))]
    return [], {"padding": margins, "value": pick(st.integers(0, 1))}


def _index_add(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    value = program.values[at]
    if not value.ndim or 0 in value.shape:
        return None
    axis = pick(st.integers(0, value.ndim - 1))
    count = pick(st.integers(0, 4))
    shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
    places = _indices(pick, program, (count,), value.shape[axis])
    return [places, _fresh(pick, program, op, 2, shape, DTYPES[value.dtype.name])], {"axis": axis}


def _scatter(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    value = program.values[at]
    if not value.ndim or 0 in value.shape:
        return None
    axis = pick(st.integers(0, value.ndim - 1))
    # One index along the axis: with set, repeats may keep any of the values.
    update = pick(st.sampled_from(["add", "max", "min", "mul", "set"]))
    count = 1 if update == "set" else pick(st.integers(0, 4))
    shape = (*value.shape[:axis], count, *value.shape[axis + 1 :])
    places = _indices(pick, program, shape, value.shape[axis])
    values = _fresh(pick, program, op, 2, shape, DTYPES[value.dtype.name])
    return [places, values], {"axis": axis, "update": update}


def _take(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    value = program.values[at]
    if not value.ndim or 0 in value.shape:
        return None
    axis = pick(st.integers(0, value.ndim - 1))
    shape = tuple(pick(st.lists(st.integers(0, 3), max_size=2)))
    return [_indices(pick, program, shape, value.shape[axis])], {"axis": axis}


def _take_along_axis(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    value = program.values[at]
    if not value.ndim or 0 in value.shape:
        return None
    axis = pick(st.integers(0, value.ndim - 1))
    shape = (*value.shape[:axis], pick(st.integers(0, 4)), *value.shape[axis + 1 :])
    return [_indices(pick, program, shape, value.shape[axis])], {"axis": axis}


def _nonzero(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    return ([], {}) if program.values[at].ndim == 1 else None


def _masked_select(pick: Draw, program: Program, op: Op, at: int) -> Choice:
    shape = program.values[at].shape
    kept = shape[pick(st.integers(0, len(shape))) :]
    return [_fresh(pick, program, op, 1, kept, pt.bool_)], {}


def _concat(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    value = program.values[at]
    if not value.ndim:
        return None
    axis = pick(st.integers(-value.ndim, value.ndim - 1))
    shape = list(value.shape)
    shape[axis] = pick(st.integers(0, 3))
    other = _fresh(pick, program, op, 0, tuple(shape), DTYPES[value.dtype.name])
    return pick(st.sampled_from([[at, other], [other, at], [at, other, at]])), {"axis": axis}


def _matmul(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    value = program.values[at]
    if not value.ndim:
        return None
    inner = value.shape[-1]
    batch = _compatible(pick, value.shape[:-2])
    shape = pick(st.sampled_from([(inner,), (inner, 3), (*batch, inner, 2)]))
    return [_fresh(pick, program, op, 1, shape, DTYPES[value.dtype.name])], {}


def _linear(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    value = program.values[at]
    if not value.ndim:
        return None
    dtype = DTYPES[value.dtype.name]
    weight = _fresh(pick, program, op, 1, (value.shape[-1], 3), dtype)
    bias = _fresh(pick, program, op, 2, (3,), dtype) if pick(st.booleans()) else None
    return [weight, bias], {}


def _fused_linear(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    choice = _linear(pick, program, op, at)
    if choice is None:
        return None
    shape = (*program.values[at].shape[:-1], 3)
    dtype = DTYPES[program.values[at].dtype.name]
    residual = _fresh(pick, program, op, 3, shape, dtype) if pick(st.booleans()) else None
    activation = pick(st.sampled_from(["none", "relu", "gelu"]))
    return [*choice[0], residual], {"activation": activation, "scale": 0.5}


def _attention(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    value = program.values[at]
    if value.ndim < 3 or 0 in value.shape:
        return None
    dtype = DTYPES[value.dtype.name]
    keys = pick(st.integers(0, 5))
    shape = (*value.shape[:-2], keys)
    pair = [
        _fresh(pick, program, op, i, (*shape, n), dtype) for i, n in ((1, value.shape[-1]), (2, 2))
    ]
    return [*pair, None, None], {"is_causal": pick(st.booleans())}


def _layer_norm(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    value = program.values[at]
    # Rows of few equal numbers are divided by nearly nothing; their error has no bound.
    if not value.ndim or value.shape[-1] < 3 or 0 in value.shape:
        return None
    dtype, size = DTYPES[value.dtype.name], value.shape[-1:]
    others = [_fresh(pick, program, op, i, size, dtype) for i in (1, 2)]
    return [o if pick(st.booleans()) else None for o in others], {"epsilon": 0.5}


def _rms_norm(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    value = program.values[at]
    if not value.ndim or 0 in value.shape:
        return None
    dtype, size = DTYPES[value.dtype.name], value.shape[-1:]
    weight = _fresh(pick, program, op, 1, size, dtype) if pick(st.booleans()) else None
    return [weight], {"epsilon": 0.5}


def _cross_entropy(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    del op
    value = program.values[at]
    if not value.ndim or 0 in value.shape:
        return None
    return [_indices(pick, program, value.shape[:-1], value.shape[-1])], {}


def _batch_norm(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    value = program.values[at]
    if value.ndim < 2 or 0 in value.shape:
        return None
    dtype, size = DTYPES[value.dtype.name], value.shape[1:2]
    count = len(op.signature.operands)
    return [_fresh(pick, program, op, i, size, dtype) for i in range(1, count)], {"epsilon": 0.5}


def _topk(pick: Draw, program: Program, op: Op, at: int) -> Choice | None:
    del op
    shape = program.values[at].shape
    if not shape or 0 in shape:
        return None
    axis = pick(st.integers(-len(shape), len(shape) - 1))
    k = pick(st.integers(0, shape[axis]))
    return [], {"k": k, "axis": axis, "largest": pick(st.booleans())}


def _alone(pick: Draw, program: Program, op: Op, at: int) -> Choice:
    del pick, program, op, at
    return [], {}


def _cast(pick: Draw, program: Program, op: Op, at: int) -> Choice:
    own = program.values[at].dtype.name
    names = ["float32", "int32", "uint32", "bool", own]
    return [], {"dtype": pick(st.sampled_from(names))}


Builder = Callable[[Draw, Program, Op, int], Choice | None]
BY_CLASS: dict[OpClass, Builder] = {
    families.cast: _cast,
    families.elementwise: elementwise,
    families.reduction: reduction,
    families.scan: line,
    families.sort: line,
}
BY_NAME: dict[str, Builder] = {
    "attention": _attention,
    "batch_norm": _batch_norm,
    "batch_norm_train": _batch_norm,
    "broadcast_to": _broadcast_to,
    "concat": _concat,
    "contiguous": _alone,
    "cross_entropy": _cross_entropy,
    "flip": _flip,
    "fused_linear": _fused_linear,
    "getitem": _getitem,
    "index_add": _index_add,
    "layer_norm": _layer_norm,
    "linear": _linear,
    "log_softmax": line,
    "log_softmax_backward": line,
    "masked_select": _masked_select,
    "matmul": _matmul,
    "nonzero": _nonzero,
    "pad": _pad,
    "permute_dims": _permute,
    "reshape": _reshape,
    "rms_norm": _rms_norm,
    "scatter": _scatter,
    "slice": _slice,
    "slice_scatter": _slice_scatter,
    "softmax": line,
    "softmax_backward": line,
    "take": _take,
    "take_along_axis": _take_along_axis,
    "topk": _topk,
}
# Beside ops that are expansions into others, which are drawn.
LEFT_OUT = {
    "adam_step": "its tensors belong together; the tests of optimizers draw them",
    "add_slices": "its parts belong together; the tests of slices draw them",
    "arange": "makes a tensor from nothing",
    "attention_backward": "as batch_norm_backward",
    "batch_norm_backward": "its operands belong together; the conformance suite draws them",
    "cross_entropy_backward": "as batch_norm_backward",
    "full": "makes a tensor from nothing",
    "isin": "a search: the conformance suite has its cases",
    "layer_norm_backward": "as batch_norm_backward",
    "random_bits": "makes a tensor from nothing",
    "random_normal": "makes a tensor from nothing",
    "random_uniform": "makes a tensor from nothing",
    "rms_norm_backward": "as batch_norm_backward",
    "searchsorted": "a search in what is sorted: the conformance suite has its cases",
    "sgd_step": "as adam_step",
}


def builder(op: Op) -> Builder | None:
    """How to draw a call of an op."""
    return BY_NAME.get(op.name) or BY_CLASS.get(op.op_class)


def candidates(kind: str) -> list[str]:
    """Ops that take a tensor of this kind first."""
    return [
        name
        for name, op in sorted(REGISTRY.items())
        if builder(op) is not None
        and op.signature.operands
        and kind in KIND_SETS[op.signature.operands[0].kind]
    ]


def _chosen(rng: np.random.Generator, kind: str) -> Op:
    """An op, of a small class as likely as of a large one; hypothesis prefers what comes first."""
    if kind == "Bool" and rng.random() < 0.5:
        return REGISTRY["cast"]  # few ops take Bool, and most of those give it back
    names = candidates(kind)
    if rng.random() < 0.5:
        return REGISTRY[rng.choice(names)]
    classes: dict[OpClass, list[str]] = {}
    for name in names:
        classes.setdefault(REGISTRY[name].op_class, []).append(name)
    classes.pop(families.cast, None)
    return REGISTRY[rng.choice([*classes.values()][rng.integers(len(classes))])]


def _held(program: Program, op: Op, at: int) -> int:
    """The value at ``at`` inside the domain for which the op declares its tolerance."""
    value = program.values[at]
    dtype = DTYPES[value.dtype.name]
    low, high = op.tested.interval(op.signature.operands[0].name)
    if dtype.kind == "Bool" or op.op_class.moves:
        return at
    if dtype.kind == "Int":
        low, high = np.ceil(low), np.floor(high)
        if not dtype.signed:
            low, high = max(low, 0), max(high, 0)
    return program.step("clip", (at,), {"min": float(low), "max": float(high)})


@st.composite
def programs(pick: Draw, dtypes: Sequence[str], most: int = 8) -> Program:
    """Three to ``most`` ops in a row."""
    program = Program()
    sizes = st.integers(0, MOST) if pick(st.integers(0, 9)) == 0 else st.integers(1, MOST)
    shape = tuple(pick(st.lists(sizes, max_size=4)))
    dtype = DTYPES[pick(st.sampled_from(dtypes))]
    layout = pick(st.sampled_from(sorted(LAYOUTS)))
    seed = (pick(st.integers(0, 2**32 - 1)), shape, dtype.name, layout)
    rng = np.random.default_rng(zlib.crc32(repr(seed).encode()))  # hypothesis repeats its numbers
    at = program.leaf(draw(dtype, shape, (-3.0, 3.0), rng), layout)
    for _ in range(pick(st.integers(3, most))):
        value = program.values[at]
        if value.size > 2000 or value.ndim > 5:
            break
        op = _chosen(rng, DTYPES[value.dtype.name].kind)
        held = _held(program, op, at)
        make = builder(op)
        assert make is not None
        choice = make(pick, program, op, held)
        if choice is None:
            continue
        others, attributes = choice
        variadic = op.signature.operands[0].variadic
        operands = (others,) if variadic else (held, *others)
        at = program.step(op.name, tuple(operands), attributes)
    return program
