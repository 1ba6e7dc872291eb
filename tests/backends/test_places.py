"""What stands at a place of a call stands there in PyTorch too, or is given by name alone."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final

import pytest

import phlox as px
from phlox_tensor._errors.keywords import KEYWORDS
from phlox_tensor._op.declaration import REGISTRY

torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
pytestmark = pytest.mark.long

# Of other types than PyTorch's at the same places: a call of one is an error of the other.
OTHERS: Final = {
    "bincount": "weights is a tensor, minlength a number",
    "embedding_bag": "scale is a Float tensor, offsets an Int one",
    "gru": "weights are tensors, params a list",
    "index_add": "dim is a number, indices a tensor",
    "interpolate": "mode is a word",
    "layer_norm": "normalized_shape is no tensor, weight is one",
    "lp_pool1d": "the window is last by place",
    "lp_pool2d": "the window is last by place",
    "lp_pool3d": "the window is last by place",
    "lstm": "weights are tensors, params a list",
    "pad": "mode is a word, value a number",
    "rms_norm": "normalized_shape is no tensor, weight is one",
    "scatter": "dim is a number, indices a tensor",
    "slice_scatter": "start is a tuple",
}
# Our operands go first: there, a number stands between them.
SAME: Final = (
    {"axis1", "axis0"},
    {"axis2", "axis1"},
    {"x2", "b"},
    {"x2", "end"},
    {"x2", "other"},
    {"x2", "self"},
    {"x2", "test_elements"},
)


def _theirs(name: str) -> Iterator[list[str]]:
    """The names of places of PyTorch's functions of a name."""
    for room in (torch, torch.nn.functional):
        function = getattr(room, name, None)
        if function is None:
            continue
        try:
            given = inspect.signature(function).parameters.values()
            yield [p.name for p in given if p.kind is p.POSITIONAL_OR_KEYWORD]
        except ValueError:  # native
            packet = getattr(torch.ops.aten, name)
            schemas = [
                getattr(packet, overload)._schema.arguments for overload in packet.overloads()
            ]
            for schema in schemas:
                if schema and str(schema[0].type) == "Tensor":
                    yield [a.name for a in schema if not a.kwarg_only]


def _apart(ours: list[str], theirs: list[str]) -> list[tuple[str, str]]:
    pairs = list(zip(ours, theirs, strict=False))[1:]
    return [
        (a, b) for a, b in pairs if a != b and a not in KEYWORDS.get(b, ()) and {a, b} not in SAME
    ]


def _places(name: str) -> list[str]:
    op = REGISTRY[name]
    both: tuple[Any, ...] = (*op.signature.operands, *op.signature.attributes)
    return [each.name for each in both if not each.named]


def test_places_mean_what_they_mean_in_pytorch() -> None:
    names = [n for n in px.__dir__() if n in REGISTRY and REGISTRY[n].signature.attributes]
    compared = {name: found for name in names if (found := list(_theirs(name)))}
    assert len(compared) > 50
    apart = {}
    for name, found in compared.items():
        gaps = [gap for theirs in found if (gap := _apart(_places(name), theirs))]
        if len(gaps) == len(found):  # one of its forms is ours
            apart[name] = gaps[0]
    assert apart.keys() == OTHERS.keys(), apart
