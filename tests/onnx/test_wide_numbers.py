"""Floats of a file as the source writes them: 0.6 of float32 is another number in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import phlox as px

NARROW, WIDE = "0.6", "0.6000000238418579"
SCALE = helper.make_tensor("s", TensorProto.FLOAT, [], [0.6])
STEPS = np.arange(-40, 40) * float(np.float32(0.6))
MADE: dict[str, tuple[list[Any], int, np.ndarray[Any, Any], str]] = {
    "a constant that is cast": (
        [
            helper.make_node("Cast", ["s"], ["w"], to=TensorProto.DOUBLE),
            helper.make_node("Div", ["x", "w"], ["a"]),
        ],
        TensorProto.DOUBLE,
        STEPS,
        WIDE,
    ),
    "an attribute": (
        [helper.make_node("LeakyRelu", ["x"], ["a"], alpha=0.6)],
        TensorProto.DOUBLE,
        np.arange(-40, 40) / float(np.float32(0.6)),
        WIDE,
    ),
    "all of float32": (
        [helper.make_node("Mul", ["x", "s"], ["a"])],
        TensorProto.FLOAT,
        np.arange(-40, 40, dtype=np.float32),
        NARROW,
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_a_number_has_the_digits_that_its_reader_needs(name: str, tmp_path: Path) -> None:
    """Where they are missing, ``write`` refuses its own package: a floor is off by one."""
    nodes, kind, x, digits = MADE[name]
    given, found = (helper.make_tensor_value_info(n, kind, ["n"]) for n in "xy")
    floor = helper.make_node("Floor", ["a"], ["y"])
    graph = helper.make_graph([*nodes, floor], "g", [given], [found], [SCALE])
    opsets = [helper.make_opsetid("", 18)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    made = px.onnx.write(data, tmp_path / "made", verify={"x": x})
    assert f"{digits})" in made.model


def test_what_the_host_reckons_with_keeps_all_digits() -> None:
    """Places are found in float64, whatever the tensor is."""
    scales = helper.make_tensor("s", TensorProto.FLOAT, [2], [1.0, 0.6])
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")
    x, y = (
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, k]) for n, k in (("x", 7), ("y", 4))
    )
    graph = helper.make_graph([node], "g", [x], [y], [scales])
    opsets = [helper.make_opsetid("", 19)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    assert WIDE in px.onnx.source(made)
