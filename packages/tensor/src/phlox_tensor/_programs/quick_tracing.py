"""Trials: what a function of elements does this time, found out without data, in microseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, final

from .._errors.classes import BackendUnavailableError, CompileError, Rejected
from .._op.declaration import REGISTRY, Op, Shape, Spec
from .._recording.graph import Node, Value
from .._recording.record import refuse
from .._values.dtype import DType
from .._values.number import NOBODY, Number, Scalar
from ..inference import result_dtype
from .tracing import StandIn

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from .._device.backend import Backend
    from .._device.table import Entry

_SHAPE: Final = (1,)


class Element(NamedTuple):
    """The primitive of a trial: one of its values, which has no data."""

    tape: Tape
    value: int
    dtype: DType


class Step(NamedTuple):
    """One op of a trial: operands are values or numbers, attributes as the entry gets them."""

    op: Op
    operands: tuple[Any, ...]
    attributes: tuple[Any, ...]
    dtype: DType


@final
class Tape:
    """What one trial did.

    Attributes:
        inputs: the element types of the arguments, which are its first values.
        steps: the ops, each of which gives one value more.
    """

    def __init__(self, inputs: Sequence[DType]) -> None:
        """Start with arguments of these element types."""
        self.inputs: Final = tuple(inputs)
        self.steps: Final[list[Step]] = []

    def elements(self) -> list[Element]:
        """Return the arguments."""
        return [Element(self, at, dtype) for at, dtype in enumerate(self.inputs)]

    def written(self) -> tuple[tuple[Any, ...], list[int | float]]:
        """Return what was done apart from the numbers in it, and these numbers."""
        numbers: list[int | float] = []
        done: list[Any] = []
        for op, operands, attributes, _ in self.steps:
            done.append(op)
            for item in operands + attributes:
                cls = type(item)
                if cls is float or cls is int:
                    numbers.append(item)
                    done.append(cls)
                else:
                    done.append(item)
        return tuple(done), numbers

    def nodes(self, device: Backend) -> tuple[list[Node], list[Spec]]:
        """Return the ops as nodes whose numbers are known by their place, and all values."""
        specs = [Spec(_SHAPE, dtype) for dtype in self.inputs]
        nodes: list[Node] = []
        count = 0

        def placed(item: Any) -> Any:
            nonlocal count
            if type(item) is not float and type(item) is not int:
                return item
            count += 1
            return Number(item, count - 1, NOBODY)

        for op, operands, attributes, dtype in self.steps:
            given = tuple([placed(item) for item in operands])
            settings = tuple([placed(item) for item in attributes])
            nodes.append(Node(op, device, _no_entry, given, settings, (len(specs),), "?"))
            specs.append(Spec(_SHAPE, dtype))
        return nodes, specs


@final
class Trial(StandIn):
    """A base device with the elementwise entries of another one, which note what is asked of them.

    It has no data, and does not tell shapes: a function that runs does the same for all of them.

    Args:
        like: the base device.
    """

    name = "trial"

    def entry(self, name: str) -> Entry | None:
        """Return what notes the op; None where the device runs its expansion, or it has no say."""
        op = REGISTRY[name]
        if self.like.entry(name) is None or not op.op_class.diagonal or op.signature.several:
            return None
        count = len(op.signature.operands)
        kind = op.signature.results[0].kind
        by_kind = [operand.kind for operand in op.signature.operands]
        known: dict[Any, DType] = {}

        def run(*args: Any) -> Element:
            tape: Any = None
            operands: list[Any] = []
            types: list[DType | None] = []
            for item in args[:count]:
                if type(item) is Element:
                    tape = item.tape
                    operands.append(Value(item.value))
                    types.append(item.dtype)
                elif isinstance(item, Scalar):
                    operands.append(item)
                    types.append(None)
                else:
                    raise Rejected(f"{op.name} of {type(item).__name__}")
            attributes = args[count:]
            key = (*types, *attributes) if "dtype" in op.attribute_names else tuple(types)
            dtype = known.get(key)
            if dtype is None:
                _require_alike(op, by_kind, types)
                dtype = result_dtype(op, kind, types, attributes, self.default_int)
                known[key] = dtype
            tape.steps.append(Step(op, tuple(operands), attributes, dtype))
            return Element(tape, len(tape.inputs) + len(tape.steps) - 1, dtype)

        return run

    def resolve(self, op: Op) -> Entry:
        """Raise for an op of more than elements."""
        try:
            return super().resolve(op)
        except BackendUnavailableError:
            what = f"the function calls {op.name}"
            refuse(CompileError("trial", what, expected="elementwise ops"))

    def checks_operands(self, op: Op) -> bool:
        """Whether the entry notes the op itself."""
        return op.op_class.diagonal

    def shape_of(self, primitive: Element, /) -> Shape:
        """Raise: what asks for a shape may do another thing for another one."""
        what = "the function asks for a shape"
        refuse(CompileError("trial", what, expected="a function of elements"))

    def dtype_of(self, primitive: Element, /) -> DType:
        """Return the element type."""
        return primitive.dtype

    def spec_of(self, primitive: Element, /) -> tuple[Shape, DType]:
        """Return the element type, and what stands for any shape."""
        return _SHAPE, primitive.dtype

    def upload(self, array: np.ndarray[Any, Any], dtype: DType, /) -> NoReturn:
        """Raise: data from outside is no element of an argument."""
        what = "the function makes a tensor"
        refuse(CompileError("trial", what, expected="ops of its arguments"))

    def read(self, primitive: Element, /) -> NoReturn:
        """Raise: there are no values."""
        what = "the function reads a value"
        refuse(CompileError("trial", what, expected="ops of its arguments"))


def _require_alike(op: Op, kinds: Sequence[str], types: Sequence[DType | None]) -> None:
    """Refuse operands of one declared kind that differ in their types.

    Raises:
        Rejected: so that they are brought together first.
    """
    found: dict[str, DType] = {}
    for kind, dtype in zip(kinds, types, strict=True):
        if dtype is not None and found.setdefault(kind, dtype) is not dtype:
            raise Rejected(f"{op.name} of {dtype} beside {found[kind]}")


def _no_entry(*_: Any) -> NoReturn:
    raise CompileError("trial", "an op of a trial does not run")
