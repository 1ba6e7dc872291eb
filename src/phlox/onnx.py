"""ONNX files as modules: everything of phlox_onnx, which `pip install phlox[onnx]` brings."""

try:
    from phlox_onnx import *
except ModuleNotFoundError as error:
    if error.name not in ("phlox_onnx", "onnx"):
        raise
    raise ModuleNotFoundError(
        f'[onnx] a package is not installed: got no {error.name}\nhint: pip install "phlox[onnx]"',
        name=error.name,
    ) from None
