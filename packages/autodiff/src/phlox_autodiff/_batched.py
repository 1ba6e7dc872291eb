"""The Batched device: a function from table to table whose primitives hold a tensor per lane."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn, final

import numpy as np

from phlox_tensor import (
    Backend,
    BatchingError,
    Decorator,
    DType,
    Entry,
    Op,
    Ready,
    Standing,
    Tensor,
    stack,
)

from ._backward import Gradients
from ._lanes import Call, Lanes, NoLanes
from .batching import lanes_rule

Shape = tuple[int, ...]


class Level(NamedTuple):
    """One running ``vmap``.

    Attributes:
        size: number of lanes.
        randomness: ``"different"`` or ``"same"`` in all lanes.
        loop: run ops without a rule lane by lane.
        whole: the tensors of lanes are those of the arguments, not parts of them.
    """

    size: int
    randomness: str = "different"
    loop: bool = False
    whole: bool = True


_levels: ContextVar[dict[Backend, Level]] = ContextVar("phlox_lanes")


@contextmanager
def at_level(device: Backend, level: Level) -> Iterator[None]:
    """Say how many lanes the tensors of ``device`` have, in this thread or task."""
    token = _levels.set({**_levels.get({}), device: level})
    try:
        yield
    finally:
        _levels.reset(token)


def level_of(device: Backend) -> Level | None:
    """The running ``vmap`` of a device."""
    return _levels.get({}).get(device)


@final
class Batched(Decorator):
    """A device on which a tensor stands for many, one for each lane; ``vmap`` uses it.

    Its entries run once on the inner device for all lanes, by one rule for each class of ops.
    Shapes are those of one lane. ``Batched(Batched(backend))`` has lanes of lanes, and it nests
    with ``Autodiff`` in any order.

    Args:
        backend: the device to compute on, or its name.
    """

    name = "batched"
    transient = True

    def __init__(self, backend: Backend | str) -> None:
        """Take over what the inner device says about itself, with one axis fewer."""
        super().__init__(backend)
        self.max_rank = self._inner.max_rank - 1

    # The table

    def decorate(self, op: Op, inside: Entry) -> Entry:
        """Return a closure over the inner entry, by the rule of the op or of its class."""
        rule = lanes_rule(op)
        count = len(op.signature.operands)
        several = op.signature.several
        device = self._inner
        formula = None if isinstance(rule, NoLanes) else self.expanded(op)

        def lifted(out: Any, *, mapped: bool) -> Any:
            if several:
                return tuple([Lanes(each, mapped=mapped) for each in out])
            return Lanes(out, mapped=mapped)

        def run(*args: Any) -> Any:
            sizes: list[int] = []
            operands, mapped = [], []
            for item in args[:count]:
                operand, is_mapped = self._opened(item, sizes)
                operands.append(operand)
                mapped.append(is_mapped)
            if not sizes:
                return lifted(inside(*self.lower_all(op, args)), mapped=False)
            call = Call(op, inside, device, tuple(operands), tuple(mapped), args[count:], sizes[0])
            if rule is not None and not isinstance(rule, NoLanes):
                out = rule(call)
                if out is not None:
                    return lifted(_primitives(out), mapped=True)
            if formula is not None:
                return formula(*args)
            level = level_of(self)
            if level is None or not level.loop:
                raise _no_rule(op, rule)
            return lifted(_primitives(one_by_one(call)), mapped=True)

        if not count:
            return self._made(op, inside, rule)
        return run

    def _opened(self, item: Any, sizes: list[int]) -> tuple[Any, Any]:
        """An operand on the inner device, and whether it holds lanes, whose number is noted."""
        if type(item) is Lanes:
            if item.mapped:
                sizes.append(self._inner.shape_of(item.value)[0])
            return Tensor(item.value, self._inner), item.mapped
        if type(item) is tuple:
            parts = [self._opened(each, sizes) for each in item]
            return tuple(p for p, _ in parts), tuple(m for _, m in parts)
        return item, False

    def _made(self, op: Op, inside: Entry, rule: Any) -> Entry:
        """The entry of an op without operands: the same in all lanes, unless it is random."""
        device = self._inner

        def run(*args: Any) -> Lanes:
            level = level_of(self)
            if rule is None or level is None or level.randomness == "same":
                return Lanes(inside(*args), mapped=False)
            out = rule(Call(op, inside, device, (), (), args, level.size))
            return Lanes(out.primitive, mapped=True)

        return run

    # Primitives

    def lift(self, inside: Any, /) -> Any:
        """Make a primitive that is the same in all lanes."""
        return Lanes(inside, mapped=False)

    def lower(self, primitive: Any, /) -> Any:
        """Return the primitive of the inner device.

        Raises:
            BatchingError: when it differs from lane to lane.
        """
        if primitive.mapped:
            _refuse("inner", "a tensor of a lane cannot go to the device below")
        return primitive.value

    def outside(self, primitive: Any, /) -> Any:
        """Return the mean over the lanes; of what is the same in all lanes, the value."""
        if not primitive.mapped:
            return primitive.value
        lanes: Tensor[Any] = Tensor(primitive.value, self._inner)
        return lanes.mean(axis=0).primitive

    def _of_each_lane(self, primitive: Any) -> Tensor[Any]:
        """A new value for a constant that has the lanes in front.

        Raises:
            BatchingError: when the function sees lanes that were moved to the front or cut out.
        """
        level = level_of(self)
        assert level is not None
        if not level.whole:
            raise BatchingError(
                "vmap",
                "what layers in training propose has no place: each lane has its own",
                got="chunk_size, or in_axes that are not 0",
                expected="lanes along the first axis, all at once",
                hint="px.vmap(f)(models), or model.with_training(False)",
            )
        lanes: Tensor[Any] = Tensor(primitive.value, self._inner)
        if not primitive.mapped:
            lanes = lanes.reshape((1, *lanes.shape)).broadcast_to((level.size, *lanes.shape))
        return lanes

    def standing(self, primitive: Any, /) -> Standing:
        """Return ``"constant"``: lanes record nothing, the history is the inner device's."""
        return "constant"

    def shape_of(self, primitive: Any, /) -> Shape:
        """Return the shape in one lane."""
        shape = self._inner.shape_of(primitive.value)
        return shape[1:] if primitive.mapped else shape

    def dtype_of(self, primitive: Any, /) -> DType:
        """Return the element type."""
        return self._inner.dtype_of(primitive.value)

    def spec_of(self, primitive: Any, /) -> tuple[Shape, DType]:
        """Return shape in one lane and element type at once."""
        shape, dtype = self._inner.spec_of(primitive.value)
        return (shape[1:] if primitive.mapped else shape), dtype

    def strides_of(self, primitive: Any, /) -> tuple[int, ...] | None:
        """Return how many elements lie between neighbors in one lane; None if unknown."""
        found = self._inner.strides_of(primitive.value)
        return found[1:] if found is not None and primitive.mapped else found

    def read(self, primitive: Any, /) -> np.ndarray[Any, Any]:
        """Return the data of what is the same in all lanes.

        Raises:
            BatchingError: when it differs from lane to lane.
        """
        if primitive.mapped:
            _refuse("read", "the value differs from lane to lane, so that there is none to read")
        return self._inner.read(primitive.value)

    async def read_async(self, primitive: Any, /) -> np.ndarray[Any, Any]:
        """Return what ``read`` does."""
        return self.read(primitive)

    def is_readable(self, primitive: Any, /) -> bool:
        """Whether the primitive is the same in all lanes, and the inner device can read it."""
        return not primitive.mapped and self._inner.is_readable(primitive.value)

    def detach(self, primitive: Any, /) -> Any:
        """Return the primitive without its history on the devices inside."""
        return Lanes(self._inner.detach(primitive.value), mapped=primitive.mapped)

    # What the inner device records

    def require_grad(self, primitive: Any, /) -> Any:
        """Return the primitive as a leaf of the inner device, one for all lanes."""
        return Lanes(self._inner.require_grad(primitive.value), mapped=primitive.mapped)

    def is_tracked(self, primitive: Any, /) -> bool:
        """Whether a gradient would flow to the primitive."""
        return self._inner.is_tracked(primitive.value)

    def backward(
        self,
        tensor: Tensor[Any],
        seed: Tensor[Any] | None,
        retain_graph: bool,
        ready: Ready | None = None,
    ) -> Gradients:
        """Refuse: the lanes of a loss are not one loss."""
        del tensor, seed, retain_graph, ready
        raise BatchingError(
            "backward",
            "backward() inside of vmap would mix the lanes",
            expected="a function of its own for each lane",
            hint="px.vmap(px.grad(f))(xs), or backward() of what vmap gave",
        )

    def propose(self, result: Any, target: Tensor[Any], value: Tensor[Any], /) -> Any:
        """Return ``result`` with a new value for ``target``: of each lane, or the mean over them.

        Raises:
            BatchingError: when lanes have statistics of their own that are no tensor outside.
        """
        if not self.records:
            return result
        given: Tensor[Any] = value if value.device is self else value.to_device(self)
        inside, found = target, Tensor[Any](self.outside(given.primitive), self._inner)
        if target.device is self:
            inside = Tensor(target.primitive.value, self._inner)
            if target.primitive.mapped:
                found = self._of_each_lane(given.primitive)
        out = self._inner.propose(result.value, inside, found)
        return Lanes(out, mapped=result.mapped)


