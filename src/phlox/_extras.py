"""What ``pip install phlox`` alone does not bring: the extra that does, and the line to type."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


class MissingExtraError(ModuleNotFoundError):
    """A part of phlox was used that an extra brings; its text ends with what to type."""


def installed(extra: str) -> bool:
    """Whether the package of an extra is there; it is not loaded."""
    return find_spec(EXTRAS[extra][0]) is not None


@contextmanager
def of_extra(extra: str) -> Iterator[None]:
    """Imports inside say which extra brings what is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in EXTRAS[extra] or find_spec(name):
            raise
        what = f"[{extra}] a package is not installed: got no {name}"
        text = f'{what}, expected it by an extra\nhint: pip install "phlox[{extra}]"'
        raise MissingExtraError(text, name=name) from None
