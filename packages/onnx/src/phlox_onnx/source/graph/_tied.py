"""The graph behind a source, with the source's parameters among its constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ..._errors import OnnxError
from ..._graph import Array, Graph, Node, graphs_of
from ._simplify import Forms

_OPSET: Final = 28
Params = Mapping[str, tuple[Array, str]]


def tied(graph: Graph, params: Params, forms: Forms) -> dict[str, str]:
    """Make each parameter of a source a constant of its graph; other forms of one become nodes.

    Args:
        graph: what the source was made of; changed in place.
        params: by the path in the source.
        forms: which constants are others, transposed.

    Returns:
        The paths of parameters by the names of their constants.
    """
    homes = {name: each for each in graphs_of(graph) for name in each.constants}
    places = {id(each.constants[name]): name for name, each in homes.items()}
    out: dict[str, str] = {}
    for path, (array, role) in params.items():
        name = places.get(id(array)) or _flattened(homes, array)
        if not name and role == "state":  # which the source computed: records have it, too
            name = f"{path}/computed"
            graph.constants[name] = array
        if not name or name in out:
            what = "a parameter of the source is no constant of the file, or not alone"
            raise OnnxError("load", what, got=path, hint='load(file, paths="file")')
        out[name] = path
    for name, other in [*forms.turned.items(), *((b, a) for a, b in forms.turned.items())]:
        if name in homes and name not in out and other in out:
            _made_of(homes[name], name, Node("Transpose", "", [other], [name], opset=_OPSET))
    return out


def _flattened(homes: dict[str, Graph], array: Array) -> str:
    """The name of a parameter that is a vector of a constant with more axes, if it is one."""
    for name, graph in homes.items():
        found = graph.constants.get(name)
        if found is None or not _same_elements(found, array):
            continue
        vector, shape = f"{name}/vector", f"{name}/shape"
        graph.constants |= {vector: array, shape: np.array(found.shape, np.int64)}
        node = Node("Reshape", "", [vector, shape], [name], opset=_OPSET)
        _made_of(graph, name, node)
        return vector
    return ""


def _same_elements(one: Array, two: Array) -> bool:
    """Whether two arrays are the same memory, in one order."""
    whole = one.flags.c_contiguous and two.flags.c_contiguous
    same = one.dtype == two.dtype and one.size == two.size
    return whole and same and one.ctypes.data == two.ctypes.data


def _made_of(graph: Graph, name: str, node: Any) -> None:
    """Let a node make what was a constant."""
    del graph.constants[name]
    graph.nodes.insert(0, node)
