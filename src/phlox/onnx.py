"""ONNX files as modules: everything of phlox_onnx, which `pip install phlox[onnx]` brings."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

try:
    from phlox_onnx import *

    if not _TYPE_CHECKING:
        from phlox_onnx import __getattr__  # noqa: F401 - says what names of others are called here
except ModuleNotFoundError as error:
    if error.name not in ("phlox_onnx", "onnx"):
        raise
    raise ModuleNotFoundError(
        f'[onnx] a package is not installed: got no {error.name}\nhint: pip install "phlox[onnx]"',
        name=error.name,
    ) from None
