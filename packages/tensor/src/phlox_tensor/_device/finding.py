"""Finding devices: by entry point, by name, by default."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from functools import cache
from inspect import signature
from typing import Any, Final

from .._errors.classes import ArgumentError, BackendUnavailableError
from .._values.ambient import depend_on
from ..blocks import block
from .backend import Backend, made_devices

GROUP = "phlox.backends"
_current: ContextVar[Backend | None] = ContextVar("phlox_device", default=None)

_GPU: Final = 'device="wgpu", from: pip install "phlox[wgpu]"'
# What to type for names of devices that are not there.
_HINTS: Final = {
    "autodiff": "device=px.Autodiff(px.Cpu())",
    "cpu": "pip install phlox-kernels",
    "cuda": _GPU,
    "gpu": _GPU,
    "hip": _GPU,
    "mps": _GPU,
    "vulkan": _GPU,
    "wgpu": 'pip install "phlox[wgpu]"',
    "xpu": _GPU,
}
_provided: Final[dict[str, Any]] = {}


def provide(name: str, cls: Any) -> None:
    """Let ``name`` be that of a backend of this package, which has no entry point."""
    _provided[name] = cls


@cache
def backend_classes() -> dict[str, Any]:
    """Entry points of the backends of other packages by name; loads none."""
    # It takes a sixth of the time of importing this package, and devices may be given instead.
    from importlib.metadata import entry_points  # noqa: PLC0415

    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def load_class(name: str) -> Any:
    """Return the class of the backend of this name; imports its package."""
    if name in _provided:
        return _provided[name]
    point = backend_classes().get(name)
    if point is None:
        raise ArgumentError(
            "device",
            "no such backend is installed",
            got=repr(name),
            expected=", ".join(sorted({*backend_classes(), *_provided})),
            hint=_HINTS.get(name),
        )
    return point.load()


def as_device(device: Backend | str | None, op: str = "device") -> Backend:
    """Return the device that ``device`` names: a Backend, ``"cpu"``, ``"wgpu:0"``, None.

    Raises:
        ArgumentError: when no backend of that name is installed.

    Example:
        >>> as_device("numpy")
        Numpy()
    """
    if device is None:
        return default_device()
    if isinstance(device, Backend):
        return device
    if not isinstance(device, str):
        raise _no_device(device, op)
    name, colon, index = device.partition(":")
    if colon and not (index.isascii() and index.isdigit()):
        raise ArgumentError(op, "not a device", got=repr(device), expected='such as "wgpu:0"')
    cls = load_class(name)
    if not colon:
        return cls()
    if "index" not in signature(cls.__init__).parameters:
        raise ArgumentError(op, "the backend has one device", got=repr(device), expected=repr(name))
    return cls(int(index))


def _no_device(device: Any, op: str) -> ArgumentError:
    cls_name = getattr(device, "__name__", None)  # the class was given for the object
    outer = cls_name is not None and "backend" in signature(device.__init__).parameters
    return ArgumentError(
        op,
        "not a device",
        got=repr(device),
        expected='a Backend or a name such as "cpu"',
        hint=f"{cls_name}({'Cpu()' if outer else ''})" if cls_name else None,
    )


def default_device() -> Backend:
    """Return the device of new tensors: what ``use_device`` set, else Cpu(), else Numpy().

    Example:
        >>> with use_device("numpy"):
        ...     default_device()
        Numpy()
    """
    return _current.get() or _fallback()


@cache
def _fallback() -> Backend:
    if "cpu" in backend_classes():
        try:
            return as_device("cpu")
        except ImportError:  # the distribution is there but its native part is not
            pass
    return as_device("numpy")


@block
def use_device(device: Backend | str) -> Iterator[Backend]:
    """Make ``device`` the default inside a ``with`` block, in this thread or task.

    Example:
        >>> with use_device("numpy"):
        ...     ones((2,)).device
        Numpy()
    """
    chosen = as_device(device)
    token = _current.set(chosen)
    try:
        yield chosen
    finally:
        _current.reset(token)


depend_on(_current.get)


def empty_cache(device: Backend | str | None = None) -> None:
    """Give memory that no tensor holds back to the system, on ``device`` or on every one in use.

    Devices keep the memory of tensors that are gone, since new ones of like size come soon.
    Give it back between phases of different needs, or when another process wants it.

    Raises:
        ArgumentError: when no backend of that name is installed.

    Examples:
        >>> px.empty_cache()
        >>> px.empty_cache("numpy")
    """
    bases = [made for made in made_devices() if made.inner is None]
    for chosen in bases if device is None else [as_device(device, "empty_cache")]:
        chosen.trim()


def devices() -> list[Backend]:
    """Return every device found on this machine; backends that cannot run are left out.

    Example:
        >>> "numpy" in str(devices()).lower()
        True
    """
    found: list[Backend] = []
    for name in sorted({*backend_classes(), *_provided}):
        try:
            backend = load_class(name)
            found.extend(backend.found() if hasattr(backend, "found") else [backend()])
        except (BackendUnavailableError, ImportError):
            continue
    return found
