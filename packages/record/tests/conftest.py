"""What the tests of this package share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_record as pr
import phlox_tensor as pt

RECORDERS = (
    pr.CompactMsgpackGzRecorder,
    pr.CompactMsgpackRecorder,
    pr.JsonGzRecorder,
    pr.JsonRecorder,
    pr.NamedMsgpackGzRecorder,
    pr.NamedMsgpackRecorder,
    pr.NpzRecorder,
    pr.SafetensorsRecorder,
)


@pytest.fixture(autouse=True)
def on_numpy() -> Iterator[None]:
    """The reference backend has every dtype and is always there."""
    with pt.use_device(pt.Numpy()):
        yield


@pytest.fixture(params=RECORDERS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> type[pr.Recorder]:
    found: type[pr.Recorder] = request.param
    return found


@pytest.fixture
def small() -> dict[str, Any]:
    """A tree with every kind of value; its bytes are in golden/."""
    return {
        "layers": [
            {"weight": pr.ParamEntry("w-1", pt.asarray(np.array([[1, -2.5], [0.5, 3]], "f4")))},
            {"weight": pt.asarray(np.array([1.5], "f4")), "bias": None},
        ],
        "moments": pr.Keyed({"w-1": {"step": 3, "m": pt.asarray(np.array([7, 8], "i8"))}}),
        "mask": pt.asarray(np.array([True, False])),
        "none": pt.asarray(np.zeros((0, 2), "f4")),
        "scalar": pt.asarray(np.float32(-0.0)),
        "rate": 1e-3,
        "best": float("-inf"),
        "done": False,
        "name": "größe",
        "raw": b"\x00\xff",
        "$odd": {"$tensor": 1},
        "seed": 2**64 - 1,
        "empty": {"list": [], "dict": {}},
    }


@pytest.fixture
def plain() -> Callable[[Any], Any]:
    """Return a function that makes trees comparable: tensors become (dtype, shape, bytes)."""

    def turn(node: Any) -> Any:
        if isinstance(node, pr.Keyed):
            return "keyed", [(key, turn(child)) for key, child in node.items()]
        if isinstance(node, dict):
            return "dict", [(key, turn(child)) for key, child in node.items()]
        if isinstance(node, list):
            return "list", [turn(child) for child in node]
        if isinstance(node, pr.ParamEntry):
            return "param", node.id, turn(node.tensor)
        if isinstance(node, pt.Tensor | pr.TensorEntry):
            return node.dtype.name, tuple(node.shape), node.numpy().tobytes()
        return type(node).__name__, repr(node)

    return turn


@pytest.fixture
def attacks_folder() -> Path:
    return Path(__file__).parent.parent / "attacks"
