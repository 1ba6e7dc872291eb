"""The Tensor: a primitive and the table that it lives on."""

from __future__ import annotations

from contextlib import suppress
from operator import index as whole
from typing import TYPE_CHECKING, Any, Final, Generic, Never, Self

import numpy as np

from .._errors.classes import ArgumentError, KindError, UnknownArgumentError, WrongTypeError
from .._errors.unknown_argument import unknown_argument
from .dlpack import capsule_of
from .dtype import DType
from .kinds import Float, K

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .._device.backend import Backend
    from .._functions.methods import TensorMethods
    from .gradients import Gradients, Ready
else:
    # The generated methods are put on the class when the package has loaded (see _install).
    class TensorMethods(Generic[K]):
        """Stands in for the generated methods until they exist."""

        __slots__ = ()
        __hash__ = object.__hash__


# What PyTorch calls arguments of ``backward``; what to do instead of those that only it has.
_WORDS: Final = {"grad_tensors": ("seed",), "gradient": ("seed",)}
_ADVICE: Final = {
    "create_graph": "px.grad of a function that calls px.grad",
    "dtype": 'x.astype("float32")',
    "force": "x.numpy()",
    "inputs": "w.grad(loss.backward()) for each of them",
}


def refused(
    op: str, wrong: dict[str, Any], more: tuple[Any, ...] = (), known: tuple[str, ...] = ()
) -> Exception:
    """Return the error for arguments that a method does not have: keywords, or by place."""
    error = unknown_argument(op, wrong, known, _WORDS, _ADVICE)
    what, got = "more arguments by place than there are", f"{len(more)} more"
    expected = ", ".join(known) or "none"
    return error or UnknownArgumentError(op, what, got=got, expected=expected)


