"""The `Cpu` backend: a table from op name to native function."""

from __future__ import annotations

import os
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import phlox_tensor
from phlox_kernels import _counts, _lapack, _least_squares, _machine, _native, _sequence, _settings
from phlox_tensor import Backend, DType, DTypeError, DTypeLike, MemoryUse, Op, as_dtype
from phlox_tensor.capture import CallSequence, Kernel, Program, ProgramLimits, SequenceRun

if TYPE_CHECKING:
    from collections.abc import Callable

_settings.require_known(os.environ)

_NAMES: Final = (
    "bfloat16",
    "bool",
    "float16",
    "float32",
    "float64",
    "int16",
    "int32",
    "int64",
    "int8",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
)
# Entries that are told the default float type, in which integers are taken; where it is another.
_BY_FLOAT: Final[dict[str, Callable[..., Any]]] = {"divide": _native._divide_as}
_DTYPES: Final[dict[str, DType]] = {name: as_dtype(name) for name in _NAMES}
for _name, _dtype in _DTYPES.items():
    _native._set_dtype(_name, _dtype)

# The native module's public functions are the table.
_TABLE: Final[dict[str, Callable[..., Any]]] = {
    name: function
    for name, function in vars(_native).items()
    if callable(function) and not name.startswith("_") and not isinstance(function, type)
}
_OPS: Final[dict[Any, str]] = {function: name for name, function in _TABLE.items()}
_DEFAULTS: Final = ("float32", "int64")
# Entries around a reference: kernels do what they can before it.
_AROUND: Final[dict[str, Callable[..., Any]]] = {"lstsq": _least_squares.by_triangle}
# Kernels of which the reference does what they need too much memory for, or refuses it.
_WITHIN: Final[dict[str, Callable[..., Any]]] = {"bincount": _counts.within}


