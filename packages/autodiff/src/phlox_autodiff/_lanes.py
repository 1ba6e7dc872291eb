"""What a batching rule takes: one call of an op whose operands hold lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from phlox_tensor import Backend, Entry, Op, Tensor

Shape = tuple[int, ...]


@final
class Lanes:
    """A primitive of the inner backend that holds one tensor for each lane, or one for all.

    Attributes:
        value: the primitive of the inner backend.
        mapped: its first axis counts the lanes; else all lanes have the same value.
    """

    __slots__ = ("mapped", "value")

    def __init__(self, value: Any, *, mapped: bool) -> None:
        """Join the two."""
        self.value = value
        self.mapped = mapped


class Call(NamedTuple):
    """One call of an op, with tensors of the inner backend.

    Attributes:
        op: the op.
        inside: its entry on the inner backend.
        device: the inner backend.
        operands: tensors, the lanes along the first axis where ``mapped``; numbers; None; a tuple
            of tensors for a variadic operand.
        mapped: for each operand, whether it holds lanes; a tuple for a variadic one.
        attributes: as the entry gets them, for the tensor of one lane.
        size: number of lanes.
    """

    op: Op
    inside: Entry
    device: Backend
    operands: tuple[Any, ...]
    mapped: tuple[Any, ...]
    attributes: tuple[Any, ...]
    size: int

    def run(self, *operands: Any, attributes: tuple[Any, ...] | None = None) -> Any:
        """Call the entry of the inner backend with operands and attributes that fit it."""
        given = self.attributes if attributes is None else attributes
        out = self.inside(*map(_primitive, operands), *given)
        if self.op.signature.several:
            return tuple(Tensor(each, self.device) for each in out)
        return Tensor(out, self.device)

    def shape(self, place: int) -> Shape:
        """The shape of an operand in one lane; () for a number."""
        operand = self.operands[place]
        if not isinstance(operand, Tensor):
            return ()
        return operand.shape[1:] if self.mapped[place] else operand.shape

    def full(self, place: int, rank: int | None = None) -> Any:
        """An operand with its lanes, also where all are the same; absent ones stay so.

        With a ``rank`` the tensor of a lane gets so many axes, by axes of size 1 in front.
        """
        operand = self.operands[place]
        if not isinstance(operand, Tensor):
            return operand
        return with_lanes(operand, self.size, mapped=self.mapped[place], rank=rank)

    def only(self, *places: int) -> bool:
        """Whether no operand but those at ``places`` holds lanes."""
        return not any(m for i, m in enumerate(self.mapped) if i not in places)

    def attribute(self, name: str) -> Any:
        """The value of an attribute."""
        return self.attributes[self.op.attribute_names.index(name)]

    def replaced(self, **values: Any) -> tuple[Any, ...]:
        """The attributes with other values for some."""
        pairs = zip(self.op.attribute_names, self.attributes, strict=True)
        return tuple(values.get(name, value) for name, value in pairs)


# From a call to the results, each with the lanes along the first axis; None where the rule does
# not know the case, so that the expansion of the op runs.
LanesRule = Callable[[Call], Any]


@final
@dataclass(frozen=True, slots=True)
class NoLanes:
    """Says that lanes of an op have no common form, and why."""

    reason: str


def _primitive(item: Any) -> Any:
    if isinstance(item, tuple):
        return tuple(map(_primitive, item))
    return item.primitive if isinstance(item, Tensor) else item


def with_lanes(x: Tensor[Any], size: int, *, mapped: bool, rank: int | None = None) -> Tensor[Any]:
    """A tensor whose first axis counts ``size`` lanes, each of ``rank`` axes where that is told."""
    own = x.shape[1:] if mapped else x.shape
    shape = (1,) * (0 if rank is None else rank - len(own)) + own
    if mapped:
        return x if shape == own else x.reshape((size, *shape))
    return x.reshape((1, *shape)).broadcast_to((size, *shape))


def unwrapped(leaf: Any) -> Any:
    """Take a tensor out of every ``vmap``, with its batch axes; return another leaf as it is."""
    while isinstance(leaf, Tensor) and type(leaf.primitive) is Lanes:
        assert leaf.device.inner is not None
        leaf = Tensor(leaf.primitive.value, leaf.device.inner)
    return leaf