def one_by_one(call: Call) -> Any:
    """Run an op for each lane, and stack what comes out."""
    rows = []
    for lane in range(call.size):

        def pick(item: Any, mapped: Any, lane: int = lane) -> Any:
            if isinstance(item, tuple):
                return tuple(pick(i, m) for i, m in zip(item, mapped, strict=True))
            return item[lane] if mapped else item

        operands = [pick(i, m) for i, m in zip(call.operands, call.mapped, strict=True)]
        out = call.run(*operands)
        rows.append(out if isinstance(out, tuple) else (out,))
    columns = [list(column) for column in zip(*rows, strict=True)]
    for column in columns:
        shapes = sorted({x.shape for x in column})
        if len(shapes) > 1:
            raise BatchingError(
                call.op.name,
                "the lanes give results of different shapes",
                got=", ".join(map(str, shapes)),
                expected="one shape in all lanes",
                hint="[f(x) for x in xs]",
            )
    stacked = tuple(stack(column) for column in columns)
    return stacked if call.op.signature.several else stacked[0]


def _primitives(out: Any) -> Any:
    return tuple([x.primitive for x in out]) if isinstance(out, tuple) else out.primitive


def _no_rule(op: Op, rule: Any) -> BatchingError:
    reason = rule.reason if isinstance(rule, NoLanes) else "it has no expansion either"
    return BatchingError(
        op.name,
        f"the op has no batching rule: {reason}",
        expected="an op that runs for all lanes at once",
        hint="px.vmap(f, loop=True) runs it lane by lane; px.where(mask, x, 0.0) keeps one shape; "
        "or px.stack([f(x) for x in xs])",
    )


def _refuse(op: str, what: str) -> NoReturn:
    raise BatchingError(
        op,
        f"{what} inside of vmap",
        hint="px.where(condition, a, b) for a choice; return the tensor, and read what vmap gives",
    )
