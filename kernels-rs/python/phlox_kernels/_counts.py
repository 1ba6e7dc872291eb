"""``bincount`` of numbers that have a counter each: the reference says so of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from phlox_kernels import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    Entry = Callable[..., Any]

# Counters that no memory need be asked for before the reference has looked.
_FEW: Final = 2**32
_WIDE: Final = frozenset({"int64", "uint64"})  # types that hold larger numbers


def within(kernel: Entry, reference: Entry) -> Entry:
    """Return the entry of ``bincount``, of which ``reference`` does what reaches far."""

    def run(x: Any, minlength: Any) -> Any:
        far = minlength > _FEW or (x.dtype in _WIDE and _largest(x) >= _FEW)
        return (reference if far else kernel)(x, minlength)

    return run


def _largest(x: Any) -> int:
    """The largest number of a vector; 0 of what has none."""
    if len(x.shape) != 1 or not x.shape[0]:
        return 0
    return int(memoryview(_native.max(x, (0,), False))[()])
