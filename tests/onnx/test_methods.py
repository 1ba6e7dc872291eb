"""What is long in source stands in several functions, of sixty lines at most."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Cpu
from phlox_onnx.source._verify import imported
from tests.onnx.test_source import body, f, file

COUNT = 160


def chain(first: str, last: str, crossing: int) -> str:
    """Nodes of which each reads two before it, so that none is written into another."""
    names = [first, *(f"{last}{i}" for i in range(COUNT)), last]
    lines = []
    for i, name in enumerate(names[1:]):
        if i % 2:
            lines.append(f"{name} = Tanh({names[i]})")
        else:
            lines.append(f"{name} = Sub({names[i]}, {names[max(i - crossing, 0)]})")
    return " ".join(lines)


def straight() -> bytes:
    return file(f"(float[n, 4] x) => (float[n, 4] y) {{ {chain('x', 'y', 3)} }}", {})


def pyramid() -> bytes:
    """Every fourth value is read at the end."""
    parts = ", ".join(f"y{i}" for i in range(0, COUNT, 4))
    text = f"{chain('x', 'y', 2)} all = Concat<axis = 1>({parts}, y)"
    return file(f"(float[n, 4] x) => (float[n, m] all) {{ {text} }}", {})


def branches() -> bytes:
    one, two = chain("x", "a", 3), chain("k", "b", 5)
    return file(
        f"""(bool c, float[n, 4] x) => (float[n, 4] y) {{ k = MatMul(x, w)
        y = If (c) <then_branch = t () => (float[n, 4] a) {{ {one} }},
                    else_branch = e () => (float[n, 4] b) {{ {two} }}> }}""",
        {"w": f(4, 4)},
    )


def loop() -> bytes:
    return file(
        f"""(float[n, 4] x) => (float[n, 4] y, float[k, n, 4] all) {{
        three = Constant<value = int64 {{3}}>() go = Constant<value = bool {{1}}>()
        y, all = Loop(three, go, x) <body = b (int64 i, bool c, float[n, 4] h)
            => (bool d, float[n, 4] g, float[n, 4] s)
            {{ d = Identity(c) m = MatMul(h, w) {chain("m", "g", 3)} s = Add(g, x) }}> }}""",
        {"w": f(4, 4)},
    )


FEEDS = {
    branches: [{"c": np.array(v), "x": f(3, 4)} for v in (True, False)],
    loop: [{"x": f(2, 4)}],
    pyramid: [{"x": f(2, 4)}],
    straight: [{"x": f(2, 4)}],
}


def lengths(text: str) -> list[int]:
    every = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    return [(n.end_lineno or 0) - n.lineno + 1 for n in every]


@pytest.mark.parametrize("make", FEEDS, ids=lambda m: m.__name__)
def test_functions_are_short_and_give_the_same(make: Callable[[], bytes], tmp_path: Path) -> None:
    made = px.onnx.write(make(), tmp_path / "made", verify=FEEDS[make][0])
    assert max(lengths(body(made))) <= 60
    assert "self._step" in body(made)
    model, wanted = imported(tmp_path / "made").load(Cpu()), px.onnx.load(make(), device=Cpu())
    assert len(model.params()) == len(wanted.params())
    for feeds in FEEDS[make]:
        given = [px.asarray(v) for v in feeds.values()]
        pairs = zip(_several(model(*given)), _several(wanted(*given)), strict=True)
        for one, two in pairs:
            np.testing.assert_array_equal(one.numpy(), two.numpy())


def _several(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def test_a_flat_source_has_one_function_in_the_order_of_the_file() -> None:
    text = px.onnx.source(straight(), flat=True)
    assert "_step" not in text
    assert max(lengths(text)) > 60


@pytest.mark.parametrize("make", FEEDS, ids=lambda m: m.__name__)
def test_the_same_file_is_cut_in_the_same_way(make: Callable[[], bytes]) -> None:
    assert px.onnx.source(make()) == px.onnx.source(make())
