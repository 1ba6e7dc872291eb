"""Modules inside modules, deeper than Python calls."""

from __future__ import annotations

import copy
import pickle
import sys

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn import Module


class Chained(Module):
    inner: object  # a list, or None
    weight: nn.Param


def chained(depth: int) -> Chained:
    """Modules inside each other, deeper than Python calls."""
    inner: object = None
    for _ in range(depth):
        inner = Chained([inner] if inner is not None else None, nn.Param(pt.ones(1)))
    assert isinstance(inner, Chained)
    return inner


def test_modules_nest_deeper_than_python_calls() -> None:
    depth = 200 + sys.getrecursionlimit()
    model = chained(depth)
    assert sum(1 for _ in nn.modules(model)) == model.num_params() == depth
    copies = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        model.fork(pt.Numpy(float="float64")),
        model.load_record(model.into_record()),
        model.to_device(pt.Numpy(float="float64")),
        model.valid(),
        nn.map_modules(model, lambda _, inner: inner),
    ]
    assert [made.num_params() for made in copies] == [depth] * len(copies)
    entered, left = [], []
    nn.visit_modules(model, lambda path, _: entered.append(path), lambda path, _: left.append(path))
    assert entered == left[::-1]
    assert len(entered) == depth


def test_printing_counts_each_weight_once_in_each_module() -> None:
    tied = nn.Param(pt.ones(3))
    model = Chained([Chained(tied, nn.Param(pt.ones(2))), Chained(None, tied)], tied)
    counts = [line.split("# ")[1] for line in repr(model).splitlines() if "#" in line]
    assert counts == ["5 parameters", "3 parameters", "5 parameters"]
    text = repr(chained(300))
    assert text.count("parameters") == 300
    assert text.endswith("}  # 300 parameters")
