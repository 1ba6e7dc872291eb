"""ONNX files as modules: everything of phlox_onnx, which `pip install phlox[onnx]` brings."""

from ._extras import of_extra as _of_extra
from ._mirror import mirror as _mirror

with _of_extra("onnx"):
    from phlox_onnx import *

_mirror(__name__, "phlox_onnx")
