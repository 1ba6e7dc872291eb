"""What a backend is: a table from op to plain function, and the device at the same time."""

from __future__ import annotations

import itertools
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, Protocol

import numpy as np

from .._errors.classes import BackendUnavailableError, DeviceError, GradientError, Rejected
from .._op.declaration import REGISTRY, Op, Shape
from .._op.expansion import expansion
from .._values.dtype import DType
from .._values.tensor import Tensor
from .key import exact
from .program import CallSequence, Kernel, Program, ProgramLimits, RowProduct, Run, SequenceRun
from .settings import of_settings, require_settings
from .shared import SharedMemory
from .table import Entry, Table

Primitive = Any
Standing = Literal["constant", "leaf", "result", "freed"]
"""How a device tracks a primitive: by no graph, as a leaf of it, as a result, as one freed."""
Pull = Callable[[list[Any], bool], "Sequence[tuple[Tensor, ...]]"]
"""From cotangents, and whether there will be another call, to those of the operands."""
_MOST_PASSED: Final = 4096


# How an expansion becomes one kernel; what makes kernels needs devices, and puts it here.
expanded_as: Final[list[Callable[[Op, Backend], Entry]]] = []


class MemoryUse(NamedTuple):
    """Bytes that the tensors of a backend hold now, and held at most."""

    current: int
    peak: int


class Watcher(Protocol):
    """What stands between base devices and their callers for a while."""

    def entry(self, device: Backend, op: Op, entry: Entry, /) -> Entry:
        """Return what runs in the place of an entry."""
        ...

    def methods(self, device: Backend, /) -> dict[str, Callable[..., Any]]:
        """Return what runs in the place of methods that bring data from or to the host."""
        ...


_WATCHERS: Final[list[Watcher]] = []


# What says in our words why a constructor does not take its arguments: ``arguments`` puts it here.
told_by: Final[list[Callable[..., TypeError]]] = []


class _Interned(ABCMeta):
    """Equal settings give the same object, so that ``is`` compares devices."""

    _objects: ClassVar[dict[object, Any]] = {}
    _changing: ClassVar[RLock] = RLock()

    if not TYPE_CHECKING:  # checkers read the constructors

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            try:
                made = super().__call__(*args, **kwargs)
            except TypeError as error:
                wrong = next((told(cls, args, kwargs, error) for told in told_by), error)
                if wrong is error:
                    raise
                raise wrong from error
            key = cls, made.settings
            kept = _Interned._objects.get(key)
            if kept is None:
                require_settings(cls, made)
                with _Interned._changing:  # no op is declared between tables and their publication
                    made._lay_out()
                    kept = _Interned._objects.setdefault(key, made)
            return kept