class Cpu(Backend):
    """The CPU device: kernels in Rust, on all cores.

    Args:
        float: element type of new Float tensors and of quotients of integers.
        int: element type of new Int tensors and of indices that ops return.

    Raises:
        DTypeError: when a default has the wrong kind.

    Example:
        >>> from phlox_kernels import Cpu
        >>> Cpu() is Cpu("float32", "int64")
        True
    """

    name = "cpu"
    dtypes = frozenset(_DTYPES.values())
    # Up to the size of a cache two ops took less than their program (Zen 3, Sapphire Rapids).
    # What ends in a fold took less from 1 MiB on. What reads the fold again took more in AVX2 (Zen
    # 3), in AVX-512 less where it lies in memory. In the caches an op draws numbers faster, and
    # small products take less in a kernel that finishes nothing. Nor is gelu faster there.
    limits = ProgramLimits(
        bindings=24,
        instrs=64,
        mixed=False,
        pays_from=1 << 20,
        folds=True,
        folds_from=1 << 20,
        stages="avx512" in _native._simd(),
        draws_from=1 << 21,
        stages_from=1 << 23,
        apart=frozenset({"lerp", "nan_to_num"}),
        finishes=MappingProxyType({"relu": "linear"}),
        finishes_from=1 << 20,
    )
    if TYPE_CHECKING:

        def shape_of(self, primitive: Any, /) -> tuple[int, ...]:
            """Return the shape of a primitive."""
            ...

        def dtype_of(self, primitive: Any, /) -> DType:
            """Return the element type of a primitive."""
            ...

        def spec_of(self, primitive: Any, /) -> tuple[tuple[int, ...], DType]:
            """Return shape and element type of a primitive at once."""
            ...

        def key_of(
            self, op: Op, attributes: tuple[Any, ...], first: Any, /, *others: Any
        ) -> tuple[Any, ...] | None:
            """What decides whether a call passes its checks; None if it must be checked always."""
            ...
    else:  # without a Python frame in between
        shape_of = staticmethod(_native._shape_of)
        dtype_of = staticmethod(_native._dtype_of)
        spec_of = staticmethod(_native._spec_of)
        key_of = staticmethod(_native._key_of)

    def __init__(self, float: DTypeLike = "float32", int: DTypeLike = "int64") -> None:
        """Choose the default element types."""
        self.default_float = _default("float", float, "Float")
        self.default_int = _default("int", int, "Int")
        self.settings = (self.default_float.name, self.default_int.name)

    def __repr__(self) -> str:
        parts = zip(("float", "int"), self.settings, _DEFAULTS, strict=True)
        given = [f"{key}={value!r}" for key, value, usual in parts if value != usual]
        return f"Cpu({', '.join(given)})"

    @staticmethod
    def describe() -> list[dict[str, Any]]:
        """What `phlox doctor` prints: the processor, threads, bytes held now and at most."""
        current, peak, cached = _native._memory()
        return [
            {
                "device": "Cpu()",
                "name": "Rust kernels",
                "model": _machine.cpu_model(),
                "processors": _machine.cores(),
                "caches": _machine.caches(),
                "cache in use": _machine.used_cache(),
                "instruction sets": _machine.instruction_sets(),
                "instruction sets in use": _machine.used_instruction_sets(),
                "threads": _machine.threads(),
                **_machine.ways(),
                "bytes in use": current,
                "bytes at most": peak,
                "bytes kept for reuse": cached,
            }
        ]

    @staticmethod
    def measured() -> dict[str, str]:
        """What `phlox doctor --peaks` adds: multiply-adds of each type, on one thread and all."""
        one, all_ = _machine.peaks(1), _machine.peaks(_machine.threads())
        return {
            f"{name} peak": f"{one[name] / 1e9:.0f} GFLOP/s on one thread, "
            f"{all_[name] / 1e9:.0f} on {_machine.threads()}"
            for name in one
        }

    def entry(self, name: str) -> Callable[..., Any] | None:
        """Return the native function of the op of this name, or None."""
        function = _TABLE.get(name)
        if function is None and (op := phlox_tensor.REGISTRY[name]).op_class.hosted:
            reference, around = self._by_lapack(op), _AROUND.get(name)
            return reference if around is None else around(reference, self.read)
        if function is not None and name in _WITHIN:
            function = _WITHIN[name](function, self._by_lapack(phlox_tensor.REGISTRY[name]))
        if function is not None and self.settings != _DEFAULTS:
            return self._adapted(name, function)
        return function

    def _by_lapack(self, op: Op) -> Callable[..., Any]:
        """The reference of an op, a library of NumPy, on the arrays as they lie in memory."""
        reference = phlox_tensor.Numpy(*self.settings).entry(op.name)
        assert reference is not None
        assert op.numpy is not None
        single = partial(op.numpy, library=_lapack.LIBRARY) if op.name in _lapack.SINGLE else None

        def run(*args: Any) -> Any:
            given = [self.read(a) if type(a) is _native.RawTensor else a for a in args]
            if single is not None and given[0].dtype == np.float32:
                out = single(*given)
            else:
                out = reference(*given)
            if isinstance(out, tuple):
                return tuple([self.upload(each, self._type(each)) for each in out])
            return self.upload(out, self._type(out))

        return run

    @staticmethod
    def _type(array: np.ndarray[Any, Any]) -> DType:
        return _DTYPES[array.dtype.name]

    def checks_operands(self, op: Op) -> bool:
        """Whether the native function of the op looks at its operands itself."""
        return op.op_class.checking and op.name in _TABLE

    def kernel(self, program: Program, /) -> Kernel | None:
        """Return what runs a program at once; None without AVX2, and for ops it has no code for."""
        return _native._program(*program)

    def sequence(self, calls: CallSequence, /) -> SequenceRun | None:
        """Return what does these calls as one, without Python in between."""
        return _sequence.plan_of(calls, _OPS)

    def _adapted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Bring the results that have a default type to the default types of this device."""
        if name in _BY_FLOAT:
            return partial(_BY_FLOAT[name], self.default_float.name)
        if self.default_int is _DTYPES["int64"]:
            return function
        places = _index_results(name)
        return _with_indices(function, places, self.default_int.name) if places else function

    def strides_of(self, primitive: _native.RawTensor, /) -> tuple[int, ...]:
        """Return how many elements lie between neighbors along each axis."""
        return primitive.strides

    def upload(self, array: np.ndarray[Any, Any], dtype: DType, /) -> Any:
        """Copy an array, whose type is ``dtype.numpy``, to the device."""
        dense = np.ascontiguousarray(array)
        if dtype.name == "bfloat16":  # ml_dtypes' scalar has no buffer format
            dense = dense.view(np.uint16)
        return _native.RawTensor.from_buffer(dense, array.shape, dtype.name)

    def read(self, primitive: Any, /) -> np.ndarray[Any, Any]:
        """Return the data as a read-only NumPy array that shares memory with the primitive."""
        array = np.asarray(primitive)
        return array.view(_DTYPES["bfloat16"].numpy) if primitive.dtype == "bfloat16" else array

    def memory(self) -> MemoryUse:
        """Return how many bytes live tensors hold and held at most (rounded up to size classes)."""
        current, peak, _cached = _native._memory()
        return MemoryUse(current, peak)

    def trim(self) -> None:
        """Give memory that was freed and waits for reuse back to the system; live tensors stay."""
        _native._trim()


def _default(setting: str, value: DTypeLike, kind: str) -> DType:
    dtype = as_dtype(value, "Cpu")
    if dtype.kind != kind:
        names = ", ".join(d.name for d in _DTYPES.values() if d.kind == kind)
        raise DTypeError("Cpu", f"wrong kind of default {setting}", got=dtype.name, expected=names)
    return dtype


def _index_results(name: str) -> tuple[int, ...]:
    """Places of the results that are indices: Int results whatever the operands are."""
    op = phlox_tensor.REGISTRY.get(name)
    if op is None or "dtype" in op.attribute_names:
        return ()
    kinds = {operand.kind for operand in op.signature.operands}
    results = op.signature.results
    return tuple(i for i, r in enumerate(results) if r.kind == "Int" and r.kind not in kinds)


def _with_indices(
    function: Callable[..., Any], places: tuple[int, ...], dtype: str
) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        out = function(*args)
        if not isinstance(out, tuple):
            return _native.cast(out, dtype)
        return tuple(_native.cast(p, dtype) if i in places else p for i, p in enumerate(out))

    return run
