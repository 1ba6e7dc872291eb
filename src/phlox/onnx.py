"""ONNX files as modules: everything of phlox_onnx, which `pip install phlox[onnx]` brings."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._extras import of_extra as _of_extra

with _of_extra("onnx"):
    from phlox_onnx import *

    if not _TYPE_CHECKING:
        from phlox_onnx import __getattr__  # noqa: F401 - says what names of others are called here
