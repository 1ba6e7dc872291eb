"""Makes files that try to harm whoever reads them; see README.md."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def honest() -> onnx.ModelProto:
    """Y = x + w, with w in the file."""
    node = helper.make_node("Add", ["x", "w"], ["y"], name="add")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    w = numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")
    graph = helper.make_graph([node], "g", [x], [y], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def _huge(m: Any) -> None:
    m.graph.initializer[0].dims[:] = [1 << 40, 1 << 16]


def _huge_and_none(m: Any) -> None:
    m.graph.initializer[0].dims[:] = [0, 1 << 62, 1 << 62]
    m.graph.initializer[0].raw_data = b""


def _negative(m: Any) -> None:
    m.graph.initializer[0].dims[:] = [-4]


def _short(m: Any) -> None:
    m.graph.initializer[0].raw_data = b"\0" * 15


def _deep_rank(m: Any) -> None:
    m.graph.initializer[0].dims[:] = [1] * 33 + [4]


def _long_name(m: Any) -> None:
    m.graph.node[0].name = "x" * 1001


def _circle(m: Any) -> None:
    m.graph.node.append(helper.make_node("Add", ["y", "b"], ["a"]))
    m.graph.node.append(helper.make_node("Add", ["a", "y"], ["b"]))


def _twice(m: Any) -> None:
    m.graph.node.append(helper.make_node("Neg", ["x"], ["y"]))


def _nothing(m: Any) -> None:
    m.graph.node[0].input[0] = "nowhere"


def _recursion(m: Any) -> None:
    body = [helper.make_node("f", ["a"], ["b"], domain="mine")]
    opsets = [helper.make_opsetid("mine", 1)]
    m.functions.append(helper.make_function("mine", "f", ["a"], ["b"], body, opsets))
    m.opset_import.append(helper.make_opsetid("mine", 1))
    m.graph.node.append(helper.make_node("f", ["x"], ["z"], domain="mine"))


def _bomb(m: Any) -> None:
    """Forty functions, each of which calls the next twice."""
    opsets = [helper.make_opsetid("mine", 1), helper.make_opsetid("", 18)]
    for i in range(40):
        body = [
            helper.make_node(f"f{i + 1}", ["a"], ["c"], domain="mine"),
            helper.make_node(f"f{i + 1}", ["c"], ["b"], domain="mine"),
        ]
        m.functions.append(helper.make_function("mine", f"f{i}", ["a"], ["b"], body, opsets))
    last = [helper.make_node("Neg", ["a"], ["b"])]
    m.functions.append(helper.make_function("mine", "f40", ["a"], ["b"], last, opsets))
    m.opset_import.append(helper.make_opsetid("mine", 1))
    m.graph.node.append(helper.make_node("f0", ["x"], ["z"], domain="mine"))


def _sparse(m: Any) -> None:
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("", TensorProto.INT64, [1], [0])
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [1 << 40]))


def _sparse_outside(m: Any) -> None:
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("", TensorProto.INT64, [1], [9])
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))


def _sparse_of_another_rank(m: Any) -> None:
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("", TensorProto.INT64, [1, 3], [0, 0, 0])
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4, 4]))


def _tower(m: Any) -> None:
    """Sixty functions, each of which calls the next inside of ten branches in each other."""
    opsets = [helper.make_opsetid("mine", 1), helper.make_opsetid("", 18)]
    out = helper.make_tensor_value_info("b", TensorProto.FLOAT, [4])
    for i in range(60):
        node = helper.make_node(f"f{i + 1}", ["a"], ["b"], domain="mine")
        for _ in range(10):
            graph = helper.make_graph([node], "g", [], [out])
            node = helper.make_node("If", ["c"], ["b"], then_branch=graph, else_branch=graph)
            node.attribute[1].g.CopyFrom(helper.make_graph([], "e", [], [out]))
        body = [helper.make_node("Cast", ["a"], ["c"], to=TensorProto.BOOL), node]
        m.functions.append(helper.make_function("mine", f"f{i}", ["a"], ["b"], body, opsets))
    last = [helper.make_node("Neg", ["a"], ["b"])]
    m.functions.append(helper.make_function("mine", "f60", ["a"], ["b"], last, opsets))
    m.opset_import.append(helper.make_opsetid("mine", 1))
    m.graph.node.append(helper.make_node("f0", ["x"], ["z"], domain="mine"))


def nested(depth: int) -> onnx.GraphProto:
    """Branches in branches."""
    y = helper.make_tensor_value_info(f"y{depth}", TensorProto.FLOAT, [4])
    if not depth:
        return helper.make_graph([helper.make_node("Neg", ["x"], ["y0"])], "g", [], [y])
    inner = nested(depth - 1)
    node = helper.make_node("If", ["c"], [y.name], then_branch=inner, else_branch=inner)
    return helper.make_graph([node], "g", [], [y])


def deep() -> bytes:
    """Return ten thousand graphs, each in a node of the next, as the bytes of the format."""
    graph = b""
    for _ in range(10_000):
        attribute = _field(6, graph)
        graph = _field(1, _field(4, b"If") + _field(5, attribute))
    return bytes(honest().SerializeToString()) + _field(7, graph)


def _field(number: int, data: bytes) -> bytes:
    """A field of protobuf that holds bytes, and how many."""
    size, count = b"", len(data)
    while count > 127:
        size += bytes([count & 127 | 128])
        count >>= 7
    return bytes([number << 3 | 2]) + size + bytes([count]) + data


def _newer(m: Any) -> None:
    m.opset_import[0].version = 29


def _attribute_twice(m: Any) -> None:
    m.graph.node[0].op_type = "Softmax"
    m.graph.node[0].attribute.extend(helper.make_attribute("axis", i) for i in (0, 1))


def _not_text(m: Any) -> None:
    m.graph.node[0].attribute.append(helper.make_attribute("auto_pad", b"\xff\xfe"))


def _too_many_inputs(m: Any) -> None:
    m.graph.node[0].input.append("x")


def _too_few_inputs(m: Any) -> None:
    del m.graph.node[0].input[1]


# What is changed in the honest file, and what its refusal says.
CHANGES: dict[str, tuple[Callable[[Any], None], str]] = {
    "attribute_twice": (_attribute_twice, "an attribute is given twice"),
    "bomb": (_bomb, "too many nodes"),
    "circle": (_circle, "nodes wait for each other"),
    "deep_rank": (_deep_rank, "impossible shape"),
    "huge": (_huge, "other bytes than its shape"),
    "huge_and_none": (_huge_and_none, "impossible shape"),
    "long_name": (_long_name, "a name is too long"),
    "negative": (_negative, "impossible shape"),
    "newer": (_newer, "an opset that is not known: got 29, expected 1 to 28"),
    "not_text": (_not_text, "text is not UTF-8"),
    "nothing": (_nothing, "read that nothing makes"),
    "recursion": (_recursion, "call each other in a circle"),
    "short": (_short, "other bytes than its shape"),
    "sparse": (_sparse, "a sparse tensor is too large"),
    "sparse_outside": (_sparse_outside, "points outside"),
    "sparse_of_another_rank": (_sparse_of_another_rank, "points outside"),
    "too_few_inputs": (_too_few_inputs, "an input is missing"),
    "too_many_inputs": (_too_many_inputs, "too many inputs"),
    "tower": (_tower, "functions nest too deep"),
    "twice": (_twice, "a value is made twice"),
}


def beside(folder: Path, location: str, **entries: str) -> Path:
    """The honest model with its data in another file."""
    proto = honest()
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


# Where the data of a tensor is said to be, what else is said of it, and what the refusal says.
BESIDE: dict[str, tuple[str, dict[str, str], str]] = {
    "above": ("../w.bin", {}, "outside of the model's folder"),
    "above_a_folder": ("a/../../w.bin", {}, "outside of the model's folder"),
    "absolute": ("/etc/passwd", {}, "outside of the model's folder"),
    "backslash": ("..\\w.bin", {}, "outside of the model's folder"),
    "folder": ("folder", {}, "no plain file|cannot be opened"),
    "huge_offset": ("w.bin", {"offset": "9" * 30}, "malformed"),
    "link": ("link.bin", {}, "is a link"),
    "linked_folder": ("linked/w.bin", {}, "is a link"),
    "negative_offset": ("w.bin", {"offset": "-1"}, "malformed"),
    "no_name": ("", {}, "outside of the model's folder"),
    "none": ("none.bin", {}, "cannot be opened"),
    "pipe": ("pipe", {}, "no plain file"),
    "second_name": ("second.bin", {}, "no plain file"),
    "short_length": ("w.bin", {"length": "15"}, "another size"),
    "short_offset": ("w.bin", {"offset": "8"}, "ends too early"),
    "zero_in_the_name": ("w\0.bin", {}, "outside of the model's folder"),
}


def surrounded(folder: Path) -> Path:
    """The folder of a model, with data in it and above it, links and a pipe."""
    inside = folder / "model"
    (inside / "folder").mkdir(parents=True)
    for path in (folder / "w.bin", inside / "w.bin", inside / "first.bin"):
        path.write_bytes(b"\0" * 16)
    os.symlink(inside / "w.bin", inside / "link.bin")
    os.symlink(folder, inside / "linked")
    os.mkfifo(inside / "pipe")
    os.link(inside / "first.bin", inside / "second.bin")
    return inside


def expectations() -> dict[str, str]:
    """Return what the refusal of each file must say, by its path in the folder."""
    files = {f"{name}.onnx": says for name, (_, says) in CHANGES.items()}
    files["deep.onnx"] = "not an ONNX file"
    return files | {f"{name}/model/model.onnx": says for name, (*_, says) in BESIDE.items()}


def changed(name: str) -> bytes:
    """Return the file of a change."""
    proto = honest()
    CHANGES[name][0](proto)
    return bytes(proto.SerializeToString())


def main(folder: str) -> None:
    """Write all files into `folder`."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    (place / "deep.onnx").write_bytes(deep())
    for name in CHANGES:
        (place / f"{name}.onnx").write_bytes(changed(name))
    for name, (location, entries, _) in BESIDE.items():
        beside(surrounded(place / name), location, **entries)


if __name__ == "__main__":
    main(sys.argv[1])
