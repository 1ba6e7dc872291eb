"""Recording what a function does on the base devices, while it does it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from hashlib import blake2b
from math import prod
from typing import Any, Final, NoReturn, final
from weakref import ref

import numpy as np

from .._device.backend import Backend
from .._device.table import Entry
from .._errors.classes import CompileError, PhloxError
from .._errors.foreign import is_ours
from .._op.declaration import Op, Spec, is_built_in
from .._tree import walk as tree
from .._values.cell import RECORDINGS, Cell, Packed, recording_here
from .._values.number import NeedsValue, Number, Scalar, plain, type_depends_on_values
from .._values.primitives import each_primitive, on_primitives
from .._values.tensor import Tensor
from ..inference import infer_prepared
from .graph import Formula, Graph, Guard, Node, Value
from .raises import BY_TYPES, follows_from_shapes, has_number, moving

_BETWEEN: Final = ("contextlib", "functools")


@final
class _Seen(ref[Any]):
    """A primitive that an op gave, and what it was known by."""

    __slots__ = ("key",)
    key: int


@final
class Recording:
    """Notes the ops of one run of a function; the run itself is the eager one.

    Values are known by the primitives of the base devices. What is given or captured stays alive
    meanwhile; results go when the function lets go of them, so that a recorded run needs no more
    memory than any other.

    Attributes:
        outcomes: what the cells that were set hold in the end.
        expected: values of which the function's results have to need some, and the error else.
        steps: what made steps, a parameter before and after each, and what to tell of it.
        positions: how many rows tables of positions have, where more are noted than a run reads.
    """

    positions = 0

    def __init__(
        self,
        open_cell: Callable[[Cell[Any], Recording], Any],
        name: str = "compile",
        *,
        again: bool = False,
    ) -> None:
        """Start; ``open_cell`` makes the content of a cell an input when it is first read.

        Args:
            open_cell: says what the function finds in a cell.
            name: the name of what records, for errors.
            again: whoever records starts again where a number has to be a plain value.
        """
        self._open_cell = open_cell
        self._again = again
        self._over = False
        self._name = name
        self._numbers: list[Formula] = []
        self._guards: dict[Any, Guard] = {}
        self._nodes: list[Node] = []
        self._specs: list[Spec] = []
        self._places: dict[int, int] = {}
        self._kept: list[Any] = []
        self._results: dict[int, _Seen] = {}
        self._inputs: list[int] = []
        self._constants: dict[int, Any] = {}
        self.copied: dict[int, tuple[bytes, str]] = {}
        self._contents: dict[Cell[Any], Any] = {}
        self.outcomes: dict[Cell[Any], Any] = {}
        self.expected: list[tuple[list[int], Exception]] = []
        self.steps: list[tuple[Any, Any, Any, Callable[[Any, Any, Any], None]]] = []
        self._born: dict[Cell[Any], Any] = {}
        self._refused: CompileError | None = None
        self._busy = False

    # Values

    def input(self, device: Backend, primitive: Any) -> int:
        """Note a primitive that is given anew at each call, and return its value."""
        value = self._note(device, primitive)
        self._kept.append(primitive)
        self._inputs.append(value)
        return value

    def value_of(self, device: Backend, primitive: Any) -> int:
        """Return the value of a primitive; what nobody noted is a constant."""
        value = self._places.get(id(primitive))
        if value is None:
            value = self._note(device, primitive)
            self._constants[value] = primitive
        return value

    def expect(self, tensors: Iterable[Tensor[Any]], error: Exception) -> None:
        """Note results of which some have to be needed once the run is over."""
        found = []
        for tensor in tensors:
            device, primitive = tensor.device, tensor.primitive
            while device.inner is not None:
                primitive, device = device.lower(primitive), device.inner
            found.append(self.value_of(device, primitive))
        self.expected.append((found, error))

    def _result(self, device: Backend, primitive: Any) -> int:
        """Note what an op gave, for as long as somebody has it."""
        value = self._note(device, primitive)
        try:
            seen = _Seen(primitive, self._forget)
        except TypeError:  # no weak reference can say whether it still exists
            self._kept.append(primitive)
        else:
            seen.key = id(primitive)
            self._results[seen.key] = seen
        return value

    def _forget(self, seen: _Seen) -> None:
        """Another object may have the same ``id`` from now on."""
        if self._results.get(seen.key) is seen:
            del self._results[seen.key], self._places[seen.key]

    def _note(self, device: Backend, primitive: Any) -> int:
        value = len(self._specs)
        self._places[id(primitive)] = value
        self._specs.append(Spec(*device.spec_of(primitive)))
        return value

    def handle(self, device: Backend, primitive: Any) -> Any:
        """Return another object with the same data, so that inputs and constants do not mix."""
        self._busy = True
        try:
            shape = device.shape_of(primitive)
            out = device.ops.reshape(primitive, shape)
            return (
                device.upload(device.read(primitive), device.dtype_of(primitive))
                if (out is primitive)
                else out
            )
        finally:
            self._busy = False

    # Numbers

    def given(self, value: int | float) -> Number:
        """Return a number that is given anew at each call."""
        self._numbers.append(Formula(None, ()))
        return Number(value, len(self._numbers) - 1, self)

    def number(self, function: Callable[..., Any], args: tuple[Any, ...], value: Any) -> Number:
        """Keep a number that ``function`` gave."""
        if self._over:  # a number that somebody keeps
            return value
        own = self._own(args)
        self._numbers.append(Formula(function, own))
        return Number(
            value, len(self._numbers) - 1, self, either=type_depends_on_values(function, own)
        )

    def guard(self, function: Callable[..., Any], args: tuple[Any, ...], value: Any) -> None:
        """Keep that the program went on with what ``function`` gave."""
        if self._over:
            return
        key = function, tuple((Number, a.place) if type(a) is Number else a for a in args)
        if key not in self._guards:
            self._guards[key] = Guard(function, self._own(args), value, line_of_user())

    def settle(self, number: Number, what: str) -> None:
        """Start again with the plain value of a number, which is as it is once the run is over.

        Raises:
            NeedsValue: naming it.
            TypeError: where nobody starts again.
        """
        if self._over:
            return
        if self._again:
            raise NeedsValue(self.given_for(number))
        raise TypeError(
            f"[{self._name}] a number {what}\n"
            "hint: float(n) or int(n), if each value may have a recording of its own"
        )

    def has(self, number: Number) -> bool:
        """Whether a number is of this recording."""
        return number._owner is self

    def given_for(self, number: Number) -> set[int]:
        """The numbers that were given and that a number comes of, by place."""
        work, found = [number], set[int]()
        for each in work:
            function, args = self._numbers[each.place]
            if function is None:
                found.add(each.place)
            work += [a for a in args if type(a) is Number]
        return found

    def _own(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Numbers of other recordings count as what they are now."""
        return tuple([a.value if type(a) is Number and a._owner is not self else a for a in args])

    # Cells

    def born(self, cell: Cell[Any]) -> None:
        """Keep what a cell holds that the function makes: nobody else knows of it."""
        self._born[cell] = cell.current()

    def content(self, cell: Cell[Any]) -> Any:
        """What a cell holds for the function."""
        if cell in self._born:
            return self._born[cell]
        if cell in self.outcomes:
            return self.outcomes[cell]
        if cell not in self._contents:
            self._contents[cell] = self._open_cell(cell, self)
        return self._contents[cell]

    def put(self, cell: Cell[Any], value: Any) -> None:
        """What the function leaves in a cell."""
        if cell in self._born:
            self._born[cell] = value
            return
        self.outcomes[cell] = value

    # Ops

    def run(self, device: Backend, op: Op, entry: Entry, args: tuple[Any, ...]) -> Any:
        """Run an entry and note it."""
        if self._busy:  # one entry inside another
            return entry(*args)
        given = self._own(args)
        self._busy = True
        try:
            out = entry(*map(plain, given))
        except Exception as error:
            self._raised(device, op, given, error)
            raise
        finally:
            self._busy = False
        count = len(op.signature.operands)
        operands = tuple([self._operand(device, item) for item in given[:count]])
        if op.traits.measured or not is_built_in(op):
            self._refuse_unknown(device, op, operands, given[count:])
        outs = out if op.signature.several else (out,)
        results = tuple([self._result(device, each) for each in outs])
        line = line_of_user()
        self._nodes.append(Node(op, device, entry, operands, given[count:], results, line))
        return out

    def _raised(self, device: Backend, op: Op, given: tuple[Any, ...], error: Exception) -> None:
        """Keep that values made an op raise, should the function catch it and go on."""
        count = len(op.signature.operands)
        if isinstance(error, BY_TYPES):
            return
        if not has_number(given):
            taken = {self._places.get(id(p)) for p in each_primitive(given[:count])}
            if taken.isdisjoint(moving(self._inputs, self._nodes)):
                return
            if follows_from_shapes(error, device, op, given[:count], given[count:]):
                return
        kind = type(error).__name__
        name = f"px.{kind}" if isinstance(error, PhloxError) else kind
        self.remember(
            CompileError(
                self._name,
                "the function goes on after an error that depends on values, as a replay could not",
                got=f"{kind} of {op.name} caught at {line_of_user()}",
                expected="ops of tensors alone, whose errors leave the function",
                hint=f"try: step(x) / except {name}: ... around the call of the compiled "
                "function; or px.where(condition, a, b) in place of except",
            )
        )

    def _operand(self, device: Backend, item: Any) -> Any:
        if type(item) is tuple or item is None or isinstance(item, Scalar):
            return on_primitives(lambda p: Value(self.value_of(device, p)), item)
        return Value(self.value_of(device, item))

    def _refuse_unknown(
        self, device: Backend, op: Op, operands: tuple[Any, ...], attributes: tuple[Any, ...]
    ) -> None:
        """Refuse an op whose result has a size that the values tell."""

        def spec(item: Any) -> Any:
            if type(item) is tuple:
                return tuple(self._specs[each.number] for each in item)
            return self._specs[item.number] if type(item) is Value else plain(item)

        specs = [spec(item) for item in operands]
        found = infer_prepared(op, specs, tuple(map(plain, attributes)), device.default_int)
        if any(-1 in each.shape for each in found):
            self.refuse(
                CompileError(
                    op.name,
                    "the size of the result depends on values, and shapes are fixed when a "
                    "function is compiled",
                    got=f"a call at {line_of_user()}",
                    expected="an op whose result has a shape that follows from shapes",
                    hint="mask.where(x, 0) keeps the shape of x; or call this op outside of the "
                    "compiled function",
                )
            )

    def read(self, device: Backend, primitive: Any) -> None:
        """Refuse to read a value that the next call may not find."""
        if self._busy:
            return
        value = self.value_of(device, primitive)
        if value not in self._constants:
            self.refuse(_reading(self._name, self._specs[value]))

    def remember(self, error: CompileError) -> None:
        """Keep why a replay could not do what the function does, should the function catch it."""
        self._refused = self._refused or error

    def refuse(self, error: CompileError) -> NoReturn:
        """Raise, also where the function catches it, once it returns."""
        self.remember(error)
        raise error

    def raise_caught(self) -> None:
        """Raise what the function has caught and went on after: other values go another way.

        Raises:
            CompileError: the first refusal.
        """
        if self._refused is not None:
            raise self._refused

    def uploaded(self, device: Backend, array: np.ndarray[Any, Any], out: Any) -> None:
        """Note host data that became a tensor: it must be the same in the next run."""
        if not self._busy:
            value = self.value_of(device, out)
            self.copied[value] = blake2b(array.tobytes()).digest(), line_of_user()

    @property
    def count(self) -> int:
        """How many ops were noted so far."""
        return len(self._nodes)

    def graph(self, outputs: tuple[int, ...]) -> Graph:
        """Return what was noted, given the values that are needed."""
        return Graph(
            tuple(self._inputs),
            dict(self._constants),
            tuple(self._nodes),
            outputs,
            tuple(self._numbers),
            tuple(self._guards.values()),
            tuple(self._specs),
        )

    def close(self) -> None:
        """Forget the primitives, what cells hold, and what the graph has.

        Numbers know their recording for as long as a graph knows them.
        """
        for cell, value in self._born.items():
            cell.pack(Packed(None, tree.map(plain, value), lambda _, content: content))
        self._over = True
        del self._open_cell
        self._refused = None  # it has frames of the function
        for cells in (self._born, self._contents, self.outcomes):
            cells.clear()
        for found in (self._constants, self._places, self._results, self._guards):
            found.clear()
        for listed in (self._kept, self._nodes, self._numbers):
            listed.clear()


