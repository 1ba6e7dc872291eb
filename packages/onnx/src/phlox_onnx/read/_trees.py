"""Trees of ai.onnx.ml as tables of their nodes, in which gathers find the leaf of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .._errors import OnnxError
from .._graph import OWN, Array, Node
from ._limits import refuse_long

_MODES: Final = "LEQ LT GTE GT EQ NEQ MEMBER".split()  # noqa: SIM905 - words
_AGGREGATES: Final = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS: Final = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_DEEPEST: Final = 4096
Constant = Callable[[Any, str], str]


def ensemble(node: Node, constant: Constant) -> None:
    """TreeEnsemble of version 5: inner nodes and leaves in lists of their own."""
    words = node.attributes
    of = {k.removeprefix("nodes_"): np.asarray(v) for k, v in words.items() if k[:6] == "nodes_"}
    count, leaves = of["modes"].size, np.asarray(words["leaf_weights"])
    weights = _votes(count + leaves.size, words, leaves)
    weights[count + np.arange(leaves.size), words["leaf_targetids"]] = leaves
    ways = [of[f"{way}nodeids"] + count * of[f"{way}leafs"] for way in ("false", "true")]
    itself = count + np.arange(leaves.size)
    children = np.concatenate([np.stack(ways, 1), np.stack([itself, itself], 1)])
    tables = {"features": of["featureids"], "splits": of["splits"], "modes": of["modes"]}
    tables["missing"] = of.get("missing_value_tracks_true", np.zeros(0, np.int64))
    if "membership_values" in words:
        tables["members"] = _members(words["membership_values"], of["modes"])
    aggregate = _AGGREGATES[words.get("aggregate_function", 1)]
    transform = _TRANSFORMS[words.get("post_transform", 0)]
    roots = np.array(words["tree_roots"], np.int64)
    _put(node, constant, roots, tables, children, weights, aggregate, transform)


def _members(values: Array, modes: Array) -> Array:
    """What each node looks for, in rows that NaN fills; lists end with NaN."""
    ends = np.flatnonzero(np.isnan(values))
    lists = np.split(values, ends + 1)[: len(ends)]
    most = max(map(len, lists), default=0)
    refuse_long("TreeEnsemble", modes.size, most)
    out = np.full((modes.size, most), np.nan, values.dtype)
    for at, each in zip(np.flatnonzero(modes == _MODES.index("MEMBER")), lists, strict=True):
        out[at, : len(each)] = each
    return out


def regressor(node: Node, constant: Constant) -> None:
    """TreeEnsembleRegressor: its leaves add to targets."""
    _older(node, constant, "target", node.attributes.get("post_transform", "NONE"))


def classifier(node: Node, constant: Constant, scores: str) -> Node:
    """TreeEnsembleClassifier: its leaves vote for classes, of which a second node takes one."""
    words, outputs = node.attributes, node.outputs
    labels = words.get("classlabels_int64s", ())
    if not labels:
        what, got = "labels that are text", words.get("classlabels_strings")
        hint = "y = sklearn.preprocessing.LabelEncoder().fit_transform(y) before model.fit(X, y)"
        raise OnnxError(node.op, what, got=got, expected="classlabels_int64s", hint=hint)
    one = len(labels) == 2 and len(set(words["class_ids"])) == 1
    ids = (0,) * len(words["class_ids"]) if one else words["class_ids"]
    node.attributes = {**words, "class_ids": ids, "n_targets": 1 if one else len(labels)}
    _older(node, constant, "class", "NONE")
    node.outputs = [scores]
    last = {"post_transform": words.get("post_transform", "NONE")}
    last["positive"] = int((_list(words, "class_weights") >= 0).all())
    inputs = [scores, constant(labels, "int64")]
    return Node("TreeLabels", OWN, inputs, outputs, last, node.name, 28)


def _votes(nodes: int, words: dict[str, Any], given: Array) -> Array:
    """What each node gives to each target: nothing yet."""
    targets = words.get("n_targets", 1)
    refuse_long("TreeEnsemble", nodes, targets)
    return np.zeros((nodes, targets), given.dtype)


def _list(words: dict[str, Any], name: str) -> Array:
    found = words.get(f"{name}_as_tensor")
    return np.asarray(words.get(name, ()), np.float32) if found is None else np.asarray(found)


def _older(node: Node, constant: Constant, votes: str, transform: str) -> None:
    """Nodes of before version 5, inner ones and leaves by the numbers of tree and node."""
    words = node.attributes
    keys = list(zip(words["nodes_treeids"], words["nodes_nodeids"], strict=True))
    at = {key: i for i, key in enumerate(keys)}
    trees = words["nodes_treeids"]
    leaf = np.array([mode == "LEAF" for mode in words["nodes_modes"]])
    ways = [
        [
            i if leaf[i] else at[trees[i], child]
            for i, child in enumerate(words[f"nodes_{way}nodeids"])
        ]
        for way in ("false", "true")
    ]
    children = np.array(ways).T
    roots = np.setdiff1d(np.arange(len(keys)), children[~leaf])
    given = _list(words, f"{votes}_weights")
    weights = _votes(len(keys), words, given)
    places = zip(words[f"{votes}_treeids"], words[f"{votes}_nodeids"], strict=True)
    np.add.at(weights, ([at[key] for key in places], list(words[f"{votes}_ids"])), given)
    modes = [
        0 if m == "LEAF" else _MODES.index(m.removeprefix("BRANCH_")) for m in words["nodes_modes"]
    ]
    missing = words.get("nodes_missing_value_tracks_true", ())
    tables = {"features": words["nodes_featureids"], "splits": _list(words, "nodes_values")}
    tables |= {"modes": np.array(modes), "missing": np.array(missing, np.int64)}
    base = _list(words, "base_values")
    aggregate = words.get("aggregate_function", "SUM")
    _put(node, constant, roots, tables, children, weights, aggregate, transform, base)


def _put(
    node: Node,
    constant: Constant,
    roots: Array,
    tables: dict[str, Any],
    children: Array,
    weights: Array,
    aggregate: str,
    transform: str,
    base: Array | None = None,
) -> None:
    """Give a node its tables as constants, in lines that are as long for leaves."""
    depth, at = 0, roots
    while (children[at] != at[:, None]).any():
        depth, at = depth + 1, np.unique(children[at])
        if depth > _DEEPEST:
            expected = f"leaves behind at most {_DEEPEST} nodes"
            raise OnnxError(node.op, "a tree has no end", got=node.where(), expected=expected)
    if aggregate in ("MIN", "MAX") and weights.shape[1] > 1:
        raise OnnxError(node.op, "the least of several targets", got=aggregate, expected="SUM")
    modes = np.unique(tables["modes"])
    kinds = {"features": "int64", "modes": "int64", "missing": "bool"}
    lines = {k: np.asarray(v) for k, v in tables.items()}
    kept = {k: v for k, v in lines.items() if k != "modes" or modes.size > 1}
    kept["missing"] = lines["missing"] if lines["missing"].any() else np.zeros(0)
    names = [constant(roots, "int64"), constant(children.reshape(-1), "int64")]
    names.append(constant(weights, weights.dtype.name))
    for word in ("features", "splits", "modes", "missing", "members"):
        line = kept.get(word, np.zeros(0))
        grown = np.zeros((len(children), *line.shape[1:]), kinds.get(word, weights.dtype.name))
        grown[: len(line)] = line
        names.append(constant(grown, grown.dtype.name) if line.size else "")
    base = base if base is not None and base.size else None
    names.append("" if base is None else constant(base, base.dtype.name))
    node.inputs, node.op, node.domain = [*node.inputs, *names], "Trees", OWN
    tests = tuple(map(int, modes))
    node.attributes = {"aggregate": aggregate, "depth": depth, "post_transform": transform}
    node.attributes["tests"] = tests
