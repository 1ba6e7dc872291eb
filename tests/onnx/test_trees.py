"""Trees of ai.onnx.ml beside the reference of the onnx wheel and ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import phlox as px
from phlox import Autodiff, Cpu
from phlox_onnx.testing import _written
from tests.onnx.exported import onnxruntime

COLUMNS: Final = 4
TYPES: Final = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def grown(rng: Any, trees: int, depth: int, modes: tuple[str, ...]) -> dict[str, Any]:
    """Nodes of random trees, some of whose branches end early, in the order of a walk."""
    rows: list[dict[str, Any]] = []

    def grow(tree: int, left: int) -> int:
        number = sum(row["treeids"] == tree for row in rows)
        row: dict[str, Any] = {"treeids": tree, "nodeids": number, "featureids": 0, "values": 0.0}
        row |= {"modes": "LEAF", "truenodeids": 0, "falsenodeids": 0}
        row |= {"missing_value_tracks_true": 0}
        rows.append(row)
        if left and (left == depth or rng.random() < 0.8):
            row |= {"modes": str(rng.choice(modes)), "featureids": int(rng.integers(COLUMNS))}
            row |= {"values": float(rng.integers(-3, 4)) / 2}
            row["missing_value_tracks_true"] = int(rng.integers(2))
            row["truenodeids"] = grow(tree, left - 1)
            row["falsenodeids"] = grow(tree, left - 1)
        return number

    for tree in range(trees):
        grow(tree, depth)
    return {f"nodes_{key}": [row[key] for row in rows] for key in rows[0]}


def forest(op: str, seed: int, votes: int, /, **words: Any) -> bytes:
    """A file of one ensemble; each leaf votes for each target, or for the one class."""
    rng = np.random.default_rng(seed)
    nodes = grown(rng, 3, 4, TYPES if seed % 2 else TYPES[:1])
    kind = "class" if op.endswith("Classifier") else "target"
    pairs = zip(nodes["nodes_treeids"], nodes["nodes_nodeids"], nodes["nodes_modes"], strict=True)
    leaves = [(tree, node) for tree, node, mode in pairs if mode == "LEAF"]
    ids = [(tree, node, i) for tree, node in leaves for i in range(votes)]
    for i, name in enumerate(("treeids", "nodeids", "ids")):
        words[f"{kind}_{name}"] = [each[i] for each in ids]
    least = words.pop("least", -1.0)
    words[f"{kind}_weights"] = rng.uniform(least, 1.0, len(ids)).astype(np.float32).tolist()
    outputs = ["label", "y"] if kind == "class" else ["y"]
    node = helper.make_node(op, ["x"], outputs, domain="ai.onnx.ml", **nodes, **words)
    types = {"label": TensorProto.INT64, "y": TensorProto.FLOAT}
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", COLUMNS])],
        [helper.make_tensor_value_info(name, types[name], None) for name in outputs],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


C, R = "TreeEnsembleClassifier", "TreeEnsembleRegressor"
CASES: Final[dict[str, bytes]] = {
    "a mean": forest(R, 1, 1, n_targets=1, aggregate_function="AVERAGE"),
    "a sum of two targets": forest(R, 2, 2, n_targets=2, base_values=[0.5, -1.0]),
    "all ways to compare": forest(R, 3, 2, n_targets=2),
    "labels of one score": forest(C, 4, 1, classlabels_int64s=[3, 8], post_transform="LOGISTIC"),
    "labels of shares": forest(C, 5, 1, least=0.0, classlabels_int64s=[3, 8]),
    "labels of three": forest(C, 6, 3, classlabels_int64s=[2, 0, 7], post_transform="SOFTMAX"),
    "the largest leaf": forest(R, 7, 1, n_targets=1, aggregate_function="MAX"),
    "the least leaf": forest(R, 8, 1, n_targets=1, aggregate_function="MIN"),
}


def rows() -> Any:
    """Rows with equal numbers at thresholds, and some that miss."""
    x = np.random.default_rng(0).integers(-4, 5, (40, COLUMNS)).astype(np.float32) / 2
    x[7], x[8, 1] = np.nan, np.nan
    return x


def results(found: Any) -> list[Any]:
    return [v.numpy() for v in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("read", [px.onnx.load, _written], ids=["load", "source"])
@pytest.mark.parametrize("name", CASES)
def test_trees_give_what_the_reference_gives(name: str, read: Any) -> None:
    found = results(read(CASES[name], device=Cpu())(px.asarray(rows()[9:])))
    wanted: Any = ReferenceEvaluator(onnx.load_from_string(CASES[name])).run(
        None, {"x": rows()[9:]}
    )
    for one, two in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.reshape(np.shape(two)), two, rtol=1e-5, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_trees_give_what_onnx_runtime_gives(name: str, tmp_path: Path) -> None:
    (tmp_path / "trees.onnx").write_bytes(CASES[name])
    wanted = onnxruntime(tmp_path / "trees.onnx", rows())
    found = results(px.onnx.load(CASES[name], device=Cpu())(rows()))
    for one, two in zip(found, wanted, strict=True):
        assert (one.shape, one.dtype) == (two.shape, two.dtype)
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


def test_what_is_missing_takes_the_way_that_the_file_says() -> None:
    model = px.onnx.load(CASES["a sum of two targets"], device=Cpu())
    node = onnx.load_from_string(CASES["a sum of two targets"]).graph.node[0]
    words = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    total = np.array([0.5, -1.0])
    for tree in range(3):
        at = words["nodes_treeids"].index(tree)
        first = at
        while words["nodes_modes"][at] != b"LEAF":
            way = "true" if words["nodes_missing_value_tracks_true"][at] else "false"
            at = first + words[f"nodes_{way}nodeids"][at]
        key = tree, words["nodes_nodeids"][at]
        for i, pair in enumerate(
            zip(words["target_treeids"], words["target_nodeids"], strict=True)
        ):
            total[words["target_ids"][i]] += words["target_weights"][i] if pair == key else 0
    x = np.full((1, COLUMNS), np.nan, np.float32)
    np.testing.assert_allclose(model(x).numpy()[0], total, rtol=1e-5)


def test_trees_stand_behind_what_trains() -> None:
    """Nothing of a tree is trained, and no gradient comes through its steps."""
    device = Autodiff(Cpu())
    model = px.onnx.load(CASES["a mean"], device=device)
    assert not model.params(trainable=True)
    x = px.asarray(rows()[9:], device=device)
    assert model(x).shape == (31, 1)


def _changed(change: Any) -> bytes:
    model = onnx.load_from_string(CASES["labels of three"])
    change(model.graph.node[0])
    return bytes(model.SerializeToString())


def _set(node: Any, name: str, value: Any) -> None:
    kept = [a for a in node.attribute if a.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, *([] if value is None else [helper.make_attribute(name, value)])])


def _circle(node: Any) -> None:
    children = next(a for a in node.attribute if a.name == "nodes_truenodeids")
    children.ints[1] = 1


def _text(node: Any) -> None:
    _set(node, "classlabels_int64s", None)
    _set(node, "classlabels_strings", ["a", "b", "c"])


WRONG: Final[dict[str, tuple[Any, str]]] = {
    "a child that is not there": (lambda n: _set(n, "nodes_falsenodeids", [99]), "does not fit"),
    "a circle": (_circle, "a tree has no end"),
    "classes of text": (_text, "labels that are text"),
    "no modes": (lambda n: _set(n, "nodes_modes", None), "does not fit"),
    "the least of three": (lambda n: _set(n, "aggregate_function", "MIN"), "least of several"),
    "too many classes": (
        lambda n: _set(n, "classlabels_int64s", [0] * (1 << 20)),
        "too large|long",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_tree_is_refused(name: str) -> None:
    change, says = WRONG[name]
    with pytest.raises(px.onnx.OnnxError, match=says):
        px.onnx.load(_changed(change))