def _reading(name: str, spec: Spec) -> CompileError:
    one = prod(spec.shape) == 1
    return CompileError(
        name,
        "the function reads a value, which a replay could not do",
        got=f"{'a tensor of one element' if one else f'a tensor of shape {spec.shape}'} read at "
        f"{line_of_user()}",
        expected="ops of tensors alone",
        hint="px.where(condition, a, b) in place of if; return the tensor and read it outside; or "
        "compile the parts before and behind the reading",
    )


def line_of_user() -> str:
    """Return file and line of the innermost frame outside of this framework."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        if not is_ours(module) and module not in _BETWEEN:
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def line_of_error(error: BaseException) -> str:
    """Return file and line of the innermost frame outside of this framework that an error left."""
    found, step = "", error.__traceback__
    while step is not None:
        if not is_ours(step.tb_frame.f_globals.get("__name__", "")):
            found = f"{step.tb_frame.f_code.co_filename}:{step.tb_lineno}"
        step = step.tb_next
    return found


def recording() -> Recording | None:
    """Return the recording under way in this thread or task, or None."""
    return recording_here.get() if RECORDINGS.count else None


def refuse(error: CompileError) -> NoReturn:
    """Raise, also where a function that is recorded catches it, once it returns."""
    made = recording()
    if made is not None:
        made.refuse(error)
    raise error
