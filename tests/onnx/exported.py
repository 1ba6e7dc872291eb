"""Modules of one function, and what ONNX Runtime makes of their files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest

from phlox import nn


@final
class Of(nn.Module):
    """A function as a module."""

    function: Callable[..., Any]

    def forward(self, *inputs: Any) -> Any:
        """Return what it gives."""
        return self.function(*inputs)


def drawn(*shape: int) -> Any:
    """Numbers around 0."""
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def onnxruntime(path: Path, *inputs: Any, rewritten: bool = True) -> list[Any]:
    """What ONNX Runtime gives for a file, or for its formulas as they stand; skips without it."""
    found: Any = pytest.importorskip(
        "onnxruntime", reason="ONNX Runtime comes with ./x test --long"
    )
    options = found.SessionOptions()
    options.log_severity_level = 4
    if not rewritten:
        options.graph_optimization_level = found.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = found.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    return list(session.run(None, dict(zip(names, inputs, strict=True))))
