"""What ``pip install phlox`` alone does not bring: the extra that does, and the line to type."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib.util import find_spec
from typing import Final

# The package of each extra, then what else it cannot be imported without.
EXTRAS: Final = {
    "data": ("phlox_data", "PIL"),
    "distributed": ("phlox_distributed",),
    "onnx": ("phlox_onnx", "onnx"),
    "text": ("phlox_text", "jinja2", "tokenizers"),
    "train": ("phlox_train", "psutil", "rich"),
    "wgpu": ("phlox_wgpu", "wgpu"),
}
_KERNELS: Final = "phlox_kernels"  # the package of `Cpu`, which comes without an extra


def installed(extra: str) -> bool:
    """Whether the package of an extra is there; it is not loaded."""
    return find_spec(EXTRAS[extra][0]) is not None


def absent_parts() -> set[str]:
    """Parts of phlox whose packages are not there, in small letters."""
    absent = {extra for extra in EXTRAS if not installed(extra)}
    return absent if find_spec(_KERNELS) else absent | {"cpu"}


def of_extra(extra: str) -> AbstractContextManager[None]:
    """Imports inside say which extra brings what is missing."""
    from phlox_tensor.needed import needing  # noqa: PLC0415 - `import phlox` loads no package

    return needing(extra, f"phlox[{extra}]", *EXTRAS[extra])


def of_backend(name: str) -> AbstractContextManager[None]:
    """Imports of the package of a backend say what brings it where it is missing."""
    from phlox_tensor.needed import needing  # noqa: PLC0415 - as above

    return needing("cpu", "phlox-kernels", _KERNELS) if name == "Cpu" else of_extra(name.lower())
