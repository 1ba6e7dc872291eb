"""Every op over lanes against a loop, and the tables of rules against the registry."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_autodiff._lanes import NoLanes
from phlox_autodiff.batching import LANES, TABLES
from phlox_tensor import REGISTRY, Numpy, tree
from phlox_tensor.testing import Sample, samples

DEVICE = Numpy(float="float64")
LANE_COUNT = 3
# More operands than so many are not mapped in every combination.
MOST = 3

BATCHED = sorted(
    name
    for name, op in REGISTRY.items()
    if op.signature.operands and not ad.batching_kind(op).startswith("none")
)
WITHOUT = sorted(n for n, op in REGISTRY.items() if ad.batching_kind(op).startswith("none"))


def lanes_of(array: Any, *, like: bool, scaled: bool = False) -> Any:
    """An array with lanes in front, its numbers larger or in another order in each; or as it is."""
    if like or array is None:
        return array
    if scaled:
        return np.stack([array * (1 + 0.25 * k) for k in range(LANE_COUNT)])
    rows = [np.roll(array.ravel(), k).reshape(array.shape) for k in range(LANE_COUNT)]
    return np.stack(rows)


def choices(sample: Sample) -> Iterator[tuple[int, ...]]:
    """Which operands are mapped."""
    places = [i for i, o in enumerate(sample.operands) if o is not None]
    counts = range(1, len(places) + 1) if len(places) <= MOST else (1, len(places))
    for count in counts:
        yield from combinations(places, count)


def tensor(array: Any) -> Any:
    return None if array is None else pt.asarray(array)


def empty(array: Any) -> Any:
    """No lanes of an array."""
    return None if array is None else pt.asarray(np.zeros((0, *array.shape), array.dtype))


def lane_of(operand: Any, lane: int) -> Any:
    return tree.map(lambda t: None if t is None else t[lane], operand)


@pytest.mark.parametrize("name", BATCHED)
def test_lanes_give_what_a_loop_gives(name: str) -> None:
    op = REGISTRY[name]
    # Matrices stay as well conditioned as they are, and what is searched stays sorted.
    scaled = op.op_class.matrices or name == "searchsorted"
    checked = 0
    for sample in samples(op, pt.float64, DEVICE):
        call = partial(op, **sample.attributes)
        for mapped in choices(sample):
            operands = [
                tree.map(partial(lanes_of, like=i not in mapped, scaled=scaled), operand)
                for i, operand in enumerate(sample.operands)
            ]
            given = tree.map(tensor, operands)
            axes = tuple(0 if i in mapped else None for i in range(len(given)))
            got = tree.leaves(ad.vmap(call, axes)(*given))
            rows = [
                tree.leaves(
                    call(*(lane_of(x, k) if i in mapped else x for i, x in enumerate(given)))
                )
                for k in range(LANE_COUNT)
            ]
            for found, *wanted in zip(got, *rows, strict=True):
                assert found.shape == (LANE_COUNT, *wanted[0].shape)
                assert found.dtype is wanted[0].dtype
                np.testing.assert_allclose(
                    found.numpy(),
                    np.stack([w.numpy() for w in wanted]),
                    rtol=1e-10,
                    atol=1e-10,
                    err_msg=f"{name} mapped {mapped} {sample.attributes}",
                )
            checked += 1
    assert checked


@pytest.mark.parametrize("name", BATCHED)
def test_no_lanes_give_results_of_the_shape_of_one(name: str) -> None:
    op = REGISTRY[name]
    sample = next(iter(samples(op, pt.float64, DEVICE)))
    call = partial(op, **sample.attributes)
    for mapped in choices(sample):
        given = [
            tree.map(empty if i in mapped else tensor, x) for i, x in enumerate(sample.operands)
        ]
        axes = tuple(0 if i in mapped else None for i in range(len(given)))
        got = tree.leaves(ad.vmap(call, axes)(*given))
        want = tree.leaves(call(*(tree.map(tensor, x) for x in sample.operands)))
        assert [x.shape for x in got] == [(0, *x.shape) for x in want], f"{name} mapped {mapped}"


@pytest.mark.parametrize("name", WITHOUT)
def test_an_op_without_a_rule_is_refused_by_name(name: str) -> None:
    op = REGISTRY[name]
    sample = next(iter(samples(op, pt.float64, DEVICE)))
    tensors = [pt.asarray(lanes_of(a, like=False)) for a in sample.operands]
    with pytest.raises(pt.BatchingError, match=rf"\[{name}\] the op has no batching rule: .*") as e:
        ad.vmap(partial(op, **sample.attributes))(*tensors)
    assert "px.vmap(f, loop=True)" in str(e.value)


def test_a_loop_runs_an_op_without_a_rule() -> None:
    masks = pt.asarray([[True, False, True], [False, True, True]])
    places = ad.vmap(pt.ops.nonzero, loop=True)(masks)
    assert places.tolist() == [[0, 2], [1, 2]]
    uneven = pt.asarray([[True, False], [True, True]])
    with pytest.raises(pt.BatchingError, match="different shapes"):
        ad.vmap(pt.ops.nonzero, loop=True)(uneven)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_op_has_a_batching_rule_or_a_reason(name: str) -> None:
    kind = ad.batching_kind(REGISTRY[name])
    assert kind in ("class", "expansion", "rule") or len(kind) > len("none: ")
    assert kind != "none: no rule and no expansion"


def test_every_row_has_an_op_and_tables_are_sorted() -> None:
    assert sorted(set(LANES) - set(REGISTRY)) == []
    for table in TABLES:
        assert list(table) == sorted(table)
    assert sum(map(len, TABLES)) == len(LANES)
    assert all(rule.reason for rule in LANES.values() if isinstance(rule, NoLanes))
