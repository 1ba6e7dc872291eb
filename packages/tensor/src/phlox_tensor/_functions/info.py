"""What the array API standard asks a namespace about itself."""

from __future__ import annotations

from typing import Any, Final, final

from .._device.backend import Backend
from .._device.finding import as_device, default_device, devices
from .._errors.classes import ArgumentError
from .._values.dtype import DTYPES, DType
from .composite import isdtype

_BEYOND: Final = ("bfloat16", "float16")  # element types that the standard does not have
VERSION: Final = "2025.12"
# A later edition of the standard contains the earlier ones.
VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12", VERSION)


def check_version(api_version: str | None) -> None:
    """Refuse an edition of the standard that phlox does not know."""
    if api_version is not None and api_version not in VERSIONS:
        expected = ", ".join(VERSIONS)
        what = "unknown edition of the array API"
        raise ArgumentError("__array_namespace__", what, got=api_version, expected=expected)


@final
class NamespaceInfo:
    """Answers of a namespace about itself; ``__array_namespace_info__()`` makes one."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """What tensors can do: masks as indices, results whose size depends on values, ranks."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": default_device().max_rank,
        }

    def default_device(self) -> Backend:
        """The device of functions that are given none."""
        return default_device()

    def default_dtypes(self, *, device: Backend | str | None = None) -> dict[str, DType]:
        """The element types that a device gives by default."""
        found = as_device(device)
        return {
            "real floating": found.default_float,
            "integral": found.default_int,
            "indexing": found.default_int,
        }

    def devices(self) -> tuple[Backend, ...]:
        """The devices that run here."""
        return tuple(devices())

    def dtypes(
        self, *, device: Backend | str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The element types of the standard that a device has; those of a kind of ``isdtype``."""
        have = as_device(device).dtypes
        wanted = ("bool", "numeric") if kind is None else kind
        return {
            name: d
            for name, d in DTYPES.items()
            if d in have and name not in _BEYOND and isdtype(d, wanted)
        }
