"""What a backend is: a table from op to plain function, and the device at the same time."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from ._dtype import DType
from ._errors import BackendUnavailableError, DeviceError, GradientError
from ._op import REGISTRY, Op, Shape

if TYPE_CHECKING:
    from ._tensor import Tensor

Primitive = Any
Entry = Callable[..., Any]


_MOST_KNOWN: Final = 4096


class MemoryUse(NamedTuple):
    """Bytes that the tensors of a backend hold now, and held at most."""

    current: int
    peak: int


class _Interned(ABCMeta):
    """Equal settings give the same object, so that ``is`` compares devices."""

    _objects: ClassVar[dict[object, Any]] = {}

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        kept = _Interned._objects.setdefault((cls, made.settings), made)
        if kept is made:
            made.direct = made.checks
            made.checked = {}
            made.known = {}
            made.forget()
        return kept


class Backend(metaclass=_Interned):
    """A table from op to plain function; a backend object is also the device of its tensors.

    A subclass sets the attributes below, gives the abstract functions, and looks ops up in
    ``entry``. Entries are called as ``entry(*operands, *attributes)`` with primitives and
    normalized attributes; where ``entry`` gives None, the op's expansion runs instead. Looked-up
    entries become plain attributes: ``backend.add(p, q)``.

    Attributes:
        name: the class of device, such as ``"cpu"``.
        settings: what tells two devices of one class apart; hashable.
        dtypes: the element types that the backend has.
        default_float: element type of new Float tensors.
        default_int: element type of new Int tensors.
        checks: elementwise and contraction entries check their own operands and raise
            ``Rejected`` for what they do not take as it is.
        checked: the entries in use that do so, by op.
        known: entry and attributes of calls that passed every check, and whether they give several
            results; by what decides that: the op, the attributes as given, shapes, element types.
        direct: what ``checks`` says. An attribute of the object, which Python reads fastest.
        inner: the backend that a decorator wraps, else None.
        records: gradients can be asked of tensors on this device; modules made on it train.
        slack: factor on the tolerances that ops declare, for tests.
        strict: denormals, the sign of zero and the largest numbers come out right too.
    """

    name: str
    settings: tuple[Any, ...] = ()
    dtypes: frozenset[DType]
    default_float: DType
    default_int: DType
    checks: bool = False
    direct: bool
    checked: dict[str, Entry]
    known: dict[tuple[Any, ...], tuple[Entry, tuple[Any, ...], bool]]
    inner: Backend | None = None
    records: bool = False
    slack: float = 1.0
    strict: bool = True

    @abstractmethod
    def entry(self, name: str) -> Entry | None:
        """Return the function of the op of this name, or None."""

    @abstractmethod
    def shape_of(self, primitive: Primitive, /) -> Shape:
        """Return the shape of a primitive."""

    @abstractmethod
    def dtype_of(self, primitive: Primitive, /) -> DType:
        """Return the element type of a primitive."""

    @abstractmethod
    def upload(self, array: np.ndarray[Any, Any], dtype: DType, /) -> Primitive:
        """Copy an array, whose type is ``dtype.numpy``, to the device."""

    @abstractmethod
    def read(self, primitive: Primitive, /) -> np.ndarray[Any, Any]:
        """Return the data as a NumPy array; waits for the device."""

    async def read_async(self, primitive: Primitive, /) -> np.ndarray[Any, Any]:
        """Return the data as a NumPy array without blocking the event loop, where supported."""
        return self.read(primitive)

    def sync(self) -> None:
        """Wait until all work handed to the device is done."""

    def memory(self) -> MemoryUse:
        """Return how many bytes the tensors of this device hold.

        Raises:
            DeviceError: when the backend does not count.
        """
        raise DeviceError("memory", f"{self!r} does not count its bytes")

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

    def backward(self, tensor: Tensor, seed: Tensor | None, retain_graph: bool) -> Any:
        """Return the gradients of a scalar tensor."""
        raise GradientError(
            "backward",
            "the device does not record",
            got=repr(self),
            expected=f"Autodiff({self!r})",
            hint=f"make the inputs on Autodiff({self!r}) and call require_grad() on them",
        )

    def is_tracked(self, primitive: Primitive, /) -> bool:
        """Whether a gradient would flow to the primitive."""
        return False

    def detach(self, primitive: Primitive, /) -> Primitive:
        """Return the primitive without its history."""
        return primitive

    if TYPE_CHECKING:  # every op is an attribute: see forget()

        def __getattr__(self, name: str) -> Entry: ...

    def forget(self) -> None:
        """Look every entry up again, at its next use."""
        self.checked.clear()
        self.known.clear()
        for op in REGISTRY.values():
            setattr(self, op.name, _Unresolved(self, op.name))

    def resolved(self, name: str) -> Entry:
        """Return the entry of an op, for a decorator to keep; calls use the attribute.

        Raises:
            BackendUnavailableError: when the backend has neither an entry nor an expansion.
        """
        known = vars(self)[name]
        if not isinstance(known, _Unresolved):
            return known
        op = REGISTRY[name]
        entry = self.resolve(op)
        setattr(self, name, entry)
        if self.checks_operands(op):
            self.checked[name] = entry
        return entry

    def remember(self, key: tuple[Any, ...], op: Op, values: tuple[Any, ...]) -> None:
        """Let calls with this key run the entry of the op at once; ``known`` says what a key is."""
        if len(self.known) >= _MOST_KNOWN:  # a program with ever new shapes must not grow
            self.known.clear()
        self.known[key] = self.resolved(op.name), values, op.signature.several

    def checks_operands(self, op: Op) -> bool:
        """Whether the entry of an op raises Rejected for what it does not take as it is."""
        return self.checks and op.family.checked and self.entry(op.name) is not None

    def resolve(self, op: Op) -> Entry:
        """Return the function that runs an op here: its entry or its expansion.

        Raises:
            BackendUnavailableError: when there is neither.
        """
        entry = self.entry(op.name)
        if entry is not None:
            return entry
        if op.expand is None:
            raise BackendUnavailableError(
                op.name,
                f"{self!r} lacks the op",
                hint="x.to_device('numpy'), or give the backend an entry for it",
            )
        return expansion(op, self)

    def __repr__(self) -> str:
        arguments = ", ".join(map(repr, self.settings))
        return f"{type(self).__name__}({arguments})"

    def __reduce__(self) -> Any:
        return type(self), self.settings


class _Unresolved:
    """Stands for an entry until its first call, so that entries are plain attributes.

    ``__getattr__`` would do, but slows down every attribute of a class that has it.
    """

    __slots__ = ("backend", "name")

    def __init__(self, backend: Backend, name: str) -> None:
        self.backend = backend
        self.name = name

    def __call__(self, *args: Any) -> Any:
        return self.backend.resolved(self.name)(*args)


def add_op(op: Op) -> None:
    """Give all backends an op that was declared after they were made."""
    for backend in _Interned._objects.values():
        setattr(backend, op.name, _Unresolved(backend, op.name))


def expansion(op: Op, backend: Backend) -> Entry:
    """Make an entry out of the formula of an op, on the ops of ``backend``."""
    from ._tensor import Tensor  # noqa: PLC0415 - Tensor imports this module

    formula = op.expand
    assert formula is not None
    operands = op.signature.operands
    count = len(operands)
    several = op.signature.several

    def tensor(item: Any) -> Any:
        weak = item is None or isinstance(item, bool | int | float)
        return item if weak else Tensor(item, backend)

    def run(*args: Any) -> Any:
        tensors = [
            [tensor(each) for each in arg] if operand.variadic else tensor(arg)
            for operand, arg in zip(operands, args, strict=False)
        ]
        out = formula(*tensors, *args[count:])
        return tuple(t.primitive for t in out) if several else out.primitive

    return run
