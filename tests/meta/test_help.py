"""What ``help`` and ``inspect.signature`` show is what there is."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc
from typing import Any

import pytest

import phlox as px
from phlox import nn, optim


def text_of(given: object) -> str:
    return pydoc.plain(pydoc.render_doc(given))


def public() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, space in {"px": px, "nn": nn, "optim": optim, "linalg": px.linalg}.items():
        found |= {f"{name}.{each}": getattr(space, each) for each in dir(space) if each[0] != "_"}
    found |= {f"Tensor.{n}": getattr(px.Tensor, n) for n in dir(px.ones(1)) if n[0] != "_"}
    return {path: each for path, each in found.items() if callable(each)}


def test_no_signature_shows_what_is_there_to_be_refused() -> None:
    shown = {}
    for path, each in public().items():
        try:
            shown[path] = str(inspect.signature(each))
        except ValueError:  # of built-in types, which have none
            continue
    assert len(shown) > 500
    assert [f"{path}{form}" for path, form in shown.items() if "Never" in form] == []


def test_signatures_are_those_of_the_functions() -> None:
    found = inspect.signature(px.sum)
    assert list(found.parameters) == ["x", "axis", "keepdims", "dtype"]
    assert list(inspect.signature(px.ones(3).sum).parameters) == ["axis", "keepdims", "dtype"]
    assert found == pickle.loads(pickle.dumps(found)) == copy.copy(found)
    assert list(found.bind(px.ones(3), axis=0).arguments) == ["x", "axis"]
    with pytest.raises(TypeError, match="dim"):
        found.bind(px.ones(3), dim=0)
    with pytest.raises(TypeError, match="axis=0"):
        px.sum(px.ones(3), dim=0)  # type: ignore[call-overload]


@pytest.mark.parametrize("layer", [nn.Linear, nn.Sequential, nn.Lstm])
def test_help_of_layers_tells_what_they_have(layer: type) -> None:
    shown = text_of(layer)
    assert "refuse" not in shown
    assert "from_pretrained" not in shown
    assert "load_file" in shown
    assert "forward" in shown
    assert "cuda" not in dir(layer)
    with pytest.raises(AttributeError, match="to_device"):
        getattr(layer, "cuda")  # noqa: B009 - checkers know that there is none


def test_reports_show_their_tables_in_notebooks() -> None:
    model = nn.Linear(4, 2)
    found = nn.summary(model, px.ones((3, 4)))
    assert repr(found) == str(found)
    assert "multiply-adds" in repr(found).splitlines()[0]
    device = px.Profile("numpy")
    with device:
        px.ones(3, device=device).sum()
    assert repr(device.report()).startswith("op ")


def test_help_shows_the_example_of_the_page() -> None:
    shown = [op for op in px.REGISTRY.values() if op.example and op.function and not op.internal]
    assert len(shown) > 100
    for op in shown:
        if hasattr(px, op.name) and op.signature.operands:
            said = inspect.getdoc(getattr(px, op.name)) or ""
            start = op.example.splitlines()[0].replace("pt.", "px.")[:60]
            assert start in said, op.name
