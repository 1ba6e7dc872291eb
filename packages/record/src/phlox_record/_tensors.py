"""The one place that makes tensors and asks devices."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias
from weakref import WeakValueDictionary

from phlox_tensor import (
    ArgumentError,
    Backend,
    DType,
    RecordError,
    Tensor,
    as_device,
    as_dtype,
    asarray,
)

from ._errors import located, shown
from ._precision import PrecisionSettings, cast_array
from ._tree import (
    Layout,
    ParamEntry,
    TensorEntry,
    TensorLike,
    entries_with_paths,
    map_tensors,
    tensor_of,
)

DeviceLike: TypeAlias = "Backend | str | None"
LoadDType: TypeAlias = "DType | PrecisionSettings | Literal['device', 'stored']"


# Tensors in the layout of PyTorch by id: a tensor itself has no room for it.
_OF_PYTORCH: Final[WeakValueDictionary[int, Tensor[Any]]] = WeakValueDictionary()


def layout_of(entry: ParamEntry | TensorLike) -> Layout | None:
    """Return ``"pytorch"`` for a tensor of a file that is in the layout of PyTorch.

    A parameter with an id is of this package otherwise, ``"phlox"``. None is that of a tensor that
    does not say: one of a file of another program, or one that was computed from any other.
    """
    tensor = tensor_of(entry)
    of_file = tensor.layout if isinstance(tensor, TensorEntry) else None
    if of_file == "pytorch" or _OF_PYTORCH.get(id(tensor)) is tensor:
        return "pytorch"
    return "phlox" if isinstance(entry, ParamEntry) else None


def materialize(
    tree: Any, *, device: DeviceLike = None, dtype: LoadDType = "device", op: str = "materialize"
) -> Any:
    """Return `tree` with every `TensorEntry` read into a Tensor on `device`, one at a time.

    Tensors that are already there stay as they are.

    Args:
        tree: a record, as from `Recorder.open`.
        device: where to; None is the default device.
        dtype: of float tensors. ``"device"`` is the device's default float, ``"stored"`` the
            file's, else the given one; settings such as ``HalfPrecision`` say it by path. Ints
            and bools keep theirs; where the device lacks an int type, its default int is used
            if all values fit.
        op: the call to name in errors.

    Raises:
        RecordError: damaged data; a value that the wanted dtype cannot hold.
        DTypeError: the device lacks the dtype.
    """
    made = _Maker(as_device(device), dtype, op)
    if type(tree) is dict and all(type(each) is TensorEntry for each in tree.values()):
        return {path: made.tensor(path, each) for path, each in tree.items()}
    paths = {id(tensor): path for path, tensor in entries_with_paths(tree)}
    return map_tensors(tree, lambda tensor: made.tensor(paths.get(id(tensor), ""), tensor))


class _Maker:
    """Reads the leaves of a record as tensors."""

    def __init__(self, device: Backend, dtype: LoadDType, op: str) -> None:
        self._device: Final = device
        self._dtype: Final = _checked(dtype)
        self._op: Final = op

    def tensor(self, path: str, leaf: TensorLike) -> Tensor[Any]:
        if isinstance(leaf, Tensor):
            return leaf
        target = self._target(leaf.dtype, path)
        try:
            array = leaf.numpy()
        except RecordError as error:
            what = f"{error.what} (at {_named(path)})"
            raise RecordError(
                self._op, what, got=error.got, expected=error.expected, hint=error.hint
            ) from None
        if array.dtype != target.numpy:
            loose = isinstance(self._dtype, PrecisionSettings) and self._dtype.overflow
            with located(self._op, _named(path)):
                array = cast_array(array, target, "the tensor", overflow=loose)
        made = asarray(array, device=self._device, dtype=target)
        if leaf.layout == "pytorch":
            _OF_PYTORCH[id(made)] = made
        leaf.drop()
        return made

    def _target(self, stored: DType, path: str) -> DType:
        wanted = self._dtype
        if stored.kind == "Float" and wanted != "stored":
            if isinstance(wanted, PrecisionSettings):
                return wanted.target(stored, _named(path))
            return self._device.default_float if wanted == "device" else wanted
        if stored.kind == "Int" and stored not in self._device.dtypes and wanted != "stored":
            return self._device.default_int
        return stored


def _named(path: str) -> str:
    """A path as errors show it."""
    return shown(path) or "the root"


def _checked(dtype: LoadDType) -> LoadDType:
    if isinstance(dtype, PrecisionSettings) or dtype in ("device", "stored"):
        return dtype
    given: Any = dtype  # None would name NumPy's float64
    found = None if given is None else as_dtype(given, "load")
    if found is None or found.kind != "Float":
        raise ArgumentError(
            "load",
            "dtype is that of floats",
            got=found,
            expected='a float type, "device", "stored"',
        )
    return found