class Backend(metaclass=_Interned):
    """A table from op to plain function; a backend object is also the device of its tensors.

    A subclass sets the attributes below, gives the abstract functions, and looks ops up in
    ``entry``. Entries are called as ``entry(*operands, *attributes)`` with primitives and
    normalized attributes; where ``entry`` gives None, the op's expansion runs instead.

    Attributes:
        name: the class of device, such as ``"cpu"``.
        settings: what tells two devices of one class apart; hashable. The constructor takes them
            in this order, by position or by keyword: pickles, and decorators without recording, are
            made from them.
        dtypes: the element types that the backend has.
        default_float: element type of new Float tensors.
        default_int: element type of new Int tensors.
        ops: every op on primitives that fit it: ``device.ops.add(p, q)``.
        checking: the same for operands as they come. An entry that does not take them as they are,
            or checks nothing, raises ``Rejected``; the call then brings them together.
        passed: entry and attributes of calls that passed every check, and whether they give
            several results; by what decides that: the op, the attributes as given, shapes and
            element types.
        inner: the backend that a decorator wraps, else None.
        records: tensors on this device can have gradients; modules made on it train.
        recorder: the device that records: this one, one that it wraps, or None.
        transient: made by a transform, such as ``vmap``, for the time of one call.
        has_data: tensors have values to read.
        max_rank: the largest number of axes of a tensor.
        limits: what one kernel of the backend may take of a program; nothing by default.
        slack: factor on the tolerances that ops declare, for tests.
        strict: denormals, the sign of zero and the largest numbers come out right too.
    """

    name: str
    settings: tuple[Any, ...] = ()
    dtypes: frozenset[DType]
    default_float: DType
    default_int: DType
    ops: Table
    checking: Table
    _tables: dict[tuple[Watcher, ...], tuple[Table, Table]]
    passed: dict[tuple[Any, ...] | None, tuple[Entry, tuple[Any, ...], bool]]
    records: bool = False
    recorder: Backend | None = None
    transient: bool = False
    has_data: bool = True
    max_rank: int = 16
    limits: ProgramLimits = ProgramLimits()
    slack: float = 1.0
    strict: bool = True

    @property
    def inner(self) -> Backend | None:
        """The backend that a decorator wraps, else None."""
        return None

    @property
    def base(self) -> Backend:
        """The innermost backend: this one, unless it is a decorator."""
        found: Backend = self
        while found.inner is not None:
            found = found.inner
        return found

    @abstractmethod
    def entry(self, name: str) -> Entry | None:
        """Return the function of the op of this name, or None."""

    @abstractmethod
    def shape_of(self, primitive: Primitive, /) -> Shape:
        """Return the shape of a primitive."""

    @abstractmethod
    def dtype_of(self, primitive: Primitive, /) -> DType:
        """Return the element type of a primitive."""

    def spec_of(self, primitive: Primitive, /) -> tuple[Shape, DType]:
        """Return shape and element type of a primitive at once; every call asks for both."""
        return self.shape_of(primitive), self.dtype_of(primitive)

    def strides_of(self, primitive: Primitive, /) -> tuple[int, ...] | None:
        """Return how many elements lie between neighbors along each axis; None if unknown."""
        return None

    def key_of(
        self, op: Op, attributes: tuple[Any, ...], first: Any, /, *others: Any
    ) -> tuple[Any, ...] | None:
        """What decides whether a call passes its checks; None if it has to be checked every time.

        Operands are primitives, tuples of them, or None.
        """
        plain = exact(attributes)
        if plain is None:
            return None
        if not others:  # as most calls are
            return op, plain, self._part_of_key(first)
        return (op, plain, self._part_of_key(first), *map(self._part_of_key, others))

    def _part_of_key(self, operand: Any) -> Any:
        if type(operand) is tuple:
            return tuple(map(self.spec_of, operand))
        return None if operand is None else self.spec_of(operand)

    @abstractmethod
    def upload(self, array: np.ndarray[Any, Any], dtype: DType, /) -> Primitive:
        """Copy an array, whose type is ``dtype.numpy``, to the device."""

    @abstractmethod
    def read(self, primitive: Primitive, /) -> np.ndarray[Any, Any]:
        """Return the data as a NumPy array; waits for the device."""

    async def read_async(self, primitive: Primitive, /) -> np.ndarray[Any, Any]:
        """Return the data as a NumPy array without blocking the event loop, where supported."""
        return self.read(primitive)

    def begin_read(self, primitive: Primitive, /) -> bool:
        """Begin what a later ``read`` waits for; return whether the device goes on by itself."""
        return False

    def shared(self, memory: np.ndarray[Any, Any], /) -> SharedMemory | None:
        """Return memory of the host, whole pages that stay, as the device's; None if it cannot."""
        return None

    def sync(self) -> None:
        """Wait until all work handed to the device is done."""

    def memory(self) -> MemoryUse:
        """Return how many bytes the tensors of this device hold.

        Raises:
            DeviceError: when the backend does not count.
        """
        raise DeviceError("memory", f"{self!r} does not count its bytes")

    def trim(self) -> None:
        """Give back what the device keeps for later tensors; keeps nothing unless overridden."""

    def without_recording(self) -> Backend:
        """Return the device that computes the same but does not record, or one level fewer."""
        return self

    # The hooks of decorators. A base backend records nothing.

    def lift(self, primitive: Primitive, /) -> Primitive:
        """Make a primitive of this decorator from one of ``inner``, as a constant."""
        raise DeviceError("lift", f"{self!r} wraps no backend")

    def lower(self, primitive: Primitive, /) -> Primitive:
        """Return the primitive of ``inner`` inside one of this decorator."""
        raise DeviceError("inner", f"{self!r} wraps no backend")

    def require_grad(self, primitive: Primitive, /) -> Primitive:
        """Return the primitive as a leaf whose gradient is wanted."""
        raise GradientError(
            "require_grad",
            "the device does not record",
            got=repr(self),
            expected=f"Autodiff({self!r})",
            hint=f"x.to_device(Autodiff({self!r})).require_grad()",
        )

    def leaf(self, primitive: Primitive, /) -> Primitive:
        """Make a leaf of this decorator from a primitive of ``inner``, which is a Float."""
        return self.require_grad(self.lift(primitive))

    def backward(self, tensor: Tensor, seed: Any, retain_graph: bool, ready: Any = None) -> Any:
        """Return the gradients of a scalar tensor."""
        raise GradientError(
            "backward",
            "the device does not record",
            got=repr(self),
            expected=f"Autodiff({self!r})",
            hint=f"make the model, or leaves with require_grad(), with device=Autodiff({self!r})",
        )

    def as_one_step(
        self, name: str, operands: Sequence[Primitive], values: Sequence[Primitive], pull: Pull
    ) -> tuple[Primitive, ...]:
        """Return values of ``inner`` as the results of one step that was recorded elsewhere.

        ``pull`` is given a cotangent for each value, or None, and whether it will be called again;
        it gives for each operand, of which some may be constants, what ``pull_back`` does.
        """
        raise DeviceError(name, f"{self!r} does not record")

    def pull_back(
        self,
        results: Sequence[Tensor],
        cotangents: Sequence[Tensor | None],
        operands: Sequence[Primitive],
    ) -> list[tuple[Tensor, ...]]:
        """Carry cotangents of results back to operands, which were made before all between.

        Returns:
            For each operand its gradient, if one came; for a constant what was proposed for it.
        """
        raise DeviceError("pull_back", f"{self!r} does not record")

    def is_tracked(self, primitive: Primitive, /) -> bool:
        """Whether a gradient would flow to the primitive."""
        return False

    def is_readable(self, primitive: Primitive, /) -> bool:
        """Whether ``read`` gives the values of the primitive: printing asks."""
        return self.has_data

    def standing(self, primitive: Primitive, /) -> Standing:
        """Return how this device tracks the primitive; devices inside are not asked.

        A constant; a leaf, whose gradient is wanted; a result; or one with a history freed.
        """
        return "constant"

    def is_followed(self, primitive: Primitive, /) -> bool:
        """Whether leaving this device would drop the history of a gradient."""
        return self.standing(primitive) == "result"

    def detach(self, primitive: Primitive, /) -> Primitive:
        """Return the primitive without its history."""
        return primitive

    def propose(self, result: Primitive, target: Tensor, value: Tensor, /) -> Primitive:
        """Return ``result``, with a new value for the constant ``target`` in its history.

        The value comes with the gradients of whatever ``result`` goes into; nothing else
        sees it, and where nothing is recorded it is dropped.
        """
        return result

    def kernel(self, program: Program, /) -> Kernel | None:
        """Return what runs a program at once, with the bits of its ops; None: they run one by one.

        Called for programs within ``limits``, those of one instruction first: they tell which ops
        and element types there are kernels for.
        """
        return None

    def row_product(self, product: RowProduct, formula: Kernel, /) -> Kernel | None:
        """Return what does products of few rows at once; None: they run one by one.

        Results may differ in the last bits from those of the formula, which runs the ops.
        """
        return None

    def repeated(self, make: Callable[[], Run], /) -> Run | None:
        """Return what does the same as the function that ``make`` makes, with less work for an op.

        It needs no values and leaves none behind but its results. None: calling ops is as good.
        """
        return None

    def sequence(self, calls: CallSequence, /) -> SequenceRun | None:
        """Return what does these calls as one, each array until its last use; None if not all."""
        return None

    def checks_operands(self, op: Op) -> bool:
        """Whether the entry of an op raises Rejected for what it does not take as it is."""
        return False

    def _lay_out(self, *, anew: bool = False) -> None:
        """Make the tables, unless they are there; entries are looked up at their first use."""
        # Not by ``vars``: it makes a dict of the attributes, and each read of one slower for good.
        self.passed = {}
        tables, key = {} if anew else getattr(self, "_tables", {}), tuple(_WATCHERS)
        if key not in tables:  # those without a watcher are kept, and those of the last ones
            found = Table(lambda name: self._found(REGISTRY[name]), REGISTRY)
            both = found, Table(self._resolve_checking, REGISTRY)
            tables = {known: each for known, each in tables.items() if not known} | {key: both}
        self._tables, (self.ops, self.checking) = tables, tables[key]
        if self.inner is None:
            for method in ("read", "read_async", "upload"):
                with suppress(AttributeError):  # the class's own
                    delattr(self, method)
            for watcher in _WATCHERS:
                for method, watched in watcher.methods(self).items():
                    setattr(self, method, watched)

    def _found(self, op: Op) -> Entry:
        """What runs an op; a base device's own entries are watched, formulas by their ops."""
        if self.inner is None:
            own = self.entry(op.name) if _WATCHERS else None
            if own is not None:
                for watcher in _WATCHERS:
                    own = watcher.entry(self, op, own)
                return own
        return self.resolve(op)

    def _resolve_checking(self, name: str) -> Entry:
        return self.ops[name] if self.checks_operands(REGISTRY[name]) else _reject

    def forget(self) -> None:
        """Look every entry up again, at its next use, here and on all devices around this one."""
        with _Interned._changing:
            for device in _Interned._objects.values():
                if is_inside(self, device):
                    device._lay_out(anew=True)

    def keep(self, key: Any, entry: Entry, values: tuple[Any, ...], *, several: bool) -> None:
        """Run an entry at once for calls with this key; ``passed`` says what one is."""
        if len(self.passed) >= _MOST_PASSED:  # a program with ever new shapes must not grow
            self.passed.clear()
        self.passed[key] = entry, values, several

    def resolve(self, op: Op) -> Entry:
        """Return the function that runs an op here: its entry or its expansion.

        An expansion of elements is one kernel where the backend has programs.

        Raises:
            BackendUnavailableError: when there is neither.
        """
        entry = self.entry(op.name)
        if entry is not None:
            return entry
        if op.expand is None and op.op_class.hosted:
            raise BackendUnavailableError(
                op.name,
                f"{self!r} leaves the op to LAPACK on the host",
                hint='x.to_device("cpu")',
            )
        if op.expand is None:
            raise BackendUnavailableError(
                op.name,
                f"{self!r} lacks the op",
                hint="x.to_device('numpy'), or give the backend an entry for it",
            )
        of_elements = op.op_class.diagonal and not op.signature.several
        if of_elements and self.limits.bindings and expanded_as:
            return expanded_as[0](op, self)
        return expansion(op, self)

    def unlisted(self, op: Op, entry: Entry) -> Entry:
        """Return what runs an op that is in no table, given its entry on the base device."""
        return entry

    def __repr__(self) -> str:
        arguments = ", ".join(map(repr, self.settings))
        return f"{type(self).__name__}({arguments})"

    def __reduce__(self) -> Any:
        return of_settings, (type(self), self.settings)


