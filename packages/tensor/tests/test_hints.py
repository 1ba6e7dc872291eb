"""Hints for calls in the way of other libraries: they have every argument of the call."""

from __future__ import annotations

import re
from typing import Any, cast

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor._errors.keywords import INSTEAD, KEYWORDS, instead_of


@pytest.mark.parametrize("half", ["L", "U"])
def test_the_half_that_eigh_reads_is_mirrored_by_the_hint(half: Any) -> None:
    matrix = np.asarray([[1.0, 2.0], [5.0, 3.0]], np.float32)
    with pytest.raises(pt.UnknownArgumentError) as caught:
        cast("Any", pt.linalg.eigh)(pt.asarray(matrix), UPLO=half)
    found = eval(str(caught.value.hint), {"px": pt, "x": pt.asarray(matrix)}).eigenvalues.numpy()
    assert np.allclose(found, np.linalg.eigh(matrix, UPLO=half).eigenvalues)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("pt.add(x, x, out=x)", "px.add(x1, x2)"),
        ("pt.sum(x, axis=1, out=x)", "px.sum(x, axis=1)"),
        ("pt.arange(start=1, end=5)", "px.arange(1, stop=5)"),
        ("pt.mean(input=x, dim=1)", "px.mean(x, axis=1)"),
        ("pt.softmax(x, 0, dtype=pt.float64)", "px.softmax(x.astype('float64'), axis=0)"),
        ("pt.allclose(x, x, 1e-3, 0.5)", "px.allclose(x1, x2, rtol=0.001, atol=0.5)"),
        ("pt.zeros(2, 3, dtype=pt.float64)", "px.zeros((2, 3), dtype='float64')"),
        ("x.std(0, True)", "correction=1"),
        ("pt.topk(x, 2, 0, True, True)", "px.topk(x, k=2, axis=0)  # which sorts"),
        ("pt.linalg.solve(x, x, left=False)", "px.linalg.solve(x1.mT, x2.mT).mT"),
        ("x.inner(x)", "px.vecdot(x, y)  # of vectors; x @ y.mT of matrices"),
        ("pt.linspace(0, 1, steps=5)", "num=5"),
        ("pt.linspace(0, 1, 5, False)", "px.linspace(0, 1, 5, endpoint=False)"),
        ("pt.tril(x, diagonal=-1)", "k=-1"),
        (
            "x.index_add(dim=1, index=i, source=x, alpha=2)",
            "px.index_add(x, indices, 2 * values, axis=1)",
        ),
        (
            "pt.cross_entropy(x, i, weight=x, label_smoothing=0.1, reduction='sum')",
            "nn.CrossEntropyLoss(weights=tuple(weight.tolist()), smoothing=0.1, "
            "reduction='sum')(x, target)",
        ),
        ("pt.linalg.vector_norm(x, 2, 1)", "px.linalg.vector_norm(x, ord=2, axis=1)"),
        (
            "pt.softplus(x, beta=2.0, threshold=1)",
            "(2.0 * x).softplus() / 2.0  # nothing stands for threshold",
        ),
        (
            "pt.linalg.solve_triangular(x, x, lower=True, unitriangular=True)",
            "upper=False, unit_diagonal=True",
        ),
        ("pt.linalg.matrix_rank(x, atol=0.5)", "(px.linalg.svdvals(x) > 0.5).sum(axis=-1)"),
        (
            "pt.linalg.pinv(x, atol=0.5)",
            "px.linalg.pinv(x, rtol=0.5 / float(px.linalg.svdvals(x).max()))",
        ),
    ],
)
def test_a_hint_has_every_argument_of_the_call(call: str, hint: str) -> None:
    given = {"i": pt.asarray([0, 1]), "pt": pt, "x": pt.ones((2, 2))}
    with pytest.raises(pt.PhloxError) as caught:
        eval(call, given)
    assert caught.value.hint == hint


def _swept() -> list[tuple[str, str, str]]:
    """Ops with an argument of others that a row has code for, and a setting of their own beside."""
    found = []
    for name, rows in INSTEAD.items():
        op = pt.REGISTRY.get(name)
        words = dict.fromkeys(key.partition(":")[0] for key in rows)
        for own in op.signature.attributes if op else ():
            found += [(name, word, own.name) for word in words if own.default in (False, 1, -1, 0)]
    return found


@pytest.mark.parametrize(("name", "word", "own"), _swept())
def test_the_code_of_a_row_keeps_or_names_each_setting(name: str, word: str, own: str) -> None:
    value = not pt.REGISTRY[name].signature.attributes[0].default if own == "keepdims" else 7
    given = {own: value, "said": [f"{own}={value}"], "sections": 2}
    if own in (KEYWORDS.get(word) or ()):
        return
    for each in (False, True, 2, (0, 1), "mean", "floor"):
        hint = instead_of(name, {word: each}, [own], given) or ""
        if hint and not re.match(r"\w+=(?!=)", hint):
            assert re.search(rf"\b{own}\b|\b{value}\b", hint), hint
