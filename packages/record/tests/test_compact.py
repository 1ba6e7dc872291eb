"""Compact files have no names: what is needed to load them, and what is noticed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_record as pr
import phlox_tensor as pt

RECORDER = pr.CompactMsgpackRecorder()


def tensor(*shape: int) -> pt.Tensor[Any]:
    return pt.asarray(np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape))


def model() -> dict[str, Any]:
    return {
        "conv": {"weight": pr.ParamEntry("a", tensor(2, 3)), "bias": pr.ParamEntry("b", tensor(2))},
        "blocks": [{"weight": tensor(4)}, {"weight": tensor(4)}],
        "steps": [1, 2, 3],
        "rate": 0.5,
    }


def test_the_structure_must_be_given() -> None:
    data = RECORDER.to_bytes(model())
    with pytest.raises(pr.RecordError, match=r"like=model\.into_record\(\)"):
        RECORDER.from_bytes(data)
    assert RECORDER.needs_like
    assert not pr.NamedMsgpackRecorder.needs_like


def test_a_structure_may_be_described_without_tensors(plain: Callable[[Any], Any]) -> None:
    def never() -> Any:
        raise AssertionError("the structure's tensors are not read")

    like = model()
    like["conv"]["weight"] = pr.ParamEntry("new id", pr.TensorEntry((2, 3), pt.float64, never))
    like["steps"] = []
    like["rate"] = None
    assert plain(RECORDER.from_bytes(RECORDER.to_bytes(model()), like=like)) == plain(model())


def _without_bias(like: dict[str, Any]) -> None:
    del like["conv"]["bias"]


def _other_shape(like: dict[str, Any]) -> None:
    like["conv"]["bias"] = pr.ParamEntry("b", tensor(3))


def _other_kind(like: dict[str, Any]) -> None:
    like["conv"]["bias"] = pr.ParamEntry("b", pt.asarray(np.zeros(2, np.int32)))


def _no_param(like: dict[str, Any]) -> None:
    like["conv"]["bias"] = tensor(2)


def _no_tensor(like: dict[str, Any]) -> None:
    like["blocks"][1]["weight"] = None


def _one_block(like: dict[str, Any]) -> None:
    like["blocks"].pop()


def _list_for_dict(like: dict[str, Any]) -> None:
    like["conv"] = [1, 2]


def _dict_for_list(like: dict[str, Any]) -> None:
    like["steps"] = {}


def _tensor_for_scalar(like: dict[str, Any]) -> None:
    like["rate"] = tensor(1)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (_without_bias, "conv"),
        (_other_shape, "conv.bias"),
        (_other_kind, "conv.bias"),
        (_no_param, "conv.bias"),
        (_no_tensor, "blocks.1.weight"),
        (_one_block, "blocks"),
        (_list_for_dict, "conv"),
        (_dict_for_list, "steps"),
        (_tensor_for_scalar, "rate"),
    ],
)
def test_another_structure_is_refused(change: Callable[[Any], None], where: str) -> None:
    like = model()
    change(like)
    with pytest.raises(pr.RecordError, match=f"another structure at {where}: got"):
        RECORDER.from_bytes(RECORDER.to_bytes(model()), like=like)


def test_fields_of_one_shape_cannot_be_swapped() -> None:
    data = RECORDER.to_bytes({"q": tensor(4), "k": tensor(4)})
    for like in ({"k": tensor(4), "q": tensor(4)}, {"q": tensor(4), "v": tensor(4)}):
        with pytest.raises(pr.RecordError, match="field names"):
            RECORDER.from_bytes(data, like=like)


def test_a_keyed_dict_needs_no_structure(plain: Callable[[Any], Any]) -> None:
    """An optimizer's state: which parameters it has is known only after loading."""
    state = pr.Keyed({"id-1": {"m": tensor(3), "step": 1}, "id-2": {"m": tensor(2), "step": 1}})
    tree: Any = {"model": model(), "optim": {"state": state, "kind": "adam"}}
    fresh: Any = {"model": model(), "optim": {"state": pr.Keyed(), "kind": ""}}
    found = RECORDER.from_bytes(RECORDER.to_bytes(tree), like=fresh)
    assert plain(found) == plain(tree)
    with pytest.raises(pr.RecordError, match=r"optim\.state: got a dict of 0, expected a Keyed"):
        RECORDER.from_bytes(
            RECORDER.to_bytes(tree), like={"model": model(), "optim": {"state": {}, "kind": ""}}
        )


def test_names_cost_nothing_in_a_compact_file() -> None:
    short, long = ({"x" * n: {"y" * n: 1}} for n in (1, 1000))
    assert len(RECORDER.to_bytes(short)) == len(RECORDER.to_bytes(long))
