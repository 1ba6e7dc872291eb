"""What nodes give on the device without data."""

from __future__ import annotations

from typing import Any

import numpy as np

from phlox_tensor import PhloxError, Tensor

from ..._errors import RAW
from ..._graph import Node
from ...run._program import dry
from ...run._table import row_of
from ._size import UnknownError
from ._traced import Traced, cases_of


def specs_of(node: Node, values: list[Any]) -> list[Any] | None:
    """What a node gives in both cases, by its row on the device without data."""
    row = row_of(node.key)
    if row is None:
        return None
    try:
        one, two = (
            dry(row, node, dict(zip(node.inputs, (_case(v, c) for v in values), strict=True)))
            for c in (0, 1)
        )
    except (PhloxError, UnknownError, *RAW):
        return None
    pairs = list(zip(one, two, strict=False))
    return [p if all(isinstance(t, Tensor) for t in p) else None for p in pairs]


def _case(value: Any, case: int) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.array(cases_of(value.tolist())[case])
    return cases_of(value)[case] if isinstance(value, Traced) else value
