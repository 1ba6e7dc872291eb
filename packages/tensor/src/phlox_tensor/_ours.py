"""Which modules are of this framework, and none of whoever uses it."""

from __future__ import annotations

from typing import Final

# The packages as they are imported, one for each distribution.
OURS: Final = frozenset(
    {
        "phlox",
        "phlox_autodiff",
        "phlox_fusion",
        "phlox_kernels",
        "phlox_nn",
        "phlox_onnx",
        "phlox_optim",
        "phlox_record",
        "phlox_tensor",
        "phlox_wgpu",
    }
)


def is_ours(module: object) -> bool:
    """Whether a module of this name is one of the framework's own."""
    return str(module).partition(".")[0] in OURS
