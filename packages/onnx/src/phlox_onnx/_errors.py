"""What can be wrong with a file."""

from __future__ import annotations

from phlox_tensor import PhloxError


class OnnxError(PhloxError, ValueError):
    """A file is no ONNX model, is malformed, or holds what phlox has no row for."""
