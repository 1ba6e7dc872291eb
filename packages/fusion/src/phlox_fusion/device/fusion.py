"""The Fusion device: elementwise ops, and folds of their results, wait until they are needed."""

from __future__ import annotations

from math import prod
from threading import local
from types import NoneType
from typing import Any, Final, final

from phlox_tensor import (
    ArgumentError,
    Backend,
    Decorator,
    DType,
    Entry,
    MemoryUse,
    Op,
    Spec,
    Standing,
)
from phlox_tensor.capture import (
    KIND_SETS,
    MODES,
    RECORDINGS,
    infer_prepared,
    recording,
    runs_eagerly,
)

from ..mode import mode_of
from .stream import Deferred, Plans, Stream, value_of

_PENDING: Final = 64
_LEAST: Final = 1 << 18  # below, two ops took less time than their program (Sapphire Rapids)
_FAR: Final = 65504.0  # every element type of floats holds numbers up to here
_ATTRIBUTES: Final = frozenset({DType, NoneType, bool, float, int})
_MOST_SHAPES: Final = 4096


@final
class Fusion(Decorator):
    """A device that runs elementwise ops of another one together, as programs, when it has to.

    An op waits until its result is read, or an op of another class takes it; then all that waits
    runs, as few programs as there can be, with the bits of the ops. A reduction of the last axes of
    what waits does too, where the device inside has programs that end in one. Results that nobody
    holds or needs are not computed. No more memory is held than by the ops one by one.
    Ops of integers run at once, since they may refuse values, and so do small ops, which gain
    nothing. Over a device that is no base device nothing waits.
    With PHLOX_FUSION=off in the environment nothing waits anywhere; with check each program is
    compared with its ops, and an error names the op at which they differ.

    Args:
        backend: the device inside, or its name.
        pending: ops of a thread that wait at most; with 0 none does.
        least: bytes of a result from which its op waits.

    Example:
        >>> import phlox_tensor as pt
        >>> x = pt.ones(3, device=Fusion("numpy", least=0))
        >>> (x * 2 + 1).relu().tolist()
        [3.0, 3.0, 3.0]
    """

    name = "fusion"

    def __init__(
        self, backend: Backend | str, pending: int = _PENDING, least: int = _LEAST
    ) -> None:
        if backend is None:
            raise ArgumentError(
                "fusion",
                "no device inside",
                got=backend,
                expected="a backend or its name",
                hint='px.Fusion("cpu")',
            )
        for name, value, unit in (("pending", pending, "ops"), ("least", least, "bytes")):
            if type(value) is not int or value < 0:
                raise ArgumentError("fusion", name, got=value, expected=f"a number of {unit}")
        super().__init__(backend, pending, least)
        self.pending, self.least = pending, least
        mode = mode_of("fusion")
        base = self._inner.inner is None and self._inner.has_data
        self._lazy = base and pending > 0 and mode != "off"
        self._plans = Plans(check=mode == "check")
        self._threads = local()
        self._shapes: dict[Any, Spec | None] = {}

    def __repr__(self) -> str:
        given = "" if self.pending == _PENDING else f", pending={self.pending}"
        given += "" if self.least == _LEAST else f", least={self.least}"
        return f"Fusion({self._inner!r}{given})"

    # The table

    def decorate(self, op: Op, inside: Entry) -> Entry:
        """Return an entry that lets ops of elements wait, and runs others."""
        if not self._lazy:
            return inside
        count, several = len(op.signature.operands), op.signature.several

        def run(*args: Any) -> Any:
            self._stream().settle()  # so that all memory is taken in the order of the ops
            return self.lift_all(op, inside(*self.lower_all(op, args)))

        folds = op.traits.folds and self._inner.limits.folds
        if not (op.op_class.diagonal or folds) or several or op.derive is not None:
            return run
        shapes = self._shapes

        def wait(*args: Any) -> Any:
            if folds and (type(args[0]) is not Deferred or args[0].stream is None):
                return run(*args)
            key = op, *map(_deciding, args)
            try:
                spec = shapes[key]
            except KeyError:
                if len(shapes) >= _MOST_SHAPES:
                    shapes.clear()
                spec = shapes[key] = self._spec(op, args, count)
            if (
                spec is None
                or not all(map(_near, args))
                or (RECORDINGS.count and recording() is not None)  # which notes ops as they run
                or (MODES.entered and runs_eagerly())
            ):
                return run(*args)
            stream = self._stream()
            return stream.put(op, inside, count, [self._own(x, stream) for x in args], spec)

        return wait

    def _spec(self, op: Op, args: tuple[Any, ...], count: int) -> Spec | None:
        """What an op gives; None where it does not wait, or its operands do not fit as they are."""
        dtypes: dict[str, DType] = {}
        specs: list[Any] = []
        for declared, item in zip(op.signature.operands, args[:count], strict=True):
            if type(item) is not Deferred:
                if type(item) not in (int, float):
                    return None
                specs.append(item)
                continue
            dtype = item.spec.dtype
            fits = dtype.kind in KIND_SETS[declared.kind] and dtype.kind != "Int"
            if not fits or dtypes.setdefault(declared.kind, dtype) is not dtype:
                return None
            specs.append(item.spec)
        floats = all(dtype.kind == "Float" for dtype in dtypes.values())
        if op.traits.folds:
            return self._fold_spec(op, specs[0], args[count:]) if dtypes else None
        if op.traits.truths or not dtypes or not all(type(x) in _ATTRIBUTES for x in args[count:]):
            return None
        if not floats and any(type(item) is not Deferred for item in args[:count]):
            return None
        (out,) = infer_prepared(op, specs, args[count:], self.default_int)
        return out if out.nbytes >= self.least else None

    def _fold_spec(self, op: Op, spec: Spec, attributes: tuple[Any, ...]) -> Spec | None:
        """What a reduction gives that may end a program; None for any other."""
        axes, shape = attributes[0], spec.shape
        if type(axes) is not tuple or axes != tuple(range(len(shape) - len(axes), len(shape))):
            return None
        if prod(shape[len(shape) - len(axes) :]) < 2:
            return None
        (out,) = infer_prepared(op, [spec], attributes, self.default_int)
        enough = spec.nbytes >= max(self.least, self._inner.limits.folds_from, 1)
        return out if enough and out.dtype is spec.dtype else None

    def checks_operands(self, op: Op) -> bool:
        """Whether the inner entry does; what waits has operands that fit as they are."""
        return op.derive is None and self._inner.checks_operands(op)

    def _own(self, item: Any, stream: Stream) -> Any:
        """An argument for a stream: what waits in another one is computed, or raises its error."""
        if type(item) is Deferred and item.stream is not stream:
            self.lower(item)
        return item

    def _stream(self) -> Stream:
        """The stream of this thread."""
        try:
            stream: Stream = self._threads.stream
        except AttributeError:
            stream = self._threads.stream = Stream(self._inner, self._plans, self.pending)
        return stream

    # Primitives

    def lift(self, inside: Any, /) -> Any:
        """Make a primitive from one of the device inside."""
        if not self._lazy:
            return inside
        return Deferred(Spec(*self._inner.spec_of(inside)), inside, None)

    def lower(self, primitive: Any, /) -> Any:
        """Return the primitive of the device inside, computed now if its op waits."""
        if type(primitive) is not Deferred:
            return primitive
        stream = primitive.stream
        if stream is not None:
            stream.settle()
        return value_of(primitive)

    def detach(self, primitive: Any, /) -> Any:
        """Return the primitive without its history; what waits goes on waiting."""
        return primitive if self._lazy else self._inner.detach(primitive)

    def shape_of(self, primitive: Any, /) -> tuple[int, ...]:
        """Return the shape, without computing the primitive."""
        return self.spec_of(primitive)[0]

    def dtype_of(self, primitive: Any, /) -> DType:
        """Return the element type, without computing the primitive."""
        return self.spec_of(primitive)[1]

    def spec_of(self, primitive: Any, /) -> tuple[tuple[int, ...], DType]:
        """Return shape and element type together, without computing the primitive."""
        if type(primitive) is Deferred:
            return primitive.spec
        return self._inner.spec_of(primitive)

    def upload(self, array: Any, dtype: DType, /) -> Any:
        """Copy an array to the device inside."""
        if self._lazy:
            self._stream().settle()
        return self.lift(self._inner.upload(array, dtype))

    def is_readable(self, primitive: Any, /) -> bool:
        """Whether the values can be read."""
        return self.has_data if self._lazy else self._inner.is_readable(primitive)

    def is_tracked(self, primitive: Any, /) -> bool:
        """Whether a gradient would flow to the primitive."""
        return not self._lazy and self._inner.is_tracked(primitive)

    def standing(self, primitive: Any, /) -> Standing:
        """Return that a primitive is a constant to this device."""
        return "constant"

    # Waiting

    @property
    def plans(self) -> int:
        """The number of plans that were made: one for each sequence of ops that waited."""
        return self._plans.made

    @property
    def fallbacks(self) -> int:
        """How often a program failed and its ops, run one by one in its place, did not.

        More than 0 is a fault of phlox or of a backend. The first one is a warning; with
        PHLOX_FUSION=check each is a ``DisagreementError``.
        """
        return self._plans.fallbacks.count

    def flush(self) -> None:
        """Run what waits in this thread."""
        if self._lazy:
            self._stream().flush()

    def sync(self) -> None:
        """Run what waits in this thread, and wait until all work of the device is done."""
        self.flush()
        self._inner.sync()

    def memory(self) -> MemoryUse:
        """Run what waits in this thread, and return how many bytes the device inside holds."""
        self.flush()
        return self._inner.memory()


def _near(item: Any) -> bool:
    """Whether every element type of floats holds an argument, if it is a number."""
    return type(item) not in (int, float) or -_FAR <= item <= _FAR


def _deciding(item: Any) -> Any:
    """What decides the shape and element type of a result, of an argument."""
    if type(item) is Deferred:
        return item.spec
    known = item is None or isinstance(item, DType | bool | tuple)
    return item if known else type(item)
