"""``phlox ops NAME`` says where each part of an op stands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from phlox import REGISTRY
from phlox._cli import main
from phlox._places import places
from tools.shell import ROOT


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_every_part_of_an_op_is_in_the_file_of_its_family() -> None:
    found = dict(places("gelu"))
    for part, layer in {
        "declaration": "ops",
        "reference": "reference",
        "expansion": "ops",
        "derivative": "rules",
        "entry of numpy": "reference",
    }.items():
        assert f"/{layer}/activation.py:" in found[part], part


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_the_line_of_a_declaration_names_the_op(name: str) -> None:
    found = dict(places(name))
    for part in ("declaration", "derivative"):
        file, colon, line = found[part].partition(":")
        if colon and Path(file).suffix == ".py":
            text = Path(file).read_text().splitlines()[int(line) - 1]
            assert f'"{name}"' in text or text.startswith((f"{name} = ", f"def {name}"))
    assert ".py:" in found["declaration"]
    assert re.search(r"\.(py|rs):\d+$|^the expansion$", found["entry of cpu"])
    assert (
        REGISTRY[name].internal
        or f"docs/ops/{Path(found['declaration']).stem}.md:" in found["page"]
    )


def test_kernels_shaders_and_lanes_have_a_line() -> None:
    for name, part, text in (
        ("tanh", "entry of cpu", "            tanh "),
        ("matmul", "entry of cpu", "    matmul("),
        ("matmul", "lanes of vmap", '    "matmul":'),
        ("tanh", "shader", '    "tanh":'),
        ("tanh", "page", "## tanh"),
    ):
        file, _, line = dict(places(name))[part].partition(":")
        assert Path(file).read_text().splitlines()[int(line) - 1].startswith(text)
    assert dict(places("tanh"))["lanes of vmap"] == "as its class"


def test_what_there_is_not_is_said_in_words() -> None:
    found = dict(places("add"))
    assert (found["expansion"], found["reference"]) == ("none", "numpy.add")
    assert dict(places("sort"))["derivative"] == "expansion"
    assert dict(places("squeeze"))["expansion"] == "one call of reshape"


def test_the_command_prints_it_and_knows_near_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "matmul"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("px.matmul(x1: Tensor[NumKind], /, x2: Tensor[NumKind])")
    assert "shapes/contraction.py:" in said
    assert main(["ops", "layer_norm_backward"]) == 0  # no function of users
    assert capsys.readouterr().out.startswith("px.ops.layer_norm_backward(g: Float")
    assert main(["ops", "matmul", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["signature"] == REGISTRY["matmul"].signature.text
    assert main(["ops", "matmull"]) == 2
    assert "expected matmul\nhint: phlox ops matmul\n" in capsys.readouterr().err
    assert main(["ops", "nosuch"]) == 2  # as like "cosh" as six letters are
    assert capsys.readouterr().err == "[ops] no such op: got nosuch\nhint: phlox ops\n"
