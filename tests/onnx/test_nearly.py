"""What nearly fits a layer, a formula or a short form gives in source what the file gives."""

from __future__ import annotations

import ast
import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

import phlox as px
from phlox_onnx.source._verify import imported
from phlox_onnx.source.text._wrap import wrapped

HEAD = '<ir_version: 9, opset_import: ["" : 20]> g '
FAR = 1 << 40


def f(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def file(text: str, **constants: Any) -> bytes:
    proto = parser.parse_model(HEAD + text)
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return bytes(proto.SerializeToString())


def same(data: bytes, x: Any, folder: Path, rtol: float = 1e-5) -> None:
    given = px.asarray(x, device=px.Cpu())
    wanted = px.onnx.load(data, device=px.Cpu())(given).numpy()
    px.onnx.write(data, folder, verify=False)
    found = imported(folder).load(px.Cpu())(given).numpy()
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)


GELU = "d = Div(x, s) e = Erf(d) a = Add(e, one) m = Mul(x, a) y = Mul(m, half)"
WHOLE = {"s": np.full((1, 1), 2**0.5), "one": np.ones((1, 1)), "half": np.full((1, 1), 0.5)}
CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "a column is added": ("y = Gemm(x, w, b)", {"w": f(4, 3), "b": f(3, 1)}, f(3, 4)),
    "a row is added": ("y = Gemm(x, w, b)", {"w": f(4, 3), "b": f(1, 3)}, f(2, 4)),
    "a number is added": ("y = Gemm(x, w, b)", {"w": f(4, 1), "b": f(1)[0]}, f(2, 4)),
    "slopes of rows": ("y = PRelu(x, s)", {"s": f(2, 1, 1)}, f(2, 2, 3)),
    "slopes of channels": ("y = PRelu(x, s)", {"s": f(2, 1, 1)}, f(2, 2, 3, 3)),
    "a norm that widens": ("y = LayerNormalization(x, w)", {"w": f(4)}, f(3, 1)),
    "numbers of two axes": (GELU, {k: v.astype(np.float32) for k, v in WHOLE.items()}, f(4)),
    "one element of a picture": (
        'y = Resize<mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel">'
        "(x, , , to)",
        {"to": np.array([1, 1, 3, 1])},
        f(1, 1, 4, 4),
    ),
    "a name that modules have": ("y = MatMul(x, forward)", {"forward": f(4, 3)}, f(2, 4)),
}


def typed(shape: tuple[int, ...], kind: str = "float") -> str:
    return f"({kind}[{','.join(map(str, shape))}] x) => ({kind}[] y) "


@pytest.mark.parametrize("name", CASES)
def test_what_nearly_fits_is_not_taken_for_it(name: str, tmp_path: Path) -> None:
    text, constants, x = CASES[name]
    same(file(typed(x.shape) + "{" + text + "}", **constants), x, tmp_path)


@pytest.mark.parametrize("kind", ["float16", "double"])
@pytest.mark.parametrize("text", ["y = MatMul(x, w)", "m = MatMul(x, w) y = Add(m, b)",
                                  "y = Gemm(x, w, b)"])  # fmt: skip
def test_products_of_other_types(kind: str, text: str, tmp_path: Path) -> None:
    dtype = np.float16 if kind == "float16" else np.float64
    constants = {"w": f(4, 3).astype(dtype), "b": f(3).astype(dtype)}
    if "b" not in text.replace("MatMul", ""):
        del constants["b"]
    data = file(typed((2, 4), kind) + "{" + text + "}", **constants)
    same(data, f(2, 4).astype(dtype), tmp_path, 1e-2 if dtype is np.float16 else 1e-12)


BOUNDS = (-FAR, -3, -1, 0, 1, 9, FAR)


@pytest.mark.parametrize("step", [-2, -1, 1, 2])
def test_slices_end_where_those_of_the_file_do(step: int, tmp_path: Path) -> None:
    """Many in one file, since each takes a while."""
    text, parts = "", []
    constants: dict[str, Any] = {"axis": np.array([0]), "step": np.array([step])}
    for i, (first, last) in enumerate(itertools.product(BOUNDS, BOUNDS)):
        constants |= {f"a{i}": np.array([first]), f"b{i}": np.array([last])}
        text += f"p{i} = Slice(x, a{i}, b{i}, axis, step) s{i} = ReduceSum<keepdims = 0>(p{i}) "
        text += f"n{i} = Shape(p{i}) f{i} = Cast<to = 1>(n{i}) t{i} = Reshape(f{i}, flat) "
        text += f"u{i} = Reshape(s{i}, flat) "
        parts += [f"t{i}", f"u{i}"]
    text += f"y = Concat<axis = 0>({', '.join(parts)})"
    data = file(typed((5,)) + "{" + text + "}", flat=np.array([-1]), **constants)
    same(data, f(5), tmp_path)
    lengths = px.onnx.load(data)(px.asarray(f(5))).numpy()[::2]
    assert lengths.tolist() == [
        len(_taken(a, b, step, 5)) for a, b in itertools.product(BOUNDS, BOUNDS)
    ]


def _taken(start: int, end: int, step: int, n: int) -> range:
    """What the specification of Slice says."""
    start, end = start + n * (start < 0), end + n * (end < 0)
    if step > 0:
        return range(min(max(start, 0), n), min(max(end, 0), n), step)
    return range(min(max(start, 0), n - 1), min(max(end, -1), n - 1), step)


def drawn(rng: random.Random, depth: int) -> str:
    word = "x" * rng.randint(1, 30)
    if not depth:
        return word
    a, b = drawn(rng, depth - 1), drawn(rng, depth - 1)
    forms = (f"({a} + {b})", f"{word}({a}, {b})", f"({a})[{b}]", f"[{a}, {b}]", f"({a},)",
             f"{word}({a})", f"(-{a}).{word}", f"tuple({a} for {word} in {b})")  # fmt: skip
    return rng.choice(forms)


def test_a_line_means_the_same_when_it_is_cut() -> None:
    rng = random.Random(0)
    for _ in range(500):
        line = f"y = {drawn(rng, rng.randint(2, 5))}"
        assert ast.dump(ast.parse("\n".join(wrapped(line, 0)))) == ast.dump(ast.parse(line))
