"""What nodes give on the device without data."""

from __future__ import annotations

from typing import Any

import numpy as np

import phlox_tensor as px
from phlox_tensor import PhloxError, Tensor

from .._errors import RAW
from .._graph import Node
from .._growth import META
from .._program import bound
from .._row import Parameter, Row
from .._table import row_of
from ._names import Name, cases_of
from ._size import UnknownError
from ._writers import ints


def specs_of(node: Node, values: list[Any]) -> list[Any] | None:
    """What a node gives in both cases, by its row on the device without data."""
    row = row_of(node.key)
    if row is None:
        return None
    out = []
    try:
        for case in (0, 1):
            cases = [_case(v, case) for v in values]
            names = dict(zip(node.inputs, cases, strict=True))
            args = [_case_read(names[n] if n else None, p) for n, p in bound(node, row)]
            words = words_of(node, row)
            if "device" in row.context:
                words["device"] = META
            out.append(row.run(*args, **words))
    except (PhloxError, UnknownError, *RAW):
        return None
    one, two = (o if isinstance(o, tuple) else (o,) for o in out)
    pairs = list(zip(one, two, strict=False))
    return [p if all(isinstance(t, Tensor) for t in p) else None for p in pairs]


def _case(value: Any, case: int) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return np.array(cases_of(value.tolist())[case])
    return cases_of(value)[case] if isinstance(value, Name) else value


def words_of(node: Node, row: Row) -> dict[str, Any]:
    """The keywords of a row."""
    words: dict[str, Any] = dict(node.attributes)
    if "outputs" in row.context:
        words["outputs"] = len(node.outputs)
    return words


def _case_read(value: Any, parameter: Parameter) -> Any:
    if value is None:
        return parameter.default
    takes = parameter.takes
    if takes == "Ints":
        return ints(value)
    if takes == "Scalar":
        return np.asarray(value).reshape(()).item()
    if takes == "Host" and not isinstance(value, np.ndarray):
        raise UnknownError("a value")
    if takes == "Tensor" and isinstance(value, np.ndarray):
        return px.asarray(value, device=META)
    return value