def _sealed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array on memory that NumPy never makes writeable again, as a mere flag would allow."""
    if not array.flags.writeable and not isinstance(array.base, np.ndarray):
        return array
    bits = array.view(np.uint16) if array.dtype.kind == "V" else array  # bfloat16 has no format
    return np.asarray(bits.data.toreadonly()).view(array.dtype)


def _sizes(shape: Any) -> tuple[int, ...]:
    """A shape as entries get it; one size may be a number of NumPy too."""
    dims: tuple[int, ...] = (-1,)
    try:
        dims = (shape,) if isinstance(shape, int) else tuple(map(whole, shape))
    except TypeError:
        with suppress(TypeError):
            dims = (whole(shape),)
    if dims and min(dims) < 0:
        raise ArgumentError("zeros", "no shape", got=shape, expected="ints of 0 or more")
    return dims


def refuse_stream(op: str, stream: Any) -> Never:
    """Say that there are no streams to choose from."""
    what = "devices order their work themselves"
    raise ArgumentError(op, what, got=f"stream {stream!r}", expected="None", hint="stream=None")


class _Constructor(type):
    """Holds the constructor, so that Tensor has no ``__init__`` and ``new`` runs only C.

    Each result of an op is made by ``new``, in two thirds of the time of ``object.__new__``.
    """

    def __call__(cls, primitive: Any, device: Any = None, /) -> Any:
        if not hasattr(device, "spec_of"):
            raise WrongTypeError(
                "tensor",
                "the device of a primitive is no Backend",
                got=repr(device),
                expected="a Backend, from its author; values become tensors by functions",
                hint="px.asarray(values, device=device)",
            )
        made: Any = object.__new__(cls)  # type: ignore[arg-type]
        made.primitive = primitive
        made.device = device
        return made


class Tensor(TensorMethods[K], metaclass=_Constructor):
    """An immutable n-dimensional array on a device.

    Tensors come from ``asarray``, ``zeros``, ``random.normal`` and other functions; the
    constructor is for authors of backends. ``Tensor[Float]`` (the default), ``Tensor[Int]`` and
    ``Tensor[Bool]`` tell type checkers the kind.

    Attributes:
        primitive: what the backend computes with.
        device: the backend, which is the device.
    """

    __slots__ = ("__weakref__", "device", "primitive")

    device: Backend
    primitive: Any
    # NumPy's operators and ufuncs leave tensors alone: their results would be off the device.
    __array_ufunc__ = None

    if TYPE_CHECKING:

        def __init__(self, primitive: Any, device: Backend, /) -> None:
            """Wrap a primitive of ``device``."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.device.shape_of(self.primitive)

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.device.dtype_of(self.primitive)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for n in self.shape:
            count *= n
        return count

    @property
    def nbytes(self) -> int:
        """Bytes that the elements take."""
        return self.size * self.dtype.itemsize

    # Reading: the only point that waits for the device.

    def numpy(self, *more: Never, **wrong: Never) -> np.ndarray[Any, Any]:
        """Return the data as a read-only NumPy array, without a copy where the device allows."""
        if wrong or more:
            raise refused("numpy", wrong, more)
        return _sealed(self.device.read(self.primitive))

    async def numpy_async(self) -> np.ndarray[Any, Any]:
        """Return the data as ``numpy()`` does, without blocking the event loop."""
        return _sealed(await self.device.read_async(self.primitive))

    def tolist(self) -> Any:
        """Return nested lists of Python numbers, or one number for a 0-d tensor."""
        return self.numpy().tolist()

    def item(self, *index: Never, **wrong: Never) -> Any:
        """Return the one element as a Python number.

        Raises:
            ArgumentError: when there is not exactly one element.
        """
        if wrong:
            raise refused("item", wrong)
        if index:
            got, hint = f"{len(index)} arguments", f"x[{', '.join(map(repr, index))}].item()"
            raise ArgumentError("item", "takes no index", got=got, expected="none", hint=hint)
        return self._one("item", "not one element", "x.tolist() or x.sum().item()")

    def _one(self, op: str, what: str, hint: str) -> Any:
        """The one element, for a call that needs just one."""
        if self.size != 1:
            got = f"shape {self.shape}"
            raise ArgumentError(op, what, got=got, expected="one element", hint=hint)
        return self.numpy().reshape(()).item()

    def __bool__(self) -> bool:
        hint = "x.any() or x.all()" if self.size else "x.size == 0"
        what = f"the truth value of a tensor of {'several' if self.size else 'no'} elements"
        return bool(self._one("bool", what, hint))

    def __complex__(self) -> complex:
        return complex(self._one("complex", "not one number", "x.tolist()"))

    def __float__(self) -> float:
        return float(self._one("float", "not one number", 'x.astype("float32")'))

    def __int__(self) -> int:
        return int(self._one("int", "not one number", 'x.astype("int64")'))

    def __index__(self) -> int:
        if self.dtype.kind != "Int":
            raise KindError("index", "not an integer", got=self.dtype, expected="Int")
        return int(self.item())

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"[array] a copy is needed: got {array.dtype}, expected {dtype}")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if stream is not None:
            refuse_stream("__dlpack__", stream)
        # Not every library heeds that data is read-only, so it is shared only where asked for.
        copy = copy is not False
        array = self.numpy()
        if self.dtype.numpy.kind == "V":  # bfloat16
            return capsule_of(array, max_version=max_version, dl_device=dl_device, copy=copy)
        return array.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)

    def __buffer__(self, flags: int, /) -> memoryview:
        # Python 3.12 and newer ask for it; to older ones memoryview(x.numpy()) says the same.
        if flags & 1:
            raise BufferError("[buffer] tensors never change\nhint: np.array(x) is a copy")
        return self.numpy().data

    def __bytes__(self) -> bytes:
        return self.numpy().tobytes()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # kDLCPU: reading brings the data to the host

    # Shape and container behaviour

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor[K]]:
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return (self[i] for i in range(self.shape[0]))

    def __setitem__(self, index: Never, value: Never) -> Never:
        raise TypeError("[setitem] tensors never change\nhint: x = x.at[index].set(value)")

    def __delitem__(self, index: Never) -> Never:
        raise TypeError("[delitem] tensors never change\nhint: px.concat([x[:i], x[i + 1 :]])")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __format__(self, spec: str) -> str:
        if spec and not self.shape:
            return format(self.item(), spec)
        try:
            return format(repr(self), spec)
        except ValueError as error:
            raise ArgumentError(
                "format",
                "the elements of a tensor are formatted one by one",
                got=f"{spec!r} for shape {self.shape}",
                expected="one element, or a width for the whole text",
                hint="with px.printoptions(precision=3): print(x)",
            ) from error

    # Devices and types

    def to_full_precision(self) -> Tensor[Any]:
        """Return narrow floats as float32, anything else as it is."""
        narrow = self.dtype.kind == "Float" and self.dtype.itemsize < 4
        return self.astype("float32") if narrow else self

    def zeros(self, shape: int | Sequence[int] | None = None) -> Tensor[Any]:
        """Return zeros on this tensor's device and of its type, of its own shape by default."""
        dims = self.shape if shape is None else _sizes(shape)
        return Tensor(self.device.ops.full(dims, 0, self.dtype), self.device)

    # Autodiff: the work is the device's

    def require_grad(self: Tensor[Float]) -> Tensor[Float]:
        """Return the tensor as a leaf whose gradient is wanted.

        Raises:
            GradientError: when the device does not record, or the tensor is no leaf.
        """
        return Tensor(self.device.require_grad(self.primitive), self.device)

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient would flow to this tensor."""
        return self.device.is_tracked(self.primitive)

    @requires_grad.setter
    def requires_grad(self, value: Never) -> None:
        raise AttributeError(
            "[tensor] tensors never change: got an assignment to 'requires_grad'\n"
            "hint: x = x.require_grad(), or x = x.detach()"
        )

    def backward(
        self: Tensor[Float],
        seed: Tensor[Float] | None = None,
        *,
        retain_graph: bool = False,
        ready: Ready | None = None,
        **wrong: Never,
    ) -> Gradients:
        """Return the gradients of this tensor as a value; ``w.grad(grads)`` reads one.

        Args:
            seed: the cotangent to start from; 1 by default, for a tensor of one element.
            retain_graph: keep what the pass needs, so that it can run again.
            ready: pairs of leaves and a function, which the pass calls with their gradients as
                soon as it has all of them, None where there is none. The pass goes on behind it.

        Raises:
            GradientError: when nothing was recorded, or the graph was used already.
            ShapeError: without a seed, when there is more than one element.
        """
        if wrong:
            raise refused("backward", wrong, known=("seed", "retain_graph", "ready"))
        if ready is None:
            return self.device.backward(self, seed, retain_graph)
        return self.device.backward(self, seed, retain_graph, ready)

    def grad(self, gradients: Any) -> Tensor[Float]:
        """Return this leaf's gradient out of ``gradients``, on the inner backend.

        ``gradients.get(x)`` gives None where there is none.

        Raises:
            GradientError: when no gradient flowed to it, with the reason.
        """
        if isinstance(gradients, dict) or not hasattr(gradients, "get"):
            raise WrongTypeError(
                "grad",
                "not the gradients of a pass",
                got=type(gradients).__name__,
                expected="what backward() gave",
                hint="x.grad(loss.backward())",
            )
        return gradients[self]

    def detach(self, *more: Never, **wrong: Never) -> Tensor[K]:
        """Return the same values without their history."""
        if wrong or more:
            raise refused("detach", wrong, more)
        out: Tensor[K] = new()
        out.primitive = self.device.detach(self.primitive)
        out.device = self.device
        return out

    def inner(self) -> Tensor[K]:
        """Return the same values on the backend inside this one.

        Raises:
            DeviceError: when the device wraps no backend.
        """
        device = self.device
        primitive = device.lower(self.primitive)
        assert device.inner is not None
        return Tensor(primitive, device.inner)


# Makes an empty Tensor, whose primitive and device the caller sets at once.
new: Final[Callable[[], Any]] = type.__call__.__get__(Tensor)