def _reject(*args: Any) -> Any:
    """Stands in ``checking`` for an entry that checks nothing."""
    raise Rejected


def made_devices() -> list[Backend]:
    """Every device that this process has made, decorators among them."""
    return list(_Interned._objects.values())


def is_inside(inner: Backend, outer: Backend) -> bool:
    """Whether ``outer`` is a decorator over ``inner``, directly or through others, or the same.

    Example:
        >>> is_inside(Numpy(), Numpy())
        True
    """
    layer: Backend | None = outer
    while layer is not None and layer is not inner:
        layer = layer.inner
    return layer is not None


def lacks(backend: Backend, op: Op) -> bool:
    """Whether a device refuses calls of an op, which is for the host, by name."""
    return op.op_class.hosted and op.expand is None and backend.base.entry(op.name) is None


def watch(watcher: Watcher, *, on: bool) -> None:
    """Let all base devices be watched, or no longer; all entries are looked up again."""
    with _Interned._changing:
        if (watcher in _WATCHERS) is on:
            return
        (_WATCHERS.append if on else _WATCHERS.remove)(watcher)
        for device in _Interned._objects.values():
            device._lay_out()


def watched() -> bool:
    """Whether something stands between the base devices and their callers."""
    return bool(_WATCHERS)


def add_op(op: Op) -> None:
    """Give all backends an op that was declared after they were made."""
    with _Interned._changing:
        for backend in _Interned._objects.values():
            for table in itertools.chain(*backend._tables.values()):
                table._reset(op.name)
            backend.passed.clear()  # of an op that this one takes the place of
